"""The numbers of README and of the pages in docs/ are those of the code, or those of a record."""

import json
import re

import pytest

from experiments import communication, running, table1
from tests import numbers
from tests.numbers import PAGES, RECORDS, ROOT

README = ROOT / "README.md"


def test_what_the_code_can_count_is_what_the_pages_say():
    texts = {page.name: page.read_text("utf-8") for page in (README, *PAGES)}
    wrong = [name for name, text in texts.items() if numbers.with_facts(text) != text]
    assert wrong == [], "python docs/write_tables.py writes them again"


def test_a_count_is_written_with_its_commas_and_neither_the_sentence_nor_a_recorded_table_changes():
    table = "<!-- table: name -->\n| 12 rows |\n<!-- end -->"
    text = f"12 rows, worst 1e-14, all 1,234,567 gradients of 3 bugs,\n9 planted bugs {table}, the 4 bugs of the museum"
    rows, bugs = numbers.gradcheck_rows(), numbers.planted_bugs()
    assert numbers.with_facts(text) == (
        f"{rows} rows, worst 1e-14, all {numbers.parameters('base'):,} gradients of {bugs} bugs,\n"
        f"{bugs} planted bugs {table}, the {bugs} bugs of the museum"
    )


def test_a_count_after_about_is_written_again_when_it_is_more_than_5_percent_off():
    rows = numbers.gradcheck_rows()
    for near in (int(0.96 * rows), int(1.04 * rows)):
        assert numbers.with_facts(f"about {near} rows") == f"about {near} rows"
    for far in (int(0.94 * rows), int(1.06 * rows)):
        assert numbers.with_facts(f"about\n{far} rows") == f"about\n{round(rows, -1)} rows"


def test_tables_are_those_of_their_records():
    texts = {page.name: page.read_text("utf-8") for page in PAGES}
    stale = [name for name, text in texts.items() if numbers.write_tables().with_tables(text) != text]
    assert stale == [], "python docs/write_tables.py writes them again"


def test_measured_numbers_of_the_prose_are_those_that_were_recorded():
    recorded = json.loads((RECORDS / "stated.json").read_text("utf-8"))
    stated = {name: {part: here["numbers"] for part, here in parts.items()} for name, parts in recorded.items()}
    found = {
        name: {part: here["numbers"] for part, here in parts.items()}
        for name, parts in numbers.stated_numbers().items()
    }
    assert found == stated, "after a change on purpose: python docs/write_tables.py --state"


def test_the_readme_has_no_number_that_is_in_no_record():
    assert numbers.unrecorded(README.read_text("utf-8")) == []
    assert numbers.torn_rows(README.read_text("utf-8")) == []


def test_every_record_says_how_it_was_made_and_a_page_shows_it_or_leads_to_it():
    found = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        found |= {match[2] for match in numbers.write_tables().BLOCK.finditer(text)}
        found |= set(re.findall(r"\]\(records/([\w-]+)\.json\)", text))
    assert found == set(numbers.records())
    for name in numbers.records():
        record = numbers.write_tables().read(name)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
        assert record["command"]
        assert record["machine"]


def test_recorded_rows_can_be_read_by_their_experiments():
    for name in numbers.records():
        record = numbers.write_tables().read(name)
        if "rows" in record:
            assert running.find(record["experiment"]).tables(record["rows"])
            assert isinstance(running.find(record["experiment"]).findings(record["rows"]), list)


@pytest.mark.parametrize(
    "n",
    [
        16,
        pytest.param(32, marks=pytest.mark.exhaustive),
        *(pytest.param(n, marks=pytest.mark.weekly) for n in (64, 128, 256, 512, 1024)),
    ],
)
@pytest.mark.parametrize("kind", [kind for kind in table1.KINDS if kind != "dilated"])
def test_recorded_counts_of_table_1_are_those_of_the_code(kind, n):
    rows = numbers.write_tables().read("table1")["rows"]["layers"]
    (recorded,) = (row for row in rows if (row["kind"], row["n"]) == (kind, n))
    assert recorded == {**table1.count(kind, n, seed=0), "milliseconds": recorded["milliseconds"]}


@pytest.mark.exhaustive
def test_recorded_paths_of_table_1_are_those_of_the_code():
    recorded = {row["kind"]: row for row in numbers.write_tables().read("table1")["rows"]["paths"]}
    assert recorded == {kind: table1.path(kind, table1.DISTANCE, seed=0) for kind in table1.KINDS}


def test_recorded_simulation_is_that_of_the_recorded_steps():
    rows = numbers.write_tables().read("communication")["rows"]
    steps = {step["model"]: step for step in rows["steps"]}
    for name, step in steps.items():
        assert step["parameters"] == numbers.parameters(name)
        assert step["tokens"] == communication.MODELS[name].tokens
    simulated = [row for case in communication.cases(steps) for row in communication.simulate(*case)]
    assert rows["simulated"] == simulated


def test_recorded_fits_are_those_of_the_recorded_sums():
    rows = numbers.write_tables().read("communication")["rows"]
    for processes in (2, 3, 4):
        found = communication.fit([row for row in rows["sums"] if row["processes"] == processes])
        (recorded,) = (row for row in rows["fits"] if row["processes"] == processes)
        for name in ("latency", "bandwidth", "largest factor"):
            assert recorded[name] == pytest.approx(found[name], rel=0.1)  # of sums that were rounded to microseconds


@pytest.mark.parametrize("kind", ["LSTM, forget bias 0", "LSTM, forget bias log n", "attention, even"])
def test_recorded_gradients_are_those_of_the_code(kind):
    from experiments import gradient_reach

    for row in numbers.write_tables().read("gradient-reach")["rows"]["gradients"]:
        if row["layer"] == kind and row["distance"] <= 64:
            assert f"{gradient_reach.reach(kind, row['distance'] + 1, 0):.0e}" == f"{row['norm']:.0e}"
