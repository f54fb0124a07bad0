"""Every elementwise function that `dmath map --rows` lists, for all types it takes and pairs of them, against NumPy; and
every reduction, of arrays and of what a program makes. NumPy has neither bf16 nor 8-bit floats: their values come from tables
(narrow.py), NumPy computes in the type that dmath computes in, and the tables round. Numbers of workers, layouts of operands and layouts of results take turns
so that each pair of them occurs, and each with every function (main() counts).

    check_rows.py LIBDMATH TOOL

A function that has no oracle is a failure. The oracle is, in this order: FORMULAS below; the function of that name in NumPy;
that of NAMES; what the function's line in include/dmath/ewise.h says behind "NumPy:", an expression of a, b and c with NumPy's
functions; that of the name in scipy.special, if SciPy is installed. Results are equal to the last bit, unless accuracy.py
measures the function or its line says "to 4 ulps".
"""

import ctypes
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import zlib

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")  # NumPy 1.24 to 1.26: as NumPy 2
import numpy as np

import dmath
from exact import COMPLEX, ROWS
from narrow import FORMATS, Narrow, promoted

try:
    from scipy import special
except ImportError:
    special = None

# NumPy's names for rows that it calls otherwise.
NAMES = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
         "bitwise_right_shift": "right_shift"}


def each(f):
    """A function of Python's math for arrays; x is f64 or wider."""
    def one(v):
        try:
            return f(float(v))
        except OverflowError:  # of gamma beside its pole at 0, too
            return math.copysign(math.inf, v) if abs(v) < 1 else math.inf
        except ValueError:  # a pole or no real value: the C library's answer
            return at_pole(f, float(v))
    return lambda x: np.array([one(v) for v in x.ravel()], "f8").reshape(x.shape)


def at_pole(f, v):
    if f is math.gamma:
        return math.copysign(math.inf, v) if v == 0 else math.nan
    return math.inf if f is math.lgamma else math.nan


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


# What NumPy has not. Arguments are of the widest floating type, or integers.
FORMULAS = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "gamma": each(math.gamma),
    "lgamma": each(math.lgamma),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    "gelu": lambda x: each(lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)))(x),
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)) if x.dtype.kind in "fc" else np.maximum(x, np.zeros_like(x)),
    "clip": clip,
}
# Functions that accuracy.py measures, and those whose line says "to 4 ulps", may be off by so many units in the last place, but for
# those that IEEE 754 rounds once. All others must be NumPy's to the last bit.
ONCE = {"reciprocal", "sqrt", "divide"}
ULPS = {"gamma": 16,  # Python's own has that error
        "gelu": 700}  # at -17.75, where erfc multiplies the error of its rounded argument


def ulps(name):
    return ULPS.get(name, 4) if (name in ROWS or name in ROUNDED_LINES) and name not in ONCE else 0


# Rows whose integers stay integers; NumPy before 2.1 makes floats of some.
ROUNDING = {"floor", "ceil", "trunc", "round"}
# Rows where NumPy keeps the type, and we compute integers in floating point. include/dmath/ewise.h says so.
FLOATS_OF_INTEGERS = {"reciprocal", "nan_to_num"}
# The sign of a zero is either operand's.
ANY_ZERO = {"minimum", "maximum", "clip", "relu"}
# bool counts as i8 here: NumPy refuses it, keeps it, or has changed its mind.
BOOL_AS_I8 = {"subtract", "negative", "positive", "sign", "relu", "real", "imag", *ROUNDING}
# Rows that depend on the numbers of the operands' type, f16 too, though it is computed in f32.
OF_THE_TYPE = {"nan_to_num", "nextafter"}
COMPARES = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}

TYPE_OF = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8", "u32": "u4",
           "u16": "u2", "u8": "u1", "bool": "?", "c64": "c8", "c128": "c16"}

NAME_OF = {np.dtype(v): k for k, v in TYPE_OF.items()}

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include/dmath/ewise.h"
SAID = dict(re.findall(r"X[123]\((\w+)\) +/\*.*?NumPy: (.*?) *\*/", HEADER.read_text()))
ROUNDED_LINES = set(re.findall(r"X[123]\((\w+)\) +/\*.*?to 4 ulps.*?\*/", HEADER.read_text()))


def specials(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [0, 1, 2, 3, 5, 7, 31, 100, info.max, info.max - 1, info.min, info.min + 1]
        return np.array(values + ([-1, -2, -3, -7, -100] if info.min else [8, 64]), dtype)
    real = np.dtype({"c8": "f4", "c16": "f8"}.get(dtype.str[1:], dtype))
    info = np.finfo(real)
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, -2.5, 3, 0.1, -0.7, 10.25, -17.75, 100.5, info.max, -info.max, info.tiny,
              -info.tiny, info.smallest_subnormal, -info.smallest_subnormal, np.inf, -np.inf, np.nan, 1 + info.eps, 3.1415927]
    if dtype.kind == "c":
        some = [0.0, 1, -0.5, 2.25, -3]
        return np.array([complex(a, b) for a in some for b in some], dtype)
    return np.array(values, real)


