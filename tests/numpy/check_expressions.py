"""Random expressions of arrays of random types, shapes and layouts against NumPy, and texts that make no sense.

    check_expressions.py LIBDMATH [--count N] [--malformed N] [--seed S] [--options device=emulated]
    mpirun -n RANKS python3 check_expressions.py LIBDMATH --launched [--count N] ...

Python's own parser reads the text, so precedence is Python's. An operand is an array in the type that dmath computes it in
(f32 for f16) beside its type; the type of each result is what NumPy gives for empty arrays. Only functions are drawn that
round correctly, so that results must be equal; complex operands meet few of them. Some expressions end in a reduction; those that
add or multiply floats are computed in long double, and have a bound. Random numbers are those of a fill.
"""

import argparse
import ast
import os
import re

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")  # NumPy 1.24 to 1.26: as NumPy 2
import numpy as np

import dmath

TYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
CASTS = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8", "u32": "u4",
         "u16": "u2", "u8": "u1", "bool": "?"}
COMPLEX = ["c8", "c16", "c8", "f8", "f4", "i4", "?"]
HALF = np.dtype("f2")
RANDOMS = ["uniform", "normal"]
BINARY = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.FloorDiv: np.floor_divide,
          ast.Mod: np.remainder, ast.LShift: np.left_shift, ast.RShift: np.right_shift, ast.BitAnd: np.bitwise_and,
          ast.BitOr: np.bitwise_or, ast.BitXor: np.bitwise_xor}
COMPARE = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
           ast.NotEq: np.not_equal}
UNARY = {ast.USub: np.negative, ast.UAdd: np.positive, ast.Invert: np.invert}
FUNCTIONS = {"abs": np.absolute, "absolute": np.absolute, "square": np.square, "sqrt": np.sqrt, "minimum": np.minimum,
             "maximum": np.maximum, "floor_divide": np.floor_divide, "mod": np.remainder, "true_divide": np.true_divide,
             "less": np.less, "copysign": np.copysign, "isnan": np.isnan, "logical_and": np.logical_and,
             "logical_not": np.logical_not, "add": np.add, "invert": np.invert, "nextafter": np.nextafter}
# Of these, complex operands are taken, and the result is exact.
OF_COMPLEX = {"square": np.square, "conj": np.conjugate, "real": np.real, "imag": np.imag, "add": np.add, "negative": np.negative}
FUNCTIONS.update({n: f for n, f in OF_COMPLEX.items() if n not in FUNCTIONS and n not in ("real", "imag")})


class Unknown(Exception):
    """A case that NumPy leaves open, or that this file does not follow."""


class Value:
    def __init__(self, dtype, data, bound=None):
        self.dtype, self.data, self.bound = np.dtype(dtype), data, bound


def carrier(dtype):
    return np.dtype("f4") if dtype == HALF else dtype


def scalar(value, dtype):
    """A number that takes a type."""
    if isinstance(value, bool):
        return np.array(value).astype(dtype)
    if dtype.kind in "iu" and isinstance(value, int):
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise dmath.Refused(dmath.ERR_ARG, f"{value} does not fit {dtype}")
    return np.array(value).astype(dtype).astype(carrier(dtype))


def common_type(values):
    arrays = [v.dtype for v in values if isinstance(v, Value)]
    floats, others = [d for d in arrays if d.kind in "fc"], [d for d in arrays if d.kind not in "fc"]
    common = None
    for d in floats + others:  # as NumPy does for more than two
        common = d if common is None else np.promote_types(common, d)
    weak = [v for v in values if not isinstance(v, Value)]
    if any(isinstance(v, float) for v in weak) and common.kind not in "fc":
        return np.dtype("f8")
    if any(isinstance(v, int) and not isinstance(v, bool) for v in weak) and common.kind == "b":
        return np.dtype("i8")
    return common


def empty(values, common):
    return [np.zeros(0, v.dtype if isinstance(v, Value) else common) for v in values]


