"""The mutations: what each piece of a function can be changed into.

`changes(node)` gives the nodes that can replace a node of the syntax tree. Every change is small and could be a slip of
the pen. What only words an error message, or runs on a GPU alone, is left as it is.
"""

import ast
import copy

BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# the other side of the boundary, and the opposite
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
# functions whose arguments can change places, or mean nothing then
SYMMETRIC = {"max", "min", "maximum", "minimum", "add", "multiply", "logical_and", "logical_or", "hypot"}
SYMMETRIC |= {
    "isinstance",
    "getattr",
    "hasattr",
    "setattr",
    "array_equal",
    "row_dot",
    "column_dot",
    "result_type",
    "broadcast_shapes",
}
TRANSPOSES = {"swapaxes", "transpose"}


def changes(node, parent=None):
    """The nodes that can replace `node`, which stands in `parent`."""
    if number_of(node) == -1 and isinstance(parent, ast.Call) and name_of(parent) == "reshape":
        return []  # every negative number means the same, and 0 is an error
    return [change for rule in RULES.get(type(node), ()) for change in rule(node)]


def is_left_out(node):
    """Whether nothing inside `node` is changed: messages, docstrings, annotations, and what only a GPU runs."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
        return True
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        return test == "TYPE_CHECKING" or "'cupy'" in test
    return False


def name_of(call):
    """The last part of the name of what is called."""
    return ast.unparse(call.func).split(".")[-1]


def with_parts(node, **parts):
    """A copy of `node` with other parts; the rest is shared."""
    new = copy.copy(node)
    for name, value in parts.items():
        setattr(new, name, value)
    return new


def swapped(items):
    """`items` with two neighbours swapped, each pair in turn, unless they look the same."""
    for i in range(len(items) - 1):
        if ast.dump(items[i]) != ast.dump(items[i + 1]):
            yield [*items[:i], items[i + 1], items[i], *items[i + 2 :]]


def binary(node):
    yield with_parts(node, op=BINARY[type(node.op)]())
    if isinstance(node.op, ast.MatMult):
        yield with_parts(node, left=node.right, right=node.left)


def number_of(node):
    """The number that a constant is, also a negative one; else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number_of(node.operand)
        return None if value is None else -value
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if type(value) in (int, float) else None


def constant(node):
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif type(node.value) is int:
        yield ast.Constant(node.value + 1)
    elif type(node.value) is float:
        yield ast.Constant(2.0 * node.value or 1.0)


def unary(node):
    number = number_of(node)
    if number is None:
        if not isinstance(node.op, ast.UAdd):
            yield node.operand
    elif type(number) is int:
        yield from (ast.parse(str(new), mode="eval").body for new in (number - 1, number + 1))
    else:
        yield node.operand


def comparison(node):
    for i, op in enumerate(node.ops):
        for new in COMPARISONS[type(op)]:
            yield with_parts(node, ops=[*node.ops[:i], new(), *node.ops[i + 1 :]])


def boolean(node):
    yield with_parts(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def condition(node):
    """The condition of `if`, `while` and `a if b else c`."""
    # without an end, `while True` would only be slow to notice
    for value in (False,) if isinstance(node, ast.While) else (True, False):
        yield with_parts(node, test=ast.Constant(value))
    opposite = isinstance(node.test, ast.Compare) or (
        isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    )
    if not opposite:  # those get it from the comparison, or without the `not`
        yield with_parts(node, test=ast.UnaryOp(ast.Not(), node.test))


def filters(node):
    """The conditions in a comprehension."""
    for i in range(len(node.ifs)):
        yield with_parts(node, ifs=[*node.ifs[:i], *node.ifs[i + 1 :]])


def call(node):
    name = name_of(node)
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if name not in SYMMETRIC | TRANSPOSES and not starred:
        yield from (with_parts(node, args=args) for args in swapped(node.args))
    if name in TRANSPOSES:
        module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("xp", "np")
        yield node.args[0] if module else node.func.value


def attribute(node):
    if node.attr == "T" and isinstance(node.ctx, ast.Load):
        yield node.value


def bounds(node):
    """Off by one; a constant bound is changed as a constant."""
    for name in ("lower", "upper"):
        bound = getattr(node, name)
        if bound is not None and number_of(bound) is None:
            yield with_parts(node, **{name: ast.BinOp(bound, ast.Add(), ast.Constant(1))})


def result(node):
    if isinstance(node.value, ast.Tuple):
        yield from (
            with_parts(node, value=with_parts(node.value, elts=elements)) for elements in swapped(node.value.elts)
        )


def expression_statement(node):
    if not isinstance(node.value, ast.Yield | ast.YieldFrom):
        yield ast.Pass()


def write(node):
    """What writes into an array or an object; without a new local name, nothing would run at all."""
    if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
        yield ast.Pass()


def update(node):
    yield with_parts(node, op=BINARY[type(node.op)]())
    yield ast.Assign([node.target], node.value)
    yield ast.Pass()


RULES = {
    ast.BinOp: (binary,),
    ast.Constant: (constant,),
    ast.UnaryOp: (unary,),
    ast.Compare: (comparison,),
    ast.BoolOp: (boolean,),
    ast.If: (condition,),
    ast.While: (condition,),
    ast.IfExp: (condition,),
    ast.comprehension: (filters,),
    ast.Call: (call,),
    ast.Attribute: (attribute,),
    ast.Slice: (bounds,),
    ast.Return: (result,),
    ast.Expr: (expression_statement,),
    ast.Assign: (write,),
    ast.AugAssign: (update,),
}
