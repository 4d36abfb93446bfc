"""What is known to be equivalent, what the last run found, the table and the list of survivors."""

import collections
import json
from pathlib import Path

from tests.mutation.judging import KILLED, SURVIVED, TIMED_OUT
from tests.mutation.measuring import ROOT
from tests.mutation.mutants import Key

EQUIVALENT = Path(__file__).with_name("equivalent.json")
FOLDER = ROOT / "runs" / "mutation"


def read_equivalents():
    """{Key: reason} of the mutants that no test can notice."""
    return {key_of(row): row["reason"] for row in json.loads(EQUIVALENT.read_text("utf-8"))}


def key_of(row):
    """The Key of a line of a file."""
    return Key(row["function"], row["line"], row["change"], row.get("number", 1))


def line_of(key, **more):
    """A line of a file, to be read again by `key_of`; a line like this, with a reason, belongs to equivalent.json."""
    number = {"number": key.number} if key.number != 1 else {}
    return json.dumps(
        {"function": key.function, "line": key.line, "change": key.change, **number, **more}, ensure_ascii=False
    )


class Results:
    """The verdicts of one run; kept in a file, so that a later run can try the survivors alone."""

    def __init__(self, name):
        self.path = FOLDER / f"{name}.json"
        self.verdicts = {}  # {Key: Verdict}

    def read(self):
        """{Key: outcome} of the last run of the same modules."""
        if not self.path.exists():
            return {}
        return {key_of(row): row["outcome"] for row in json.loads(self.path.read_text("utf-8"))}

    def write(self, outcomes):
        """Keep the outcomes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [line_of(key, outcome=outcome) for key, outcome in outcomes.items()]
        self.path.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")


def table(mutants, outcomes, equivalents):
    """The lines of the table: one for each module, and one for all."""
    counts = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        outcome = "equivalent" if mutant.key in equivalents else outcomes.get(mutant.key, "not tried")
        for name in (module_of(mutant), "all"):
            counts[name][outcome] += 1
    counts["all"] = counts.pop("all", collections.Counter())
    yield f"{'module':<34}{'mutants':>8}{'killed':>8}{'survived':>9}{'equivalent':>11}{'timed out':>10}{'score':>8}"
    for name, count in counts.items():
        judged = count[KILLED] + count[SURVIVED] + count[TIMED_OUT]
        score = f"{100 * count[KILLED] / judged:.1f} %" if judged else ""
        total = judged + count["equivalent"]
        numbers = (
            f"{total:>8,}{count[KILLED]:>8,}{count[SURVIVED]:>9,}{count['equivalent']:>11,}{count[TIMED_OUT]:>10,}"
        )
        yield f"{name:<34}{numbers}{score:>8}"


def module_of(mutant):
    """Such as layers.linear."""
    return mutant.function.__module__.removeprefix("minitransformer.")


def survivors(judged):
    """The lines of the list of all that was not killed, from [(Mutant, Verdict)]."""
    for mutant, verdict in judged:
        if not verdict.killed:
            effort = f"{verdict.tried} of {verdict.fitting} checks tried" if verdict.fitting else "no check runs it"
            slow = f", {verdict.by} did not end" if verdict.outcome == TIMED_OUT else ""
            yield f"{verdict.outcome}  {Path(mutant.file).relative_to(ROOT)}:{mutant.line}  ({effort}{slow})"
            yield f"    - {mutant.key.line}"
            yield f"    + {mutant.key.change}"
            yield f"    {line_of(mutant.key, reason='')},"
            yield ""
