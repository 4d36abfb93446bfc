"""CuPy's rules without a GPU: a stand-in, the proof that it is strict, and what it proves about the package.

strict.py                   `strict`, the array module; array.py its array, indexing.py what may stand in brackets
meter.py                    what is counted: hidden waits, transfers, dtypes
cupy_api.json               the names and keywords of CuPy, written by freeze_cupy_api.py, read by signatures.py
test_strict.py              each difference between NumPy and CuPy, one a test: what waits, and what is refused
test_training_step.py       the package itself: no waits, no float64, and the bits of NumPy
"""