def wild_complex(dtype):
    """Zeros of both signs, infinities, NaN, large and small parts, each with each."""
    part = np.dtype("f4" if np.dtype(dtype) == np.dtype("c8") else "f8")
    parts = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 1e-3, 50, -80, 1e-30, 3e20, np.inf, -np.inf, np.nan], part)
    z = np.empty((parts.size, parts.size), dtype)
    z.real, z.imag = parts[:, None], parts[None, :]
    return z.ravel()


# Rows of one operand that take complex numbers of all kinds; where a part is NaN or infinite they are compared part by part.
WILD = set(COMPLEX) | {"isnan", "isinf", "isfinite"}
# NaN or 0 or infinity, of which C99 leaves the sign open.
OPEN_SIGN = {"sin", "cos", "sinh", "cosh", "tan", "tanh", "exp", "expm1"}


def complex_parts_differ(name, got, want):
    """Where results that have a NaN, infinity or zero are not what they should be, or others are off by more than 4 units."""
    size = np.hypot(want.real.astype("g"), want.imag.astype("g"))
    size = np.where(np.isfinite(size), size, 0)
    tiny = np.finfo(got.dtype).tiny
    off = np.zeros(got.shape, bool)
    for g, w in (got.real, want.real), (got.imag, want.imag):
        bound = 4 * np.finfo(got.dtype).eps * np.maximum(size, np.abs(np.where(np.isfinite(w), w, 0))) + tiny
        near = np.isfinite(g) & np.isfinite(w) & (np.abs(g.astype("g") - w) <= bound)
        same = (g == w) & ((g != 0) | (np.signbit(g) == np.signbit(w)))
        if name in OPEN_SIGN:
            with_nan = np.isnan(want.real) | np.isnan(want.imag)
            same |= with_nan & (np.abs(g) == np.abs(w))
        off |= ~((np.isnan(g) & np.isnan(w)) | same | (near & (w != 0)))
    return off


def powers_differ(got, want, a, b):
    """e^(b log a) in f64: the error grows with |b log a|. Where no digit is left or the result overflows, it is as NumPy's."""
    a, b = np.broadcast_to(a, got.shape).astype("G"), np.broadcast_to(b, got.shape).astype("G")
    want = np.where((a == 0) & (b != 0), np.where(b.real > 0, 0, complex(np.nan, np.nan)), want)  # NumPy before 2.0: 0 for real b alone
    size, info = np.abs(b * np.log(np.where(a == 0, 1, a))), np.finfo(got.dtype)
    bound = (4 * info.eps + 4 * np.finfo("f8").eps * size) * np.abs(want) + info.tiny
    counts = np.isfinite(a) & np.isfinite(b) & (size < 1e6) & ~(np.abs(want) >= info.max)
    return counts & ~((np.isnan(got) & np.isnan(want)) | (np.abs(got.astype("G") - want) <= bound))


def oracle(name):
    """(function, is it NumPy's own, whose types are right)"""
    if hasattr(np, name) and name not in FORMULAS:
        return getattr(np, name), True
    if name in NAMES:
        return getattr(np, NAMES[name]), True
    if name in SAID:
        return lambda *operands: eval(SAID[name], vars(np), dict(zip("abc", operands))), True
    return FORMULAS.get(name) or getattr(special, name, None), False


def wanted_type(name, function, own, operands):
    """The dtype that NumPy gives, or None where it refuses."""
    empty = [np.zeros(0, o) for o in operands]
    if name in BOOL_AS_I8 and all(o == np.dtype("?") for o in operands):
        return np.dtype("i1")
    if name in ROUNDING and operands[0].kind in "iu":
        return operands[0]
    try:
        if name == "reciprocal" and operands[0].kind != "f":
            return np.divide(empty[0], empty[0]).dtype
        if name == "clip":
            return np.result_type(*operands)
        floats = not own or name == "nan_to_num" or (name in SAID and len(empty) < 3 and function(*empty).dtype.kind == "f")
        like = np.positive if name == "relu" else (np.sqrt, np.hypot)[len(empty) - 1] if floats else function
        return like(*empty).dtype
    except TypeError:
        return None


