"""The operations of random programs: each draws operands from a Program and gives a Step, or raises Unknown where NumPy, or the
bound on what is exact, does not serve. Twins are NumPy's own functions, in the types that the headers name."""

import ast

import numpy as np

import check_expressions as expressions
from check_expressions import Unknown, carrier
from dmath import Argument
from programs import D, FLOATS, INTEGERS, MOST, REAL, Step, convert, ints

UNARY = {"negative": np.negative, "abs": np.absolute, "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "floor": np.floor,
         "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
         "signbit": np.signbit, "logical_not": np.logical_not, "bitwise_invert": np.invert, "positive": np.positive}
BINARY = {"subtract": np.subtract, "divide": np.divide, "floor_divide": np.floor_divide, "remainder": np.remainder,
          "minimum": np.minimum, "maximum": np.maximum, "copysign": np.copysign, "equal": np.equal, "not_equal": np.not_equal,
          "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
          "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
          "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
          "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}
NEEDS_FLOATS = ("isnan", "isinf", "isfinite", "signbit", "floor", "ceil", "trunc", "round", "positive", "sign")
INEXACT = {"exp": np.exp, "log": np.log, "sin": np.sin, "tanh": np.tanh, "cbrt": np.cbrt, "arctan": np.arctan}


def a(p, *numbers):
    return ", ".join(f"a{n}" for n in numbers)


def called(p, text, name, inputs, out, value, arguments=None, **more):
    """dm_<name>(session, inputs, out), or of the arguments in place of both."""
    at = arguments if arguments is not None else [p.handles[i] for i in (*inputs, out)]
    return Step(f"{name}({text or a(p, *inputs, out)})", lambda: getattr(p.c, "dm_" + name)(p.at, *at), [out],
                [convert(value, p.twins[out].dtype)], **more)


def some(t):
    return t.size > 0


def signed_zeros(*arrays):
    """The smaller of 0 and -0 may be either, in NumPy too."""
    if any(x.dtype.kind == "f" and np.any((x == 0) & np.signbit(x)) for x in arrays):
        raise Unknown


def partner(p, i, types=REAL):
    """Another operand that broadcasts with a<i>."""
    shape = p.twins[i].shape

    def fits(t):
        try:
            return np.prod(np.broadcast_shapes(shape, t.shape), dtype="i8") <= MOST
        except ValueError:
            return False
    if p.chance(0.7):
        return p.operand(types, where=fits)
    return p.new(p.types(types), tuple(1 if p.chance(0.3) else n for n in shape[p.integer(0, len(shape) + 1):]), True)


def elementwise(p):
    if p.chance(0.4):
        name, inputs = p.pick(list(UNARY)), [p.operand(FLOATS if p.chance(0.3) else REAL)]
    else:
        name = p.pick(list(BINARY))
        types = INTEGERS + ["?"] if name.startswith("bitwise") else REAL
        inputs = [p.operand(types)]
        inputs.append(partner(p, inputs[0], types))
    if name in NEEDS_FLOATS and p.twins[inputs[0]].dtype.kind != "f":
        raise Unknown
    function = (UNARY | BINARY)[name]
    values = [p.value(i) for i in inputs]
    if name.endswith("imum"):
        signed_zeros(*(v.data for v in values))
    if name in ("isnan", "isinf", "isfinite", "signbit"):
        value = function(values[0].data)
    elif name.startswith("logical"):
        value = function(*[v.data != 0 for v in values])
    else:
        value = expressions.apply(function, values).data
    shape = np.broadcast_shapes(*(p.twins[i].shape for i in inputs))
    out = p.out(shape, REAL, inputs, [i for i in inputs if p.twins[i].shape == shape])
    return called(p, None, name, inputs, out, np.broadcast_to(value, shape))


def choice(p):
    inputs = [p.operand()]
    inputs += [partner(p, inputs[0]), partner(p, inputs[0])]
    try:
        shape = np.broadcast_shapes(*(p.twins[i].shape for i in inputs))
    except ValueError:
        raise Unknown
    value = expressions.choose([p.value(i) for i in inputs]).data
    out = p.out(shape, REAL, inputs, [i for i in inputs if p.twins[i].shape == shape])
    return called(p, None, "where", inputs, out, np.broadcast_to(value, shape))


def linear(p):
    """add, axpby, multiply, scale: factors that are powers of 2, or whole numbers of integers"""
    one = p.operand(REAL[:-1])
    other = partner(p, one, REAL[:-1])
    shape = np.broadcast_shapes(p.twins[one].shape, p.twins[other].shape)
    kind = p.pick(["add", "multiply", "axpby", "scale"])
    inputs = [one] if kind == "scale" else [one, other]
    if kind == "scale":
        shape = p.twins[one].shape
    if kind == "axpby":
        if p.twins[other].shape != shape or one != other and not p.apart(one, other):
            raise Unknown
        out = other
    else:
        out = p.out(shape, REAL[:-1], inputs, [i for i in inputs if p.twins[i].shape == shape])
    types = [p.twins[i].dtype for i in inputs]
    whole = all(t.kind in "iu" for t in [*types, p.twins[out].dtype])
    alpha, beta = p.pick([1, -1, 2, 3] if whole else [1, -1, 2, 0.5]), p.pick([1, -1, 1, 4])
    if whole:
        work = np.dtype("i8")
    else:
        floats = all(t.kind == "f" for t in types)
        work = carrier(np.result_type(*types)) if floats else np.dtype("f8")
    x, y = (np.broadcast_to(p.twins[i].astype(work), shape) for i in (one, other)) if kind != "scale" else (p.twins[one].astype(work),) * 2
    f, g = work.type(alpha), work.type(beta)
    value = {"add": lambda: f * x + g * y, "axpby": lambda: f * x + g * y, "multiply": lambda: f * x * y, "scale": lambda: f * x}[kind]()
    h = p.handles
    arguments = {"add": [D(alpha), h[one], D(beta), h[other], h[out]], "axpby": [D(alpha), h[one], D(beta), h[other]],
                 "multiply": [D(alpha), h[one], h[other], h[out]], "scale": [D(alpha), h[one], h[out]]}[kind]
    return called(p, f"{alpha} a{one}, {beta} a{other}, a{out}", kind, inputs, out, value, arguments)


def mapped(p, text, names, out, value, bound=None):
    """dm_map of names: {"x": number of an array}"""
    rows = (Argument * max(len(names), 1))()
    for at, (name, i) in zip(rows, names.items()):
        at.name, at.array = name.encode(), p.handles[i]
    encoded = text.encode()
    return Step(f"map({text!r}, {names}, a{out})",
                lambda: p.c.dm_map(p.at, encoded, len(names), rows, p.handles[out]), [out],
                [value if bound is not None else convert(value, p.twins[out].dtype)], bound)


def expression(p):
    names = {"x": p.operand()}
    names["y"] = partner(p, names["x"])
    drawer = expressions.Drawer(p.random, list(names), all(p.twins[i].dtype.kind != "f" for i in names.values()))
    text = drawer.text(p.integer(1, 4))
    tree = ast.parse(text, mode="eval")
    used = {t.id for t in ast.walk(tree) if isinstance(t, ast.Name)} & set(names)
    if not used or any(word in text for word in ("uniform", "normal", "imum")):
        raise Unknown
    names = {n: names[n] for n in sorted(used)}
    value = expressions.evaluate(tree.body, {n: p.value(i) for n, i in names.items()})
    if not isinstance(value, expressions.Value):
        raise Unknown
    shape = np.broadcast_shapes(*(p.twins[i].shape for i in names.values()))
    out = p.out(shape, REAL, list(names.values()), [i for i in names.values() if p.twins[i].shape == shape])
    return mapped(p, text, names, out, np.broadcast_to(value.data, shape))


def inexact(p):
    """One function, and its error: 8 units in the last place of the type it is computed in."""
    if p.exact:
        raise Unknown
    name, i = p.pick(list(INEXACT)), p.operand(["f8", "f4"])
    x = p.twins[i].astype("g")
    want = INEXACT[name](x)
    out = p.out(x.shape, [p.twins[i].dtype.str[1:]], [i], [i])
    unit = np.finfo(p.twins[i].dtype).eps
    call = {"arctan": "atan"}.get(name, name)
    bound = np.where(np.isfinite(want), 8 * unit * np.abs(want) + 8 * unit * (np.abs(x) > 1e4), 0)
    return Step(f"{call}(a{i}, a{out})", lambda: getattr(p.c, "dm_" + call)(p.at, p.handles[i], p.handles[out]), [out], [want], bound)


def whole(x, most=2.0**50):
    """Are sums of x exact?"""
    wide = np.asarray(x).astype("g")
    return bool(np.all(np.isfinite(wide))) and bool(np.all(wide == np.rint(wide))) and float(np.abs(wide).sum()) < most


def reduction(p):
    """Of an array, or of two that are multiplied, which may have another shape together."""
    names = {"x": p.operand()}
    if p.chance(0.3):
        names["y"] = partner(p, names["x"])
    values = {n: p.value(i) for n, i in names.items()}
    full = np.broadcast_shapes(*(v.data.shape for v in values.values()))
    dims = sorted(int(d) for d in p.random.permutation(len(full))[:p.integer(0, len(full) + 1)])
    name, of = p.pick(expressions.REDUCTIONS), " * ".join(names)
    x = expressions.evaluate(ast.parse(of, mode="eval").body, values).data
    text = f"{name}({', '.join([of, *map(str, dims)])})"
    if name in ("min", "max"):
        signed_zeros(x)
    value = expressions.reduced(ast.parse(text, mode="eval").body, full, values)
    bound, shape = value.bound, np.shape(value.data)
    if bound is not None and name == "sum" and whole(x):
        bound, value.data = None, value.data + 0  # never -0
    if bound is not None and p.exact:
        raise Unknown
    floats = [value.dtype.str[1:]] if bound is not None else FLOATS if name in ("mean", "var", "std") else REAL
    inputs = list(names.values())
    return mapped(p, text, names, p.out(shape, floats, inputs), value.data, bound)


def total(p):
    i = p.operand(FLOATS + INTEGERS, [1, 2, 3], whole)
    x = p.twins[i]
    dims = sorted(int(d) for d in p.random.permutation(x.ndim)[:p.integer(1, x.ndim + 1)])
    kept = tuple(n for d, n in enumerate(x.shape) if d not in dims)
    out = p.out(kept, ["f8", "i8"], [i])
    if not whole(p.twins[out], 2.0**40):
        raise Unknown
    value = 2 * x.astype("i8").sum(axis=tuple(dims)) + 3 * p.twins[out].astype("i8")
    return called(p, f"a{i}, {dims}, 2, 3, a{out}", "sum", [i], out, value,
                  [p.handles[i], ints(dims), len(dims), D(2), D(3), p.handles[out]])


def product(p):
    i = p.operand(["f8", "f4"], 2)
    x = p.twins[i]
    turn, back = p.integer(0, 2), p.integer(0, 2)
    k = x.shape[0] if turn else x.shape[1]
    j = p.operand(["f8", "f4"], 2, lambda t: t.shape[1 if back else 0] == k) if p.chance(0.6) else \
        p.new(p.types(["f8", "f4"]), (p.integer(1, 17), k) if back else (k, p.integer(1, 17)), True)
    y = p.twins[j]
    left, right = (x.T if turn else x).astype("g"), (y.T if back else y).astype("g")
    out = p.out((left.shape[0], right.shape[1]), ["f8", "f4"], [i, j])
    alpha, beta = p.pick([1, 2, -1]), p.pick([0, 0, 1, -1])
    c = p.twins[out].astype("g") if beta else np.zeros(p.twins[out].shape, "g")
    size = abs(alpha) * np.abs(left) @ np.abs(right) + abs(beta) * np.abs(c)
    double = "f8" in [p.twins[n].dtype.str[1:] for n in (i, j, out)]
    if not np.all(np.isfinite(size)) or np.max(size, initial=0) > 1e30:
        raise Unknown
    value, bound = alpha * (left @ right) + beta * c, None
    if not (whole(left, np.inf) and whole(right, np.inf) and whole(c, np.inf) and np.max(size, initial=0) < (2.0**52 if double else 2.0**23)):
        bound = (k + 3) * 2 * np.finfo("f8" if double else "f4").eps * size + 1e-35
        if p.exact:
            raise Unknown
    row = (Argument * 1)(Argument(b"c", p.handles[out]))

    def call():
        status = p.c.dm_gemm(p.at, turn, back, D(alpha), p.handles[i], p.handles[j], D(beta), p.handles[out])
        return status or p.c.dm_map(p.at, b"c + 0", 1, row, p.handles[out])  # the sign of a zero is nobody's promise
    text = f"gemm({'NT'[turn]}{'NT'[back]} {alpha} a{i} a{j} {beta} a{out}) + 0"
    return Step(text, call, [out], [value if bound is not None else convert(value + 0, p.twins[out].dtype)], bound)
