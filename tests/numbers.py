"""Holds the numbers of a page to the code, or to a record.

    with_facts(text)             the text with what code can count as the code counts it
    unrecorded(text)             what only a run can measure: numbers that are in no record
    stated_numbers()             the measured numbers in the prose of docs/, for docs/records/stated.json

A fact is a pattern with one group, a number, and a function that computes it; wherever the pattern occurs in README or
in a page, the number must be the computed one, and `python docs/write_tables.py` writes it. After "about" it may be 5 %
off, so that a new row does not change the pages, and is written with two digits. So a fact needs no change when a text
is rewritten, only a line here when a new kind of number appears.
"""

import functools
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS, RECORDS = ROOT / "docs", ROOT / "docs" / "records"
WITHOUT_MEASUREMENTS = {"code.md", "contents.md", "exercises.md"}
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in WITHOUT_MEASUREMENTS)
NUMBER = r"(?<![\w.#-])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"


class Fact(NamedTuple):
    """A number that code computes, and how a text says it."""

    pattern: str
    value: Callable[[], object]


def gradcheck_rows():
    from minitransformer.gradcheck.subjects import SUBJECTS

    return len(SUBJECTS)


def planted_bugs():
    from tests.museum.exhibits import EXHIBITS

    return len(EXHIBITS)


def algebra_cases():
    from tests.algebra.test_pairs import CASES

    return len(CASES)


def parameters(name):
    from experiments.communication import MODELS
    from minitransformer.inspection.activation_memory import count_parameters

    return count_parameters(MODELS[name].config(0.1))


def crossing_with_sums():
    from experiments.table1 import HEADS, WIDTH

    return round(4 * WIDTH**2 / (2 * WIDTH + HEADS))


def activation_megabytes(**fields):
    """What a step of the base model keeps, as `summary base --activations` counts it, for 8 pairs of 1,024 tokens."""
    from minitransformer.inspection.activation_memory import kept_activations
    from minitransformer.models import named_config

    kept = kept_activations(named_config("base", 37_000, **fields), 8, 1024, 1024)
    return round(sum(array.bytes * array.count for array in kept) / 1e6)


def precision_results(stable=False):
    """How many results of the precision are recorded, or of these as exact as a stable formula."""
    from tests.precision.page import read_lines

    return sum(not (stable and line.stands_out) for line in read_lines())


def known_mistakes():
    from minitransformer.exercises import find_exercises

    return sum(len(task.mistakes) for exercise in find_exercises() for task in exercise.tasks)


def lessons():
    from minitransformer.course import find_lessons

    return len(find_lessons(ROOT / "lessons"))


def judged_layers():
    from tests.gradcheck.judged import RIGHT, WRONG

    return len(RIGHT) + len(WRONG)


def mutation_changes():
    (table,) = json.loads((RECORDS / "mutation.json").read_text("utf-8"))["tables"]
    return sum(int(line[1].replace(",", "")) for line in table["cells"])


def lines_of(name):
    return len((ROOT / "lessons" / "one_file" / f"{name}.py").read_text("utf-8").splitlines())


def lines_of_scalar_gpt():
    lines = (ROOT / "tests" / "lessons" / "scalar.py").read_text("utf-8").splitlines()
    return lines.index("def as_values(arrays):") - lines.index("class Value:") - 2  # without the blank lines after it


FACTS = {
    "rows of gradcheck": Fact(r"(?<!with )(?<!of )\b(\d{2,}) (?:proven )?rows\b(?! of one)", gradcheck_rows),
    "bugs in the museum": Fact(r"(?<!of the )\b(\d+) (?:planted )?bugs\b", planted_bugs),
    "cases of algebra": Fact(r"diagonals: about\s+(\d+)\s+cases", algebra_cases),
    "gradients of the base model": Fact(r"\b([\d,]{8,}) gradients\b", lambda: parameters("base")),
    "parameters of the base model": Fact(r"base model, ([\d,]{8,}) parameters\b", lambda: parameters("base")),
    "parameters N of base": Fact(r"parameters N \| ([\d,]+) \|", lambda: parameters("base")),
    "parameters N of big": Fact(r"parameters N \| [\d,]+ \| ([\d,]+) \|", lambda: parameters("big")),
    "where attention meets the LSTM": Fact(r"/ \(2 d \+ h\) = (\d+)", crossing_with_sums),
    "results of the precision": Fact(r"\b(\d{3,}) results\b", precision_results),
    "exact results": Fact(r"\b(\d{3,})(?: of them)? within (?:10|ten) times", lambda: precision_results(stable=True)),
    "known mistakes": Fact(r"\b(\d{3,}) known mistakes\b", known_mistakes),
    "lessons": Fact(r"\b(\d{2}) \[?lessons\b", lessons),
    "judged layers": Fact(r"\b(\d{2,}) layers as readers", judged_layers),
    "memory of full attention": Fact(r"\b([\d,]+) MB with full attention", activation_megabytes),
    "memory of tiles": Fact(r"\b([\d,]+) MB with tiled or windowed", lambda: activation_megabytes(attention="tiled")),
    "memory of linear attention": Fact(
        r"\b([\d,]+)\s+MB with linear attention", lambda: activation_megabytes(attention="linear")
    ),
    "memory of two key heads": Fact(
        r"\b([\d,]+) MB with tiled attention and two", lambda: activation_megabytes(attention="tiled", num_kv_heads=2)
    ),
    "lines of the paper in one file": Fact(r"\b(\d+) lines of NumPy", lambda: lines_of("transformer")),
    "lines of the GPT in one file": Fact(r"\b(\d+) lines, with training", lambda: lines_of("gpt")),
    "lines of the GPT of single numbers": Fact(r"\b(\d+) lines, without", lines_of_scalar_gpt),
    "changes of the source": Fact(r"\b(?:of|these|all) ([\d,]{4,}) changes\b", mutation_changes),
}