def power_of_integers(x, y):
    one = np.where((x == -1) & (y % 2 != 0), -1, np.where(np.abs(x) == 1, 1, 0)) if x.dtype.kind == "i" else x == 1
    return np.where(y < 0, one.astype(x.dtype), np.power(x, np.where(y < 0, np.zeros_like(y), y)))


def next_after(a, b):
    """As in C: of 0 towards -0 it is -0. NumPy before 2.0 returned the 0 of f16."""
    return np.where(a == b, b, np.nextafter(a, b))


def wanted_values(name, function, own, operands, dtype):
    """In the type that they are computed in, as exactly as there is a way to."""
    if name in COMPARES:
        common = np.result_type(*operands)
        return function(*(o.astype(common) for o in operands))
    if name == "where":
        return np.where(operands[0] != 0, operands[1].astype(dtype), operands[2].astype(dtype))
    if name == "pow" and dtype.kind in "iu":
        return power_of_integers(*(o.astype(dtype) for o in operands))
    if name in BOOL_AS_I8 | ROUNDING and dtype.kind in "iu":
        if name in ROUNDING:
            return operands[0].astype(dtype)
        operands = [o.astype(dtype) for o in operands]
    if dtype.kind == "c" and name in COMPLEX:
        return COMPLEX[name][0](operands[0].astype("G"))
    if dtype.kind == "c" and name == "pow":
        return function(*(o.astype("G") for o in operands))
    if ulps(name) and dtype.kind == "f":
        wide = np.longdouble if dtype == np.dtype("f8") and name != "pow" else np.float64
        return function(*(o.astype(dtype).astype(wide) for o in operands)).astype(dtype)
    if ulps(name) or not own or name in FLOATS_OF_INTEGERS:
        operands = [o.astype(dtype) for o in operands]
    if name == "nextafter":
        return next_after(*(o.astype(dtype) for o in operands))
    return function(*operands)


def unit(want, dtype):
    info = np.finfo(dtype)
    size = np.maximum(np.abs(want.astype("g")), np.longdouble(info.tiny))
    return np.exp2(np.floor(np.log2(size))) * np.longdouble(info.eps)


# Sums that cancel: the unit is that of their terms.
TERMS = {"logaddexp": 0.5, "lgamma": 1}
# exp(-x) overflows where the result is no normal number.
FLUSHED = {"sigmoid"}


def differences(name, got, want):
    """Where they differ by more than they may."""
    if got.dtype.kind not in "fc":
        return got != want
    nan = np.isnan(got) & np.isnan(want)
    same = got == want
    if got.dtype.kind == "c":
        return ~(nan | same | (np.abs(got - want) <= 4 * np.finfo(got.dtype).eps * np.abs(want)))
    if name not in ANY_ZERO and not ulps(name):
        same &= np.signbit(got) == np.signbit(want)
    if ulps(name):
        finite = np.isfinite(got) & np.isfinite(want)
        g, w = (np.where(finite, v, 1).astype("g") for v in (got, want))
        same |= finite & (np.abs(g - w) <= ulps(name) * unit(np.maximum(np.abs(w), TERMS.get(name, 0)), got.dtype))
        if name in FLUSHED:
            same |= (got == 0) & (np.abs(want) < np.finfo(got.dtype).tiny)
        top = np.finfo(got.dtype).max  # rounding to infinity or just not
        same |= (np.isinf(got) | np.isinf(want)) & (np.abs(got) >= top) & (np.abs(want) >= top) & (np.sign(got) == np.sign(want))
    return ~(nan | same)


def outside(got, want, slack, format_):
    """Is got another number than any that is rounded from between want - slack and want + slack?"""
    low, high = format_.round(want - slack), format_.round(want + slack)
    nan = np.isnan(got) & (np.isnan(want) | np.isnan(low) | np.isnan(high))
    return ~(nan | (got == low) | (got == high) | ((got > low) & (got < high)))


def narrow_differences(name, got, want, type_):
    """Where a result of f32 that was rounded to this type is off."""
    if type_ not in FORMATS:
        rounded = want.astype(TYPE_OF[type_])
        if type_ != "f16" or not ulps(name):
            return differences(name, got, rounded)
    size = np.where(np.isfinite(want), want, 1)
    slack = ulps(name) * unit(np.maximum(np.abs(size), TERMS.get(name, 0)), np.dtype("f4")).astype("f8")
    slack = slack + (np.finfo("f4").tiny if name in FLUSHED else 0)
    wide = want.astype("f8")
    if type_ == "f16":
        low, high = ((wide + s).astype("f2") for s in (-slack, slack))
        return ~((np.isnan(got) & np.isnan(want)) | ((got >= low) & (got <= high)))
    off = outside(got, wide, slack, FORMATS[type_])
    if name not in ANY_ZERO and not ulps(name):
        off |= (got == 0) & (np.signbit(got) != np.signbit(want))
    return off


