"""What docs/error-messages.md shows: every bad input that the tests try, with its message.

    python -m tests.refusals.page          try them all, and record their messages in messages.json

The site writes the table into the page when it is built.
"""

import json
from pathlib import Path

from tests.refusals.cases import all_cases

MESSAGES = Path(__file__).with_name("messages.json")


def read_messages():
    """{name of a case: its message}, as recorded."""
    return json.loads(MESSAGES.read_text("utf-8"))


def messages_of_today():
    """{name of a case: its message}, tried now."""
    from tests.refusals.trying import trier  # which the site, in its smaller environment, cannot import

    return {case.name: trier().try_case(case).message.strip() for case in all_cases()}


def table():
    """How many messages there are, and all of them as a table."""
    messages = read_messages()
    rows = [f"| {case.where} | {case.wrong} | `{escaped(messages[case.name])}` |" for case in all_cases()]
    return "\n".join([f"{len(rows)} messages:", "", "| where | bad input | message |", "| --- | --- | --- |", *rows])


def escaped(text):
    """`text` for a cell of a Markdown table, in which a bar would end the cell and a backtick the code."""
    return text.replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    MESSAGES.write_text(json.dumps(messages_of_today(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"wrote {MESSAGES}")