def apply(function, values):
    if not any(isinstance(v, Value) for v in values):
        return constant(function, values)
    common = common_type(values)
    try:
        result = function(*empty(values, common)).dtype
    except TypeError:
        if common.kind == "b" and function in (np.subtract, np.negative, np.positive):
            raise Unknown  # i8 in dmath
        raise dmath.Refused(dmath.ERR_DTYPE, "types")
    if common.kind == "b" and function in (np.add, np.multiply, np.maximum, np.minimum, np.absolute):
        work = common
    else:
        work = function.types and loop_type(function, empty(values, common), common)
    if function in (np.logical_and, np.logical_not):
        data = [v.data != 0 if isinstance(v, Value) else np.array(bool(v)) for v in values]
        return Value(result, function(*data))
    if function is np.nextafter and work == HALF:  # of numbers of f16, not of f32
        data = [v.data.astype(v.dtype) if isinstance(v, Value) else scalar(v, work) for v in values]
        a, b = (np.asarray(d).astype(HALF) for d in data)
        return Value(result, np.where(a == b, b, function(a, b)).astype("f4"))  # NumPy before 2.0 returned a
    to = carrier(work)
    data = [v.data.astype(to) if isinstance(v, Value) else scalar(v, work) for v in values]
    if to.kind == "c" and function in (np.multiply, np.square):
        return Value(result, product(data[0], data[-1]))
    return Value(result, function(*data))


def product(x, y):
    """Each part rounded three times; NumPy's own loops may leave a rounding out."""
    real, imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    out = np.empty(np.shape(real), x.dtype)
    out.real, out.imag = real, imag
    return out


def loop_type(function, arrays, common):
    """The type that NumPy's loop takes its operands in."""
    if function in COMPARE.values():
        return common
    if function is np.isnan:
        return np.sqrt(arrays[0]).dtype
    return function(*arrays).dtype


def constant(function, values):
    """Python's arithmetic where it has the operator, else NumPy's."""
    try:
        if function in BINARY.values():
            name = [k for k, v in BINARY.items() if v is function][0]
            tree = ast.Expression(ast.BinOp(ast.Constant(values[0]), name(), ast.Constant(values[1])))
            result = eval(compile(ast.fix_missing_locations(tree), "", "eval"))
        else:
            result = function(*values).item()
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise Unknown from error
    if isinstance(result, int) and not -2**63 <= result < 2**63:
        raise Unknown
    return result


def cast(dtype, value):
    dtype = np.dtype(dtype)
    if not isinstance(value, Value):
        value = Value({bool: "?", int: "i8", float: "f8"}[type(value)], np.array(value))
    data = value.data
    if dtype.kind == "b":
        return Value(dtype, data != 0)
    if dtype.kind in "iu" and value.dtype.kind == "f":  # cut off, saturated, 0 of NaN
        info = np.iinfo(dtype)
        wide = np.trunc(np.nan_to_num(data.astype("g"), nan=0, posinf=np.inf, neginf=-np.inf))
        return Value(dtype, np.clip(wide, np.longdouble(info.min), np.longdouble(info.max)).astype(dtype))
    return Value(dtype, data.astype(dtype).astype(carrier(dtype)))


def choose(values):
    condition = values[0].data != 0 if isinstance(values[0], Value) else np.array(bool(values[0]))
    branches = values[1:]
    if not any(isinstance(v, Value) for v in branches):
        kind = max(({bool: 0, int: 1, float: 2}[type(v)] for v in branches))
        common = np.dtype(["?", "i8", "f8"][kind])
        if not isinstance(values[0], Value):
            raise Unknown
    else:
        common = common_type(branches)
    data = [v.data.astype(carrier(common)) if isinstance(v, Value) else scalar(v, common) for v in branches]
    return Value(common, np.where(condition, *data))