# --- reductions
def log_sum(x, axis):
    return np.logaddexp.reduce(x, axis=axis)


# What NumPy has not, of long double.
REDUCTIONS = {"logsumexp": log_sum}
# In floating point they are off by the rounding of every step on the way.
ROUNDED = {"sum", "prod", "mean", "var", "std", "logsumexp"}


def reduced_type(name, dtype):
    if name in REDUCTIONS:
        return dtype if dtype.kind == "f" else np.dtype("f8")
    return np.dtype("i8") if name == "count_nonzero" else getattr(np, name)(np.zeros(1, dtype)).dtype


def elements(name, dtype, rounded):
    """A matrix: of special numbers, or of numbers whose results are no accidents of rounding and of overflow."""
    random = np.random.default_rng(zlib.crc32(f"{name} {dtype}".encode()))
    shape = 23, 5
    if not rounded:
        x = random.choice(specials(dtype), shape)
        return np.where(np.isnan(x) & (np.arange(5) > 1), np.zeros_like(x), x) if dtype.kind in "fc" else x
    if name == "prod":
        return random.choice(np.array([-1, 1, 1, 1.5, 0.75]), shape).astype(dtype)
    if dtype.kind in "biu":
        return random.integers(0 if dtype.kind in "bu" else -100, 101, shape).astype(dtype)
    x = random.normal(1, 3, shape)
    if dtype.kind == "c":
        return (x + 1j * random.normal(0, 3, shape)).astype(dtype)
    odd = np.array([[np.nan, 1, np.inf, -np.inf, np.inf], [0, 1, 1, 1, -np.inf]])
    x[3:5] = np.where(np.isfinite(odd), x[3:5], odd)  # a NaN, infinities, of both signs, and a column of numbers
    return x.astype(dtype)


def reduced_differences(name, x, axis, got):
    """Where a result that is rounded on the way is off."""
    wide = x.astype("G" if x.dtype.kind == "c" else "g")
    want = np.asarray(REDUCTIONS[name](wide, axis) if name in REDUCTIONS else getattr(np, name)(wide, axis=axis))
    n, sizes = x.size if axis is None else x.shape[axis], np.sum(np.abs(wide), axis=axis)
    scale = {"sum": sizes, "mean": sizes / n, "var": np.max(np.abs(wide), axis=axis) ** 2}.get(name, np.abs(want))
    bound = np.where(np.isfinite(scale), scale, 0) * np.longdouble(2.0**-52) * 4 * n + np.finfo(got.dtype).eps * np.abs(want)
    rounded = want.astype(got.dtype)
    return ~((np.isnan(got) & np.isnan(want)) | (got == rounded) | (np.abs(got - want) <= bound)), rounded


WORKERS = [1, 2, 3, 5, 8]
LAYOUTS = ["default", "split", "cyclic", "replicated", "single", "grid", "explicit"]


