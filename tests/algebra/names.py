"""Expressions in which every value of exp, log, tanh, a root or a reciprocal has a name, and their derivatives.

The named value of `tanh(x W + b)` is a symbol of its own, so that all that is computed is a polynomial in the inputs
and the names. A recurrent network of two steps stays small, and whether two results are equal is decided exactly, in
SymPy's rings of polynomials. If a difference is 0 for arbitrary values of the names, it is 0 for the values that they
stand for. `vanishes` also uses what is known about them: exp(a) exp(-a) = 1, a root squared is what it is the root of,
and a reciprocal times its number is 1.

Derivatives follow the chain rule: SymPy differentiates the polynomials, and RULES the named functions.
"""

from collections.abc import Iterable
from typing import NamedTuple

import sympy
from sympy.polys.rings import PolyElement, PolyRing


class Definition(NamedTuple):
    """What a name stands for: a function of an expression that may contain earlier names."""

    function: str
    argument: sympy.Expr


# f'(a), from the name of f(a) and a
RULES = {
    "exp": lambda value, argument: value,
    "log": lambda value, argument: reciprocal(argument),
    "tanh": lambda value, argument: 1 - value**2,
    "sqrt": lambda value, argument: 1 / (2 * value),
    "reciprocal": lambda value, argument: -(value**2),
}
POSITIVE = ("exp", "sqrt")

_definitions: dict[sympy.Symbol, Definition] = {}  # in the order in which they were made
_names: dict[Definition, sympy.Symbol] = {}


def named(function: str, argument: sympy.Expr) -> sympy.Symbol:
    """The symbol for `function(argument)`, the same one for the same argument."""
    meaning = Definition(function, argument)
    if meaning not in _names:
        sign = {"positive": True} if function in POSITIVE else {"real": True}
        symbol = sympy.Symbol(f"{function}_{len(_names)}", **sign)
        _names[meaning], _definitions[symbol] = symbol, meaning
    return _names[meaning]


def definition(name: sympy.Symbol) -> Definition:
    """What a name stands for."""
    return _definitions[name]


def exp(x: sympy.Expr) -> sympy.Expr:
    """exp(a + b) is exp(a) exp(b), with a name for each; exp(-a) is one over exp(a), and exp(log(a)) is a."""
    if x == -sympy.oo:
        return sympy.S.Zero
    product = sympy.S.One
    for term in sympy.Add.make_args(sympy.expand(x)):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Integer:
            factor, rest = sympy.sign(factor), abs(factor) * rest
        if factor == 0:
            continue
        if rest in _definitions and definition(rest).function == "log":
            argument = definition(rest).argument
            product *= (argument if factor > 0 else reciprocal(argument)) ** abs(factor)
        else:
            product *= named("exp", rest) ** factor
    return product


def log(x: sympy.Expr) -> sympy.Expr:
    """log(1) is 0; other values have names."""
    return sympy.S.Zero if x == 1 else named("log", x)


def tanh(x: sympy.Expr) -> sympy.Expr:
    """The limits are -1 and 1; other values have names."""
    limits = {sympy.oo: sympy.S.One, -sympy.oo: sympy.S.NegativeOne, sympy.S.Zero: sympy.S.Zero}
    return limits[x] if x in limits else named("tanh", x)


def sqrt(x: sympy.Expr) -> sympy.Expr:
    """A positive root."""
    return sympy.sqrt(x) if x.is_number else named("sqrt", x)


def reciprocal(x: sympy.Expr) -> sympy.Expr:
    """1 / x. Only sums get a name: SymPy cancels powers of a symbol by itself."""
    if isinstance(x, sympy.Mul):
        return sympy.Mul(*map(reciprocal, x.args))
    if isinstance(x, sympy.Pow):
        return reciprocal(x.base) ** x.exp
    if x in _definitions and definition(x).function == "reciprocal":
        return definition(x).argument
    if not isinstance(x, sympy.Add):
        return 1 / x
    factor, rest = x.primitive()
    return named("reciprocal", rest) / factor


class Gradient:
    """The derivatives of `loss` with respect to every symbol, by the chain rule; `others` can be compared with them."""

    def __init__(self, loss: sympy.Expr, others: Iterable[sympy.Expr]) -> None:
        self.polynomials = Polynomials([loss, *others])
        self.by_symbol = dict.fromkeys(self.polynomials.symbols, self.polynomials.ring.zero)
        self._spread(self.polynomials.of(loss), self.polynomials.ring.one)
        for symbol in reversed(_definitions):  # a name depends on earlier ones only
            upstream = self.by_symbol.get(symbol)
            if upstream:
                function, argument = _definitions[symbol]
                slope = self.polynomials.of(RULES[function](symbol, argument))
                self._spread(self.polynomials.of(argument), self.polynomials.shortened(upstream * slope))

    def _spread(self, polynomial: PolyElement, factor: PolyElement) -> None:
        """Add `factor` times the derivatives of `polynomial` to those of the loss."""
        for symbol, derivative in self.polynomials.derivatives(polynomial):
            self.by_symbol[symbol] += self.polynomials.shortened(factor * derivative)

    def equals(self, symbol: sympy.Symbol, expression: sympy.Expr) -> bool:
        """Whether the derivative with respect to `symbol` is `expression`, for all values of all symbols."""
        mine = self.by_symbol.get(symbol, self.polynomials.ring.zero)
        return self.polynomials.vanishes(mine - self.polynomials.of(expression))


