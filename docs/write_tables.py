"""Write into the pages what code can say: recorded tables, and counts.

    python docs/write_tables.py                                   write all pages again
    python docs/write_tables.py runs/experiments/table1.json      record this run first
    python docs/write_tables.py speed-xeon                        print the tables of a record
    python docs/write_tables.py --state                           record the numbers of the prose, too

A table of a page stands between `<!-- table: NAME -->` or `<!-- table: NAME:1 -->` (its second table) and
`<!-- end -->`. A record, docs/records/NAME.json, has its command, date and machine, and the rows of an experiment, or
tables as they are. The site shows all of them on one page, to which links to a record lead. A count, such as that of
the rows of gradcheck, is found by the patterns of tests/numbers.py. docs/records/stated.json has the measured numbers
of the prose, section by section. Tests compare the pages with all of these.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from minitransformer.course import FOLDER

sys.path.append(str(FOLDER))  # where the experiments are

from experiments.report import Table, as_markdown
from experiments.running import find

DOCS = Path(__file__).resolve().parent
RECORDS = DOCS / "records"
STATED = RECORDS / "stated.json"
BLOCK = re.compile(r"(<!-- table: ([\w-]+)(?::(\d))? -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def read(name: str) -> dict[str, Any]:
    """A record."""
    return json.loads((RECORDS / f"{name}.json").read_text("utf-8"))


def names() -> list[str]:
    """The names of all records that have tables."""
    return [path.stem for path in sorted(RECORDS.glob("*.json")) if path != STATED]


def tables(record: dict[str, Any]) -> list[Table]:
    """The tables of a record, made from its rows if it is that of an experiment."""
    if "rows" in record:
        return find(record["experiment"]).tables(record["rows"])
    return [Table(table.get("title", ""), table["columns"], table["cells"]) for table in record["tables"]]


def with_tables(text: str) -> str:
    """The text of a page with all its tables written again."""

    def block(match: re.Match[str]) -> str:
        table = tables(read(match[2]))[int(match[3] or 0)]
        return f"{match[1]}{as_markdown(table)}\n{match[4]}"

    return BLOCK.sub(block, text)


def section(name: str) -> str:
    """A record as a part of the page of all records."""
    record = read(name)
    parts = [f"## {name}", f"`{record['command']}`, {record['date']}, on {record['machine']}."]
    for table in tables(record):
        parts += [f"{table.title}:"] * bool(table.title) + [as_markdown(table)]
    return "\n\n".join(parts)


def sections() -> str:
    """All records, for docs/records.md."""
    return "\n\n".join(map(section, names()))


def main(arguments: list[str]) -> int:
    """Record the runs that are named, print the records that are, and write all pages again -> exit status."""
    sys.path.insert(0, str(DOCS.parent))
    from tests.numbers import stated_numbers, with_facts

    if printed := [argument for argument in arguments if argument in names()]:
        print("\n\n".join(map(section, printed)))
        return 0
    for argument in arguments:
        if argument.endswith(".json"):
            record = json.loads(Path(argument).read_text("utf-8"))
            text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
            (RECORDS / Path(argument).name).write_text(text, "utf-8")
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        text = page.read_text("utf-8")
        if (written := with_facts(with_tables(text))) != text:
            page.write_text(written, "utf-8")
            print(f"wrote {page.relative_to(DOCS.parent)}")
    if "--state" in arguments:
        STATED.write_text(json.dumps(stated_numbers(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