class Checker:
    """One for each number of workers; together they make all checks, each one of them."""

    def __init__(self, session, turn):
        self.session, self.cases, self.wrong, self.refused = session, 0, [], set()
        self.turn, self.at, self.name = turn, 0, None
        self.values = {t: specials(TYPE_OF[t]) for t in TYPE_OF}
        self.handles, self.kept, self.seen = {}, [], set()

    def begin(self, name):
        self.name, self.at = name, zlib.crc32(name.encode())

    def mine(self):
        """Is the next check of this function this session's? Then it has layouts: of the operands, and of the result."""
        self.at += 1
        k, n = self.at, len(LAYOUTS)
        if k % len(WORKERS) != self.turn:
            return False
        self.layouts = [LAYOUTS[i % n] for i in (k, k // n + k, k // (n * n) + 2 * k)]
        self.result = LAYOUTS[(k // n + 3 * k) % n]
        return True

    def layout(self, kind, shape):
        c, at, w = self.session.c, self.session.at, self.session.workers
        long = int(np.argmax(shape)) if shape else 0
        if kind == "default" or not shape:
            return None
        if kind == "split":
            return c.dm_layout_split(at, long)
        if kind == "cyclic":
            return c.dm_layout_cyclic(at, long, 3)
        if kind == "replicated":
            return c.dm_layout_replicated(at)
        if kind == "single":
            return c.dm_layout_single(w - 1)
        if kind == "grid" and len(shape) == 2:
            rows = 2 if w > 3 else 1
            return c.dm_layout_grid(rows, w // rows, 4, 2)
        block = [4] * len(shape)  # a map of blocks to workers
        count = int(np.prod([-(-n // 4) for n in shape]))
        self.kept.append(((ctypes.c_int64 * len(shape))(*block), (ctypes.c_int * max(count, 1))(*[(5 * i + 1) % w for i in range(count)])))
        return c.dm_layout_explicit(len(shape), *self.kept[-1], ctypes.c_int64(count))

    def handle(self, values, kind="default"):
        raw = values.raw if isinstance(values, Narrow) else values
        key = getattr(values, "name", raw.dtype.str), raw.shape, raw.tobytes(), kind
        if key not in self.handles:
            self.handles[key] = self.session.put(values, self.layout(kind, values.shape))
        return self.handles[key]

    def placed(self, operands):
        """The operands as names, and the layout of the result of that shape."""
        shape = np.broadcast_shapes(*(o.shape for o in operands))
        kinds = self.layouts[:len(operands)]
        self.seen |= {("operand", kind, "workers", self.session.workers) for kind in kinds}
        self.seen |= {("operand", kind, "result", self.result) for kind in kinds} | {("result", self.result, "workers", self.session.workers)}
        self.seen |= {("operands", *kinds[:2])} | {("function", self.name, kind) for kind in [self.result, *kinds, self.session.workers]}
        return {n: self.handle(o, kind) for n, o, kind in zip("abc", operands, kinds)}, self.layout(self.result, shape)

    def fail(self, text):
        self.wrong.append(text)

    def check(self, name, function, own, types, operands):
        if not self.mine():
            return
        text = f"{name}({', '.join('abc'[:len(operands)])})"
        names, layout = self.placed(operands)
        types = f"{types} ({self.session.workers} workers, {', '.join(self.layouts[:len(operands)])} to {self.result})"
        dtype = wanted_type(name, function, own, [o.dtype for o in operands])
        self.cases += 1
        try:
            got = self.session.map(text, layout, **names)
        except dmath.Refused as refusal:
            if dtype is not None and refusal.status != dmath.OK:
                self.fail(f"{name} of {types}: refused, NumPy gives {dtype}: {refusal}")
            return
        if dtype is None:
            self.fail(f"{name} of {types}: {got.dtype}, but NumPy refuses it")
            return
        if got.dtype != dtype:
            self.fail(f"{name} of {types}: {got.dtype}, but NumPy's is {dtype}")
            return
        with np.errstate(all="ignore"):
            want = np.asarray(wanted_values(name, function, own, operands, dtype)).astype(dtype)
            off = complex_parts_differ(name, got, want) if got.dtype.kind == "c" and name in COMPLEX else differences(name, got, want)
            if got.dtype.kind == "c" and name == "pow":
                off = powers_differ(got, want, *operands)
            if operands[0].dtype.kind == "c" and name == "abs":  # a hypotenuse, not a change of sign
                off &= ~(np.abs(got - want) <= 2 * np.finfo(got.dtype).eps * np.abs(want))
            if got.dtype.kind == "c" and name == "divide":  # NumPy makes NaN of 1 / a subnormal number
                tiny = np.finfo(got.dtype).tiny
                off &= ~(np.abs(np.broadcast_to(operands[1], got.shape)) < tiny)
        if got.dtype.str[1:] in ("i1", "i2", "u1", "u2", "u4"):  # of wider types: what has left the range shows unless it is stored
            off |= self.session.map(f"i64({text})", layout, **names) != want.astype("i8")
        if off.any():
            at = tuple(np.argwhere(off)[0])
            from_ = [np.broadcast_to(o, got.shape)[at] for o in operands]
            self.fail(f"{name} of {types}: {int(off.sum())} differ, first of {from_}: {got[at]!r}, not {want[at]!r}")

    def row(self, row):
        self.begin(row["name"])
        name, operands, types = row["name"], row["operands"], [t for t in row["types"].split() if t in TYPE_OF]
        types = [t for t in types if t in self.takes]
        function, own = oracle(name)
        if not hasattr(self.session.c, f"dm_{name}"):
            self.fail(f"{name}: the library has no dm_{name}; add its line to include/dmath/ewise.h")
        if function is None:
            self.fail(f"{name}: no oracle: NumPy has none of that name; say one behind \"NumPy:\" in its line of include/dmath/ewise.h")
            return
        if name in OF_THE_TYPE:
            self.of_the_type(name, function)
        if set(FORMATS) <= set(row["types"].split()):
            self.narrow_row(name, function, own, operands, types)
        if operands == 1:
            for t in types:
                wild = name in WILD and TYPE_OF[t][0] == "c"
                self.check(name, function, own, t, [wild_complex(TYPE_OF[t]) if wild else self.values[t]])
        elif operands == 2:
            for a, b in itertools.product(types, types):
                self.check(name, function, own, f"{a}, {b}", [self.values[a][:, None], self.values[b][None, :]])
        else:
            random = np.random.default_rng(zlib.crc32(name.encode()))
            some = [(t, t, t) for t in types] + [tuple(random.choice(types, 3)) for _ in range(60)]
            for triple in some:
                triple = (triple[0], *triple[1:])
                self.check(name, function, own, ", ".join(triple),
                           [random.choice(self.values[t], 300) for t in triple])

    # --- bf16 and 8-bit floats
    def narrow_values(self, t, some=None):
        """Every 8-bit float, or special numbers and others of bf16; some: so many of them."""
        random, f = np.random.default_rng(zlib.crc32(t.encode())), FORMATS[t]
        bits = np.arange(256) if t != "bf16" else np.concatenate([f.encode(f.round(specials("f4"))), random.integers(0, 1 << 16, 300)])
        return Narrow(t, bits if some is None else random.choice(bits, some))

    def narrow_row(self, name, function, own, operands, takes):
        """The function of narrow floats, with one another and with other types. It is computed in f32, or f64 beside that."""
        others = [t for t in ("f64", "f32", "f16", "i8", "i32", "u64", "bool") if t in takes]
        if operands == 1:
            for t in FORMATS:
                self.check_narrow(name, function, own, [t], [self.narrow_values(t)])
        elif operands == 2:
            for a, b in itertools.product([*FORMATS, *others], repeat=2):
                if a in FORMATS or b in FORMATS:
                    x, y = (self.narrow_values(t, 40) if t in FORMATS else self.values[t] for t in (a, b))
                    self.check_narrow(name, function, own, [a, b], [x[:, None], y[None, :]])
        else:
            random = np.random.default_rng(zlib.crc32(name.encode()))
            for types in [(t, t, t) for t in FORMATS] + [tuple(random.choice([*FORMATS, *others], 3)) for _ in range(40)]:
                if set(types[name == "where":]) & set(FORMATS):
                    x = [self.narrow_values(t, 200) if t in FORMATS else random.choice(self.values[t], 200) for t in types]
                    self.check_narrow(name, function, own, types, x)

    def check_narrow(self, name, function, own, types, operands):
        if not self.mine():
            return
        counted = sorted(types[name == "where":], key=lambda t: "f" not in t)  # integers each meet the floats
        type_ = counted[0]
        for t in counted[1:]:
            type_ = promoted(type_, t) if {type_, t} & set(FORMATS) else NAME_OF[np.promote_types(TYPE_OF[type_], TYPE_OF[t])]
        wide = np.dtype("f8" if type_ == "f64" else "f4")
        numbers = [np.asarray(o.values if isinstance(o, Narrow) else o).astype(wide) for o in operands]
        names, layout = self.placed(operands)
        got = self.session.map(f"{name}({', '.join('abc'[:len(operands)])})", layout, **names)
        said = f"{name}({', '.join(types)}) ({self.session.workers} workers, {', '.join(self.layouts[:len(operands)])} to {self.result})"
        self.cases += 1
        with np.errstate(all="ignore"):
            want = np.asarray(self.narrow_wanted(name, function, own, numbers, type_, wide))
            truth = want.dtype == np.dtype("?")
            is_type = "bool" if truth else type_
            if (got.name if isinstance(got, Narrow) else NAME_OF[got.dtype]) != is_type:
                self.fail(f"{said}: {got.name if isinstance(got, Narrow) else got.dtype}, not {is_type}")
                return
            values = got.values if isinstance(got, Narrow) else got
            off = values != want if truth else narrow_differences(name, values, want, is_type)
        if off.any():
            at = tuple(np.argwhere(off)[0])
            from_ = [np.broadcast_to(o, off.shape)[at] for o in numbers]
            self.fail(f"{said}: {int(off.sum())} differ, first of {from_}: {values[at]!r}, not {want[at]!r}")

    def narrow_wanted(self, name, function, own, numbers, type_, wide):
        """As floats of the type that it is computed in, not rounded to the result's."""
        if name in OF_THE_TYPE and type_ in FORMATS:
            f = FORMATS[type_]
            if name == "nextafter":
                return f.next(*(n.astype("f8") for n in numbers))
            x = numbers[0]
            return np.where(np.isnan(x), 0, np.where(np.isinf(x), np.copysign(f.most, x), x))
        if name in OF_THE_TYPE and type_ == "f16":
            numbers, wide = [n.astype("f2") for n in numbers], np.dtype("f2")
        if name == "where":
            return np.where(numbers[0] != 0, numbers[1], numbers[2])
        return wanted_values(name, function, own, numbers, wide)

    def narrow_reduction(self, name):
        for t, f in FORMATS.items():
            random = np.random.default_rng(zlib.crc32(f"{name} {t}".encode()))
            x = random.choice([-1, 1, 1, 1.5, 0.75], (23, 5)) if name == "prod" else random.normal(1, 3, (23, 5))
            if name not in ("prod", "var", "std"):
                x[3:5, 1:] = [[np.inf, -np.inf, np.nan, 1], [1, 0, 0, 0]] if f.infinity else [[448, -448, np.nan, 1], [1, 0, 0, 0]]
            x = Narrow(t, f.encode(f.round(x)))
            for axis, dims in (None, ""), (0, ", 0"), (1, ", -1"):
                for text in f"{name}(a{dims})", f"{name}(where(b, a, a){dims})":
                    self.check_narrow_reduction(name, text, t, x, axis)

    def check_narrow_reduction(self, name, text, t, x, axis):
        if not self.mine():
            return
        operands, _ = self.placed([x, np.ones(x.shape, "?")] if "(b," in text else [x])
        values, shape = x.values, () if axis is None else x.shape[:axis] + x.shape[axis + 1:]
        got = self.session.map(text, self.layout(self.result, shape), **operands)
        said = f"{text} of {t} ({self.session.workers} workers, {', '.join(self.layouts[:len(operands)])} to {self.result})"
        self.cases += 1
        with np.errstate(all="ignore"):
            want = np.asarray(REDUCTIONS[name](values, axis) if name in REDUCTIONS else getattr(np, name)(values, axis=axis))
        is_type = t if want.dtype == np.dtype("f8") else NAME_OF[want.dtype]
        if (got.name if isinstance(got, Narrow) else NAME_OF[got.dtype]) != is_type:
            self.fail(f"{said}: {got.name if isinstance(got, Narrow) else got.dtype}, not {is_type}")
            return
        numbers = got.values if isinstance(got, Narrow) else got
        with np.errstate(all="ignore"):
            sizes = np.sum(np.abs(values), axis=axis)
            slack = np.where(np.isfinite(sizes), sizes, 0) * 1e-13 if name in ROUNDED else 0
            off = numbers != want if is_type != t else outside(numbers, want, slack, FORMATS[t])
        if np.any(off):
            self.fail(f"{said}: {numbers!r}, not {want!r}")

    def of_the_type(self, name, function):
        """An operand that was computed in f32 is rounded to f16 first."""
        if not self.mine():
            return
        a = np.random.default_rng(1).normal(0, 100, 500).astype("f2")
        text = f"{name}(a * a)" if name == "nan_to_num" else f"{name}(a * a, a)"
        self.cases += 1
        got = self.session.map(text, a=self.handle(a, self.layouts[0]))
        with np.errstate(all="ignore"):
            want = function(a * a) if name == "nan_to_num" else function(a * a, a)
        if got.dtype != want.dtype or not np.array_equal(got, want):
            self.fail(f"{text} of f16: {int((got != want).sum())} differ")

    def reduction(self, row):
        name = row["name"]
        self.begin(name)
        if not hasattr(self.session.c, f"dm_{name}"):
            self.fail(f"{name}: the library has no dm_{name}")
        if name not in REDUCTIONS and not hasattr(np, name):
            self.fail(f"{name}: no oracle: NumPy has none of that name; add it to REDUCTIONS")
            return
        if set(FORMATS) <= set(row["types"].split()):
            self.narrow_reduction(name)
        if name == "prod":
            self.large_products()
        if name == "mean":
            self.exact_means()
        for t in [t for t in row["types"].split() if t in self.takes and (name, t[0]) != ("prod", "c")]:
            rounded = name in ROUNDED and (TYPE_OF[t][0] in "fc" or name not in ("sum", "prod"))
            x = elements(name, np.dtype(TYPE_OF[t]), rounded)
            for axis, dims in (None, ""), (0, ", 0"), (1, ", -1"):
                for text in f"{name}(a{dims})", f"{name}(where(b, a, a){dims})":
                    self.check_reduction(name, text, t, x, axis, rounded)

    def large_products(self):
        """Products between 2^63 and 2^64, which have a sign where their factors have one, as f64."""
        for t in "u1", "u2", "u4", "u8", "i1", "i4", "i8":
            if not self.mine():
                continue
            x = self.session.put(np.full((3, 40), 3, t), self.layout(self.layouts[0], (3, 40)))
            out = self.session.put(np.zeros(3), self.layout(self.result, (3,)))
            self.session.library.check(self.session.c.dm_prod(self.session.at, x, (ctypes.c_int * 1)(1), 1, out))
            got, want = self.session.get(out), np.full((3, 40), 3, t).prod(1).astype("f8")
            self.cases += 1
            if not np.array_equal(got, want):
                self.fail(f"prod of {t} into f64: {got[0]}, but NumPy's is {want[0]}")
            self.session.drop(x)
            self.session.drop(out)

    def exact_means(self):
        """Sums that are whole, divided: by many n a product with 1 / n is another number."""
        random = np.random.default_rng(5)
        for n, t in itertools.product((1, 3, 49, 98, 103, 107, 161, 187, 196, 197, 1000, 3001), ("f8", "f4", "i4", "i8", "c16")):
            if not self.mine():
                continue
            x = np.concatenate([np.ones((n, 1)), random.integers(-50, 100, (n, 3))], axis=1).astype(t)
            for axis, dims in (0, ", 0"), (None, ""):
                shape = () if axis is None else (4,)
                for text, y in (f"mean(a{dims})", x), (f"mean(where(b, a + a, a){dims})", x + x):
                    want = y.mean(axis)
                    if t == "c16":  # NumPy divides by n + 0i, which is rounded more than once
                        want = y.real.mean(axis) + 1j * y.imag.mean(axis)
                    operands, _ = self.placed([x, np.ones(x.shape, "?")] if "(b," in text else [x])
                    got = self.session.map(text, self.layout(self.result, shape), **operands)
                    self.cases += 1
                    if got.dtype != want.dtype or not np.array_equal(got, want):
                        self.fail(f"{text} of {n} {t} ({self.session.workers} workers): {got!r}, not {want!r}")

    def check_reduction(self, name, text, t, x, axis, rounded):
        if not self.mine():
            return
        operands, _ = self.placed([x, np.ones(x.shape, "?")] if "(b," in text else [x])
        shape = () if axis is None else x.shape[:axis] + x.shape[axis + 1:]
        t = f"{t} ({self.session.workers} workers, {', '.join(self.layouts[:len(operands)])} to {self.result})"
        self.cases += 1
        got, dtype = self.session.map(text, self.layout(self.result, shape), **operands), reduced_type(name, x.dtype)
        if got.dtype != dtype:
            self.fail(f"{text} of {t}: {got.dtype}, but NumPy's is {dtype}")
            return
        with np.errstate(all="ignore"):
            if rounded:
                off, want = reduced_differences(name, x, axis, got)
            else:
                want = np.asarray(getattr(np, name)(x, axis=axis))
                off = ~((got == want) | ((got != got) & (want != want)))
        if got.shape != want.shape or off.any():
            self.fail(f"{text} of {t}: {got!r}, not {want!r}")

    def find_types(self):
        """Types that arrays of expressions have."""
        self.takes = set()
        for t in TYPE_OF:
            try:
                self.session.map("a", a=self.handle(self.values[t]))
                self.takes.add(t)
            except dmath.Refused:
                print(f"note: expressions do not take arrays of {t}")


def main():
    library, tool = dmath.Library(sys.argv[1]), sys.argv[2]
    listed = subprocess.run([tool, "map", "--rows", "--json"], capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in listed.splitlines()]
    cases, wrong, seen = 0, {}, set()
    for turn, workers in enumerate(WORKERS):
        session = dmath.Session(library, workers)
        checker = Checker(session, turn)
        checker.find_types()
        for row in rows:
            (checker.reduction if row["kind"] == "reduction" else checker.row)(row)
        for handle in checker.handles.values():
            session.drop(handle)
        session.close()
        cases, seen = cases + checker.cases, seen | checker.seen
        wrong.update(dict.fromkeys(checker.wrong))  # what is said of a function is said in each session
    reductions = sum(row["kind"] == "reduction" for row in rows)
    unknown = {("function", row["name"]) for row in rows if row["kind"] != "reduction" and not oracle(row["name"])[0]}
    left = [pair for pair in missing(seen, rows) if pair[:2] not in unknown]
    print(f"{len(rows) - reductions} functions, {reductions} reductions, {cases} cases, {len(wrong)} wrong")
    for text in list(wrong)[:40] + [f"never together: {pair}" for pair in left[:10]]:
        print(text)
    sys.exit(len(rows) - reductions < 50 or reductions < 10 or wrong != {} or left != [])


def missing(seen, rows):
    """Pairs that no check had."""
    want = [("operand", kind, "workers", w) for kind in LAYOUTS for w in WORKERS]
    want += [("result", kind, "workers", w) for kind in LAYOUTS for w in WORKERS]
    want += [("operand", one, "result", other) for one in LAYOUTS for other in LAYOUTS]
    want += [("operands", one, other) for one in LAYOUTS for other in LAYOUTS]
    want += [("function", row["name"], kind) for row in rows for kind in LAYOUTS + WORKERS]
    return [pair for pair in want if pair not in seen]


main()
