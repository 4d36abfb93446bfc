"""Proofs by algebra: the library's own functions run on symbols, and backward is compared with SymPy's derivatives.

symbols.py          the array module of symbols; names.py: its expressions, their derivatives, and when two are equal
pairs.py            what is stated about a pair of functions, and whether it holds
cases_*.py          one case for each branch of each pair
test_pairs.py       every pair of `minitransformer.functional` is proven, nothing is left out, and a bug is noticed
test_docstrings.py  the formulas of the docstrings are the derivatives of the code
test_symbols.py     forward on symbols is forward on numbers, with numbers for the symbols
test_names.py       two forms of one expression are equal, and different ones are not
"""
