"""Write docs/error-messages.md: every bad input that the tests try, with its message.

python -m tests.refusals.page
"""

from pathlib import Path

from tests.refusals.cases import all_cases
from tests.refusals.trying import trier

PAGE = Path(__file__).parents[2] / "docs" / "error-messages.md"
HEAD = """\
# Error messages

This page lists every bad input that the tests try, and the message that it gets. A message is one line: it says what is
wrong, where, and what is allowed.

On the command line, bad input ends with exit status 2. No traceback is printed (`--debug` prints it), and no
half-written file is left behind. An output folder that cannot be written is reported before training, not after it.
The library raises ValueError, TypeError, IndexError or OSError with the same message.

`python -m tests.refusals.page` writes this page, and a test checks that it is up to date. Three dots stand for words
that come from Python or another library.
"""


def make_page():
    """The text of the page."""
    rows = [(case.where, case.wrong, trier().try_case(case).message.strip()) for case in all_cases()]
    table = "\n".join(f"| {where} | {wrong} | `{escaped(message)}` |" for where, wrong, message in rows)
    return f"{HEAD}\n{len(rows)} messages:\n\n| where | bad input | message |\n| --- | --- | --- |\n{table}\n"


def escaped(text):
    """`text` for a cell of a Markdown table, in which a bar would end the cell and a backtick the code."""
    return text.replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf8")
    print(f"wrote {PAGE}")
