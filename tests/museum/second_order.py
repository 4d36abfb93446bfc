"""Which bugs of the museum does the symmetry of the Hessian find, and which are the gradient of another function?"""

import functools
import sys
from pathlib import Path

import minitransformer
from minitransformer.gradcheck.report import OK
from minitransformer.gradcheck.subjects import SUBJECTS
from tests.museum.search import plain

# bugs that symmetry cannot find, and the function whose gradient they are
STILL_A_GRADIENT = {
    "the loss's gradient is divided by the number of tokens twice": "of the loss divided by the number of tokens",
    "the loss's gradient is divided by B instead of B T": "of the loss times the mean number of tokens in a sequence",
    "label smoothing is left out of the backward": "of the cross-entropy without label smoothing",
    "the gradient of a block is not weighted by its share": "of the sum of the blocks' mean losses",
    "learnt positions forget where the sequence started": "of the layer that adds the positions from 0 on",
    "every decoded token gets the vector of the first position": "of the right layer: the forward pass is wrong",
    "upstream gradients of padding flow into the LSTM": "of the LSTM that outputs its carried state in padding",
    "upstream gradients of padding flow into the GRU": "of the GRU that outputs its carried state in padding",
    "the GRU's output in padding is the state that it carries": "of the right GRU: the forward pass is wrong",
}
PACKAGE = str(Path(minitransformer.__file__).parent)


@functools.cache
def codes_of_rows():
    """{name of a row: the code objects of the package that it runs}"""
    return {name: _codes(subject) for name, subject in SUBJECTS.items()}


def _codes(subject):
    codes = set()

    def note(frame, event, argument):
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        subject.check_second_order(differences=False)
    finally:
        sys.setprofile(None)
    return {code for code in codes if code.co_filename.startswith(PACKAGE)}


def rows_that_run(exhibit):
    """The rows of the table that run the bug, the quickest first."""
    changed = {plain(function).__code__ for function in (exhibit.function, *(change[0] for change in exhibit.also))}
    names = [name for name, codes in codes_of_rows().items() if codes & changed]
    return [SUBJECTS[name] for name in sorted(names, key=lambda name: len(codes_of_rows()[name]))]


def finds(check, subjects):
    """The name of the first row whose check does not pass, None if all pass."""
    for subject in subjects:
        try:
            passed = check(subject).verdict == OK
        except Exception:  # the bug breaks a shape or a type
            passed = False
        if not passed:
            return subject.name
    return None


def verdicts(exhibit):
    """(row whose gradients are wrong, row whose Hessian is not symmetric), None for neither."""
    rows = rows_that_run(exhibit)
    with exhibit.planted():
        first = finds(lambda subject: subject.check(max_entries=0, directions=1), rows)
        second = finds(lambda subject: subject.check_second_order(differences=False), rows) if first else None
    return first, second