def evaluate(node, names):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.UnaryOp):
        value = evaluate(node.operand, names)
        if not isinstance(value, Value):
            return {ast.USub: lambda v: -v, ast.UAdd: lambda v: +v, ast.Invert: lambda v: ~v}[type(node.op)](value) \
                if not isinstance(value, (bool, float)) or isinstance(node.op, ast.USub) and not isinstance(value, bool) else unknown()
        return apply(UNARY[type(node.op)], [value])
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, names), evaluate(node.right, names)
        if isinstance(node.op, ast.Pow):
            return power(left, right)
        return apply(BINARY[type(node.op)], [left, right])
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1:
            raise dmath.Refused(dmath.ERR_ARG, "chained")
        left, right = evaluate(node.left, names), evaluate(node.comparators[0], names)
        return apply(COMPARE[type(node.ops[0])], [left, right])
    if node.func.id in RANDOMS:
        return names[node.func.id, node.args[0].value]
    values = [evaluate(a, names) for a in node.args]
    if node.func.id == "where":
        return choose(values)
    if node.func.id in CASTS:
        return cast(CASTS[node.func.id], values[0])
    if node.func.id in ("real", "imag"):
        return part(OF_COMPLEX[node.func.id], values[0])
    return apply(FUNCTIONS[node.func.id], values)


def part(function, value):
    """The real or imaginary part, of the type that the parts have."""
    if not isinstance(value, Value) or value.dtype.kind == "b":
        raise Unknown
    return Value(function(np.zeros(0, value.dtype)).dtype, function(value.data))


def unknown():
    raise Unknown


def power(left, right):
    """x ** 2 is a square; other powers are not exact."""
    if not isinstance(left, Value) or left.dtype.kind == "b" or isinstance(right, Value) or right != 2:
        raise Unknown
    return apply(np.square, [left])


# --- reductions
REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "count_nonzero", "argmin", "argmax", "mean", "var", "std"]
ROUNDED = ["sum", "prod", "mean", "var", "std"]


def reduced(node, shape, names):
    """NumPy's reduction of the elements, which have that shape; rows of those that make a result come last."""
    name, value = node.func.id, evaluate(node.args[0], names)
    if not isinstance(value, Value):
        raise Unknown
    dims = [ast.literal_eval(a) % len(shape) for a in node.args[1:]] or list(range(len(shape)))
    kept = [d for d in range(len(shape)) if d not in dims]
    data = np.broadcast_to(value.data, shape).transpose(kept + sorted(dims))
    out = [shape[d] for d in kept]
    count = int(np.prod([shape[d] for d in dims], dtype="i8"))
    rows = data.reshape(int(np.prod(out, dtype="i8")), count)
    function = getattr(np, name)
    dtype = np.dtype("i8") if name == "count_nonzero" else function(np.zeros(1, value.dtype)).dtype
    if count == 0 and rows.shape[0] > 0 and name in ("min", "max", "argmin", "argmax"):
        raise dmath.Refused(dmath.ERR_SHAPE, "no elements")
    if rows.shape[0] == 0:
        return Value(dtype, np.zeros(out, dtype))
    if name not in ROUNDED or (dtype.kind != "f" and name in ("sum", "prod")):
        return Value(dtype, function(rows, axis=1).reshape(out))
    wide = rows.astype("g")
    size = np.max(np.abs(np.where(np.isfinite(wide), wide, 0)), initial=0)
    total = np.sum(np.abs(wide), axis=1)
    if size > 1e100:
        raise Unknown  # an overflow in f64
    if name == "prod":
        some = np.abs(np.where(np.isfinite(wide) & (wide != 0), wide, 1))
        if np.max(np.sum(np.abs(np.log10(some)), axis=1)) > 250:
            raise Unknown  # some product on the way may overflow
    want = function(wide, axis=1) if count or name in ("sum", "prod") else np.full(rows.shape[0], np.nan, "g")
    unit = np.longdouble(2.0**-52) * 4 * (count + 2)
    bound = {"sum": unit * total, "prod": unit * np.abs(want), "mean": unit * total / max(count, 1)}.get(name)
    bound = np.full_like(want, unit * size * size) if bound is None else bound
    if name == "std":
        bound = np.minimum(np.sqrt(bound), np.divide(bound, want, out=np.full_like(want, np.inf), where=want > 0))
    return Value(dtype, want.reshape(out), bound.reshape(out))


