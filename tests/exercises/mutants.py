"""Wrong answers that nobody has written down: right ones with one random change of a sign, a scale, an axis, a term."""

import ast
import copy

SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


def mutants(text):
    """Every single change of `text` -> [(what was done, the changed text)]."""
    tree = ast.parse(text)
    found = []
    for index, node in enumerate(ast.walk(tree)):
        for what, change in changes(node):
            changed = copy.deepcopy(tree)
            change(list(ast.walk(changed))[index])
            found.append(
                (f"{what} in line {getattr(node, 'lineno', '?')}", ast.unparse(ast.fix_missing_locations(changed)))
            )
    return found


def changes(node):
    """What can be done to one node -> (name, a function that does it in place)."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield "swapped an operator", lambda node: setattr(node, "op", SWAPPED[type(node.op)]())
        if isinstance(node.op, ast.Add | ast.Sub):
            yield "dropped a term", drop_right
        if isinstance(node.op, ast.Mult | ast.Div):
            yield "dropped a factor", drop_right
    if isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED:
        yield "swapped an operator", lambda node: setattr(node, "op", SWAPPED[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "dropped a sign", lambda node: setattr(node, "op", ast.UAdd())
    if isinstance(node, ast.keyword) and node.arg == "axis":
        yield "took another axis", other_axis
    if isinstance(node, ast.Return) and node.value is not None:
        yield "doubled what is returned", double


def drop_right(node):
    """a + b becomes a + 0, and a b becomes a 1."""
    node.right = ast.Constant(0.0 if isinstance(node.op, ast.Add | ast.Sub) else 1.0)


def other_axis(node):
    """The last axis becomes the first, any other the last."""
    value = ast.unparse(node.value)
    node.value = ast.Constant(0 if value == "-1" else -1)


def double(node):
    """The first, or only, thing that is returned."""
    value = node.value
    if isinstance(value, ast.Tuple):
        value.elts[0] = ast.BinOp(value.elts[0], ast.Mult(), ast.Constant(2.0))
    else:
        node.value = ast.BinOp(value, ast.Mult(), ast.Constant(2.0))
