"""Without SymPy there is no algebra."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("sympy") else ["test_*.py"]