def within(got, want, bound):
    """Does got lie within bound of want, and a rounding to got's type?"""
    info = np.finfo(got.dtype)
    wide, finite = got.astype("g"), np.isfinite(want)
    bound = np.where(finite & np.isfinite(bound), bound, 0) + np.abs(np.where(finite, want, 0)) * info.eps + info.tiny
    near = np.abs(np.where(np.isfinite(got), wide, 0) - np.where(finite, want, 0)) <= bound
    top = np.isinf(got) & (np.abs(want) + bound >= info.max) & (np.sign(wide) == np.sign(want))
    return got.shape == want.shape and bool(np.all((np.isnan(got) & np.isnan(want)) | (got == want) | (np.isfinite(got) & finite & near) | top))


def draw_reduction(random, text, ndim):
    dims = [int(d) for d in random.permutation(ndim)[:random.integers(0, ndim + 1)]]
    dims = [d - ndim if random.random() < 0.4 else d for d in dims]
    return f"{REDUCTIONS[random.integers(len(REDUCTIONS))]}({', '.join([text, *map(str, dims)])})"


# --- drawing
class Drawer:
    def __init__(self, random, names, bits=True, all_complex=False):
        self.random, self.names = random, names
        self.signs = ["+", "-", "*", "+", "-", "*", "/", "//", "%", "<", "<=", ">", "==", "!="]
        self.signs += ["<<", ">>", "&", "|", "^"] if bits else []
        self.functions = [n for n in FUNCTIONS if bits or n != "invert"]
        self.unary = ["-", "-", "+"] + (["~"] if bits else [])
        self.all_complex = all_complex
        if all_complex:  # what rounds correctly of it; the others are in check_rows.py
            self.signs, self.functions, self.unary = ["+", "-", "*", "==", "!="], list(OF_COMPLEX), ["-", "+"]

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def leaf(self):
        kind = self.random.random()
        if kind < 0.7:
            return self.pick(self.names)
        if kind < 0.73:
            return f"{self.pick(RANDOMS)}({self.random.integers(1000)})"
        return self.pick(["0", "1", "2", "3", "7", "0.5", "0.1", "2.7", "1e1", "0x11", ".125"])

    def text(self, depth):
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf()
        kind = self.random.random()
        one, two = self.text(depth - 1), self.text(depth - 1)
        if kind < 0.58:
            sign = self.pick(self.signs)
            if self.random.random() < 0.4:  # else as it comes: another tree, by precedence
                one, two = f"({one})", f"({two})"
            text = f"{one} {sign} {two}"
            return f"({text})" if self.random.random() < 0.5 else text
        if kind < 0.68:
            return self.pick(self.unary) + (f"({one})" if self.random.random() < 0.5 else one)
        if kind < 0.73 and not self.all_complex:  # which have no powers, and no casts
            return f"({one}) ** 2" if self.random.random() < 0.5 else f"{one} ** 2"
        if kind < 0.82:
            return f"where({one}, {two}, {self.text(depth - 1)})"
        if kind < 0.88 and not self.all_complex:
            return f"{self.pick(list(CASTS))}({one})"
        name = self.pick(self.functions)
        return f"{name}({one}, {two})" if name in FUNCTIONS and FUNCTIONS[name].nin == 2 else f"{name}({one})"