class Polynomials:
    """Turns expressions into polynomials over the rational numbers, in their symbols and one over each of their names.

    One over a name is a generator of its own; `shortened` cancels the two.
    """

    def __init__(self, expressions: Iterable[sympy.Expr]) -> None:
        self.symbols = _all_symbols(expressions)
        self.inverses = [s for s in self.symbols if s.is_positive]
        generators = [*self.symbols, *(sympy.Symbol(f"1/{s.name}") for s in self.inverses)]
        self.ring = PolyRing(generators, sympy.QQ, "lex")
        self.place = {s: i for i, s in enumerate(self.symbols)}
        self.inverse_place = {s: len(self.symbols) + i for i, s in enumerate(self.inverses)}
        self._known: dict[sympy.Expr, PolyElement] = {}

    def of(self, expression: sympy.Expr) -> PolyElement:
        """The expression as a polynomial. What occurs twice is converted once."""
        if expression not in self._known:
            self._known[expression] = self._convert(expression)
        return self._known[expression]

    def _convert(self, expression):
        if expression.is_Rational:
            return self.ring.ground_new(sympy.QQ.from_sympy(expression))
        if expression.is_Symbol:
            return self.ring.gens[self.place[expression]]
        if expression.is_Add:
            return sum(map(self.of, expression.args), self.ring.zero)
        if expression.is_Mul:
            product = self.ring.one
            for factor in expression.args:
                product = product * self.of(factor)
            return self.shortened(product)
        if expression.is_Pow and expression.exp.is_Integer:
            if expression.exp > 0:
                return self.shortened(self.of(expression.base) ** int(expression.exp))
            return self.ring.gens[self.inverse_place[expression.base]] ** int(-expression.exp)
        raise TypeError(f"no polynomial: {expression}")

    def shortened(self, polynomial: PolyElement) -> PolyElement:
        """The same with s times 1/s cancelled everywhere."""
        if not self.inverses:
            return polynomial
        pairs = [(self.place[s], self.inverse_place[s]) for s in self.inverses]
        result = self.ring.zero
        for powers, factor in polynomial.items():
            if any(powers[len(self.symbols) :]):
                changed = list(powers)
                for up, down in pairs:
                    common = min(powers[up], powers[down])
                    changed[up] -= common
                    changed[down] -= common
                powers = tuple(changed)
            result[powers] = result.get(powers, 0) + factor
        result.strip_zero()
        return result

    def derivatives(self, polynomial: PolyElement) -> Iterable[tuple[sympy.Symbol, PolyElement]]:
        """The partial derivatives with respect to all symbols in it, those of 1/s included."""
        degrees = polynomial.degrees()
        for symbol, i in self.place.items():
            derivative = polynomial.diff(i) if degrees[i] > 0 else self.ring.zero
            j = self.inverse_place.get(symbol)
            if j is not None and degrees[j] > 0:
                derivative -= polynomial.diff(j) * self.ring.gens[j] ** 2
            if derivative:
                yield symbol, derivative

    def vanishes(self, polynomial: PolyElement) -> bool:
        """Whether it is 0 for all values of the symbols, with each name having the value that it stands for."""
        polynomial = self.shortened(polynomial)
        for symbol in [symbol for symbol in reversed(_definitions) if symbol in self.place]:
            function, argument = _definitions[symbol]
            place = self.place[symbol]
            if not polynomial:
                return True
            if function == "reciprocal":
                polynomial = self._without(polynomial, place, self.of(argument))
            elif function == "sqrt":
                polynomial = self._without(polynomial, self.inverse_place[symbol], self.ring.gens[place])
                polynomial = self._without_squares(polynomial, place, self.of(argument))
        return not polynomial

    def _without(self, polynomial, place, other):
        """Times such a power of `other`, which is one over the generator at `place`, that this generator disappears."""
        highest = polynomial.degrees()[place]
        if highest <= 0:
            return polynomial
        parts = [self.ring.zero for _ in range(highest + 1)]
        for powers, factor in polynomial.items():
            rest = list(powers)
            rest[place] = 0
            parts[highest - powers[place]][tuple(rest)] = factor
        result = self.ring.zero
        for part in reversed(parts):  # Horner's rule
            result = result * other + part
        return self.shortened(result)

    def _without_squares(self, polynomial, place, square):
        result = self.ring.zero
        for powers, factor in polynomial.items():
            rest = list(powers)
            rest[place] %= 2
            result += self.ring.term_new(tuple(rest), factor) * square ** (powers[place] // 2)
        return self.shortened(result)


def _all_symbols(expressions: Iterable[sympy.Expr]) -> list[sympy.Symbol]:
    """The symbols in the expressions, in what their names stand for, and in the slopes of these."""
    found, waiting = {}, list(expressions)
    while waiting:
        for symbol in sorted(waiting.pop().free_symbols - found.keys(), key=str):
            found[symbol] = None
            if symbol in _definitions:
                function, argument = _definitions[symbol]
                waiting += [argument, RULES[function](symbol, argument)]
    return list(found)
