"""The page REFUSALS.md: every bad input that the tests try, with what is said.

python -m tests.refusals.page
"""

from pathlib import Path

from tests.refusals.cases import all_cases
from tests.refusals.trying import try_all

PAGE = Path(__file__).parents[2] / "REFUSALS.md"
HEAD = """\
# What is said to bad input

Every bad input that the tests try, and what a user is told: one line that says what is wrong, where, and what is
allowed. The command line then ends with the exit status 2, shows no traceback (`--debug` does), and leaves nothing
half-written; a folder that cannot be written is noticed before training, not after. The library raises ValueError,
TypeError, IndexError or OSError with the same words. Written by `python -m tests.refusals.page`; a test compares it
with what is said.
"""


def make_page():
    """The text of the page."""
    rows = [(case.where, case.wrong, said) for case, said in try_all(all_cases())]
    table = "\n".join(f"| {where} | {wrong} | `{escaped(said)}` |" for where, wrong, said in rows)
    return f"{HEAD}\n{len(rows)} of them:\n\n| where | what is wrong | what is said |\n| --- | --- | --- |\n{table}\n"


def escaped(text):
    """`text` for a cell of a Markdown table, in which a bar would end the cell and a backtick the code."""
    return text.replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf8")
    print(f"wrote {PAGE}")
