"""How exact the functions are in float32 and float64, measured against definitions in 100 digits.

`python -m tests.precision` measures all of them and writes measured.json. The site shows it in docs/floating-point.md.
"""
