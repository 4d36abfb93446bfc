"""All cases: every function that has a backward, and those that compute something by themselves."""

from tests.precision.cases_attention import ATTENTION
from tests.precision.cases_entries import ENTRIES
from tests.precision.cases_rows import ROWS
from tests.precision.cases_sums import SUMS

CASES = [*ENTRIES, *ROWS, *ATTENTION, *SUMS]