def draw_values(random, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = random.integers(-9 if info.min else 0, 10, shape)
        wild = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.where(random.random(shape) < 0.2, wild, values.astype(dtype)).astype(dtype)
    values = np.round(random.normal(0, 4, shape), 2)
    if dtype.kind == "c":
        return (values + 1j * np.round(random.normal(0, 4, shape), 2)).astype(dtype)
    odd = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-30, 65504], shape)
    with np.errstate(over="ignore"):
        return np.where(random.random(shape) < 0.1, odd, values).astype(dtype)


def draw_layout(random, session, ndim):
    c, at = session.c, session.at
    kind = random.integers(0, 6)
    if kind == 0 or ndim == 0:
        return None
    if kind == 5 and ndim > 1:
        rows = int(random.integers(1, session.workers + 1))
        return c.dm_layout_grid(rows, session.workers // rows, int(random.integers(1, 5)), int(random.integers(1, 5)))
    if kind == 1:
        return c.dm_layout_split(at, int(random.integers(0, ndim)))
    if kind == 2:
        return c.dm_layout_cyclic(at, int(random.integers(0, ndim)), int(random.integers(1, 4)))
    return c.dm_layout_replicated(at) if kind == 3 else c.dm_layout_single(int(random.integers(0, session.workers)))


def same(got, want):
    if got.dtype.kind not in "fc":
        return np.array_equal(got, want)
    return got.shape == want.shape and bool(np.all((np.isnan(got) & np.isnan(want)) | (got == want)))


def check(session, number, seed, counts):
    random = np.random.default_rng([seed, number])
    shape = tuple(int(n) for n in random.choice([1, 2, 3, 5, 7, 16, 40], random.integers(0, 4)))
    if random.random() < 0.03 and shape:
        shape = (0, *shape[1:])
    names = list("xyzu")[:random.integers(1, 5)]
    types = [TYPES[3:], TYPES[3:], TYPES[:3], TYPES[:3], TYPES, COMPLEX][random.integers(6)]
    while True:
        text = Drawer(random, names, types[0] not in TYPES[:3] or random.random() < 0.1, types is COMPLEX).text(int(random.integers(1, 5)))
        tree = ast.parse(text, mode="eval")
        used = [n for n in names if any(isinstance(t, ast.Name) and t.id == n for t in ast.walk(tree))]
        if used:
            break
    values, handles = {}, {}
    for name in used:
        full = random.random() < 0.6
        own = shape if full else tuple(1 if random.random() < 0.4 else n for n in shape)[random.integers(0, len(shape) + 1):]
        dtype = types[random.integers(len(types))]
        values[name] = draw_values(random, dtype, own)
    joined, known = np.broadcast_shapes(*(v.shape for v in values.values())), {}
    for n, v in values.items():
        known[n] = Value(v.dtype, v.astype(carrier(v.dtype)))
    for call in (t for t in ast.walk(tree) if isinstance(t, ast.Call) and t.func.id in RANDOMS):
        kind, seed = call.func.id, call.args[0].value
        known[kind, seed] = Value("f8", session.filled(kind, seed, joined))
        counts["random"] += 1
    reduces = types is not COMPLEX and random.random() < 0.35
    if reduces:
        text = draw_reduction(random, text, len(joined))
        tree = ast.parse(text, mode="eval")
    with np.errstate(all="ignore"):
        try:
            want = reduced(tree.body, joined, known) if reduces else evaluate(tree.body, known)
            refused = None
        except Unknown:
            counts["unknown"] += 1
            return
        except dmath.Refused as refusal:
            want, refused = None, refusal
    if want is not None and not isinstance(want, Value):
        counts["unknown"] += 1
        return
    for name in used:
        handles[name] = session.put(values[name], draw_layout(random, session, values[name].ndim))
    described = {n: f"{v.dtype} {v.shape}" for n, v in values.items()}
    case = f"--seed {seed}, case {number}, {session.workers} workers: {text}\n{described}"
    try:
        got = session.map(text, **handles)
        if refused:
            raise SystemExit(f"{case}\nis not refused: {refused}")
        dtype = want.dtype
        with np.errstate(all="ignore"):
            exact = want.bound is None
            wanted = np.asarray(want.data).astype(dtype) if exact else want.data
            wanted = wanted if reduces else np.broadcast_to(wanted, joined)
            equal = got.dtype == dtype and (same(got, wanted) if exact else within(got, wanted, want.bound))
        if not equal:
            raise SystemExit(f"{case}\n{values}\ngives {got.dtype}\n{got}\nNumPy {dtype}\n{wanted}")
        counts["equal"] += 1
        counts["reduced"] += reduces
        counts["complex"] += any(v.dtype.kind == "c" for v in values.values())
    except dmath.Refused as refusal:
        if "the expression is too long" in str(refusal):
            counts["long"] += 1
        elif not refused or refusal.status not in (dmath.ERR_ARG, dmath.ERR_DTYPE, refused.status):  # a text may have both errors
            raise SystemExit(f"{case}\nis refused: {refusal}")
        counts["refused"] += 1
    for handle in handles.values():
        session.drop(handle)


WORDS = ["x", "y", "(", ")", ",", "+", "-", "*", "/", "//", "**", "<", "<=", "==", "=", "&", "~", "%", "1", "2.5", "0x", "1e", "sin(",
         "where(", "f32(", "sum(", "pow(", "True", "inf", "pi", "@", "#", "\\", "'", "\"", "[", "\n", "\t", "é", "9" * 30, "z" * 80]


def check_nonsense(session, number, seed, x, y):
    random = np.random.default_rng([seed, 1, number])
    if number % 2:
        text = "".join(random.choice(WORDS, random.integers(1, 40)))
        text = text.encode()
    else:
        text = bytearray(Drawer(random, ["x", "y"]).text(3).encode())
        for _ in range(random.integers(1, 4)):
            text[random.integers(len(text))] = random.integers(1, 256)
        text = bytes(text)
    try:
        session.map(text, x=x, y=y)
    except dmath.Refused as refusal:
        # it points into the text, or, where nothing there is wrong, names the operand that is left over
        if not re.match(r"map_new: .* \(column \d+\)\n|map_new: [xy] is given, but .* does not use it$", str(refusal), re.DOTALL):
            raise SystemExit(f"--seed {seed}, text {number}, {text!r}: {refusal}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--malformed", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20241122)
    parser.add_argument("--launched", action="store_true", help="the ranks of this launch are the workers")
    parser.add_argument("--options", default="device=cpu", help="of the sessions")
    options = parser.parse_args()
    if not options.launched:
        print(f"--seed {options.seed}")
    library, counts = dmath.Library(options.library), {"equal": 0, "reduced": 0, "complex": 0, "random": 0, "refused": 0, "unknown": 0, "long": 0}
    sessions = (0,) if options.launched else (1, 2, 3, 5)
    for at, workers in enumerate(sessions):
        session = dmath.Session(library, workers, options.options)
        if options.launched:  # the other ranks do not come here
            print(f"--seed {options.seed} --launched, {session.workers} workers", flush=True)
        for number in range(at, options.count * 4, len(sessions)):
            check(session, number, options.seed, counts)
            if counts["equal"] + counts["refused"] >= options.count * (at + 1) // len(sessions):
                break
        if workers in (0, 3):
            x, y = session.put(np.arange(6.0)), session.put(np.arange(6, dtype="i4"))
            for number in range(options.malformed):
                check_nonsense(session, number, options.seed, x, y)
            session.drop(x)
            session.drop(y)
        session.close()
    print(counts)
    if counts["equal"] < options.count // 2 or counts["reduced"] < options.count // 10 or \
            min(counts["random"], counts["complex"]) < options.count // 40:
        raise SystemExit("too few expressions could be compared")


if __name__ == "__main__":
    main()
