"""Write the recorded tables into the pages: docs/records/NAME.json -> docs/*.md.

    python docs/write_tables.py                                   write all pages again
    python docs/write_tables.py runs/experiments/table1.json      record this run first
    python docs/write_tables.py --state                           record the numbers of the prose, too

A table of a page stands between `<!-- table: NAME -->` or `<!-- table: NAME:1 -->` (its second table) and
`<!-- end -->`. A record has its command, date and machine, and the rows of an experiment, or tables as they are.
docs/records/stated.json has the measured numbers of the prose, section by section. Tests compare the pages with both.
"""

import json
import re
import sys
from pathlib import Path

from minitransformer.course import FOLDER

sys.path.append(str(FOLDER))  # where the experiments are
from typing import Any

from experiments.report import Table, as_markdown
from experiments.running import find

DOCS = Path(__file__).resolve().parent
RECORDS = DOCS / "records"
STATED = RECORDS / "stated.json"
BLOCK = re.compile(r"(<!-- table: ([\w-]+)(?::(\d))? -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def read(name: str) -> dict[str, Any]:
    """A record."""
    return json.loads((RECORDS / f"{name}.json").read_text("utf-8"))


def tables(record: dict[str, Any]) -> list[Table]:
    """The tables of a record, made from its rows if it is that of an experiment."""
    if "rows" in record:
        return find(record["experiment"]).tables(record["rows"])
    return [Table("", table["columns"], table["cells"]) for table in record["tables"]]


def with_tables(text: str) -> str:
    """The text of a page with all its tables written again."""

    def block(match: re.Match[str]) -> str:
        table = tables(read(match[2]))[int(match[3] or 0)]
        return f"{match[1]}{as_markdown(table)}\n{match[4]}"

    return BLOCK.sub(block, text)


def main(arguments: list[str]) -> int:
    """Record the runs that are named, and write all pages again -> exit status."""
    for path in map(Path, arguments):
        if path.suffix == ".json":
            record = json.loads(path.read_text("utf-8"))
            (RECORDS / path.name).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        if with_tables(text) != text:
            page.write_text(with_tables(text), "utf-8")
            print(f"wrote docs/{page.name}")
    if "--state" in arguments:
        sys.path.insert(0, str(DOCS.parent))
        from tests.numbers import stated_numbers

        STATED.write_text(json.dumps(stated_numbers(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
