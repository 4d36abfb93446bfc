"""No room grows unnoticed: the lines of each folder of the package, the tests and the lessons stand in `rooms.txt`.

A commit that makes a room larger raises its number there, and says in its message what the reader gets for it. One that
makes a room smaller lowers it. `python -m tests.test_rooms` writes the table again.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("rooms.txt")
PARTS = ("minitransformer", "lessons", "tests")
SOURCES = {".py", ".js", ".css", ".html", ".cu", ".cuh", ".h"}
SLACK = 10  # lines that a folder may have fewer than its number


def lines_of_rooms():
    """{folder: its lines}: a folder of a part with all that is below it, or the files at the top of a part."""
    lines = {}
    for part in PARTS:
        for path in (ROOT / part).rglob("*"):
            if path.suffix in SOURCES:
                below = path.relative_to(ROOT / part).parts
                folder = part if len(below) == 1 else f"{part}/{below[0]}"
                lines[folder] = lines.get(folder, 0) + len(path.read_text("utf-8").splitlines())
    return lines


def table():
    """{folder: the lines that it may have}"""
    rows = (row.split() for row in TABLE.read_text("utf-8").splitlines())
    return {folder: int(number) for number, folder in rows}


def changed(lines, allowed):
    """What does not agree, as sentences."""
    for folder in sorted(lines.keys() | allowed.keys()):
        now, then = lines.get(folder, 0), allowed.get(folder, 0)
        if now > then:
            yield f"{folder} has {now} lines, {now - then} more than rooms.txt allows: what can go, or who gains by it?"
        elif now < then - SLACK or not now:
            yield f"{folder} has only {now} lines left: let rooms.txt say so"


def write_table(lines):
    """Write the rooms in the order of their names."""
    TABLE.write_text("".join(f"{number:6} {folder}\n" for folder, number in sorted(lines.items())), "utf-8")


def test_each_room_has_the_lines_that_the_table_says():
    assert list(changed(lines_of_rooms(), table())) == []


if __name__ == "__main__":
    write_table(lines_of_rooms())