def with_facts(text):
    """A text in which every fact has the number that the code computes; recorded tables stay as they were measured."""
    parts = re.split(r"(<!-- table: .*?<!-- end -->)", text, flags=re.DOTALL)
    for fact in FACTS.values():
        parts[::2] = [re.sub(fact.pattern, functools.partial(corrected, fact), part) for part in parts[::2]]
    return "".join(parts)


def corrected(fact, match):
    """What matched the pattern of a fact, with the right number."""
    start, end = (place - match.start() for place in match.span(1))
    value = fact.value()
    if re.search(r"\babout\s$", match.string[: match.start(1)]):
        written = int(match[1].replace(",", ""))
        value = written if abs(written - value) <= 0.05 * value else round(value, 2 - len(str(value)))
    return f"{match[0][:start]}{value:,}{match[0][end:]}"


def prose(text):
    """A page without its generated tables, code, addresses, dates, versions, and what FACTS hold."""
    text = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(
        r"`[^`]*`|\bet al\.,? \d{4}|\(\d{4}|\]\([^)]*\)|src=\"[^\"]*\"|https?://\S+|\b\d{4}-\d\d-\d\d\b", " ", text
    )
    text = re.sub(r"\b(?:Python|NumPy|PyTorch|CuPy|CUDA|OpenBLAS|mpi4py|MPICH|Chromium|[Ss]ections?) [\d.]+", " ", text)
    for fact in FACTS.values():
        text = re.sub(fact.pattern, " ", text)
    return text


def numbers(text):
    """Each number of a prose with the word that follows it."""
    return [" ".join(match.split()) for match in re.findall(NUMBER + r"(?:\s?(?:%|[^\W\d]+))?", prose(text))]


def sections(text):
    """{heading: text} of a page."""
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    return {
        "": parts[0],
        **{heading.lstrip("# "): body for heading, body in zip(parts[1::2], parts[2::2], strict=True)},
    }


def stated_numbers():
    """{page: {section: {"measured": dates, "numbers": [...]}}} of the prose of docs/ as it is now."""
    stated = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        dates = sorted(set(re.findall(r"\b\d{4}-\d\d-\d\d\b", text)))
        for heading, body in sections(text).items():
            if found := numbers(body):
                here = sorted(set(re.findall(r"\b\d{4}-\d\d-\d\d\b", body))) or dates
                stated.setdefault(page.name, {})[heading] = {"measured": here, "numbers": found}
    return stated


@functools.cache
def write_tables():
    """docs/write_tables.py as a module."""
    spec = importlib.util.spec_from_file_location("write_tables", DOCS / "write_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records():
    """The names of all records that have tables."""
    return write_tables().names()


@functools.cache
def recorded():
    """Every number of the records: those of tables, and those of prose."""
    pages = json.loads((RECORDS / "stated.json").read_text("utf-8"))
    texts = [text for page in pages.values() for section in page.values() for text in section["numbers"]]
    texts += [cell for name in records() for table in write_tables().tables(write_tables().read(name))
              for line in (table.columns, *table.cells) for cell in line]  # fmt: skip
    return {plain(number) for text in texts for number in re.findall(NUMBER, text)}


def plain(number):
    return number.lstrip("+").replace(",", "").rstrip(".")


def unrecorded(text):
    """The numbers of a text that no record has; those below 13 without a decimal are not looked at."""
    found = [plain(number) for number in re.findall(NUMBER, prose(text))]
    return [number for number in found if number not in recorded() and (not number.isdigit() or int(number) > 12)]


def torn_rows(text):
    """Table rows of a text with at least three decimals that do not stand together in one row of a record."""
    lines = [
        {plain(number) for cell in line for number in re.findall(NUMBER, cell)}
        for name in records()
        for table in write_tables().tables(write_tables().read(name))
        for line in table.cells
    ]
    found = []
    for row in re.findall(r"^\|.*\|$", text, flags=re.MULTILINE):
        measured = {number for number in map(plain, re.findall(NUMBER, prose(row))) if "." in number}
        if len(measured) >= 3 and row.count("|") > 4 and not any(measured <= line for line in lines):
            found.append(row)
    return found
