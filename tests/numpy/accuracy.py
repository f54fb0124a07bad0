"""The greatest error of each elementwise function, in ulps, by type.

    accuracy.py LIBDMATH [--count N] [--seed S] [--check] [--device cpu|cuda] [--write FOLDER]

An error is |result - exact| over the distance of the numbers of the type at exact. Arguments of f64 and f32: N, half of them
uniform over the range of exact.py, half with uniform exponents in it down to 2^-40, of either sign where the range has both
(powers: bases from the range, exponents -30 to 30). f16 and bf16: all numbers of the type that are in f32's range, of two operands N
pairs. Complex numbers: N, half of them with parts uniform to 4, a quarter with uniform exponents, a quarter near the unit circle; the
error is that of the number, over the distance of the numbers of the part's type at |exact|. Functions that are slow here have N / 100 of f64, N / 10 of f32, and each seventh of f16 and bf16. Results beyond the largest number of the type do not count. --check: ends with 1 where an error is above
its bound. --write: the figures to FOLDER/accuracy-DEVICE.json, and the table of all such files to docs/accuracy.md.
"""

import argparse
import ctypes
import glob
import json
import os
import sys

import numpy as np

import dmath
from exact import COMPLEX, ROWS, SLOW, TWO

TYPES = {"f64": (1, 52, -1022), "f32": (2, 23, -126), "f16": (3, 10, -14), "bf16": (4, 7, -126)}  # code, bits, least exponent
RAW = {"f64": "f8", "f32": "f4", "f16": "u2", "bf16": "u2"}
LIMIT = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0, "bf16": 3.3895313892515355e38}
# Of f64 and f32; 1 where there is none. 0.51 of the 16-bit floats, which are rounded once from f32.
BOUNDS = {"rsqrt": (2, 2), "cbrt": (4, 1), "log10": (2, 1), "sinh": (2.5, 1), "cosh": (1.5, 1), "tanh": (3, 1), "asinh": (2, 1),
          "acosh": (2.5, 1), "atanh": (2.5, 1), "erf": (1.5, 1.5), "erfc": (3, 4), "gamma": (6, 6), "lgamma": (4, 4),
          "sigmoid": (3, 1), "softplus": (2, 2), "gelu": (5, 5), "logaddexp": (2, 1)}
# GPUs take CUDA's functions: the larger of the bound above and this.
BOUND_CUDA = (2.5, 3)
# Complex functions, of c128; c64 is rounded once from that.
BOUNDS_COMPLEX = {"sqrt": 2.5, "tan": 7, "tanh": 7, "sign": 2.5}


def bits_of(x, dtype):
    """Memory of the type for numbers that it has."""
    if dtype == "f16":
        return x.astype("f2").view("u2")
    return (x.astype("f4").view("u4") >> 16).astype("u2") if dtype == "bf16" else x.astype(RAW[dtype])


def value_of(raw, dtype):
    if dtype == "f16":
        return raw.view("f2").astype("f4").astype("g")
    return (raw.astype("u4") << 16).view("f4").astype("g") if dtype == "bf16" else raw.astype("g")


def run(session, name, dtype, arguments):
    """The function of arrays of the type; values as long doubles."""
    c, handles = session.c, []
    shape = (ctypes.c_int64 * 1)(arguments[0].size)
    for raw in (*arguments, np.zeros_like(arguments[0])):
        handle = dmath.Handle()
        session.library.check(c.dm_array_create(session.at, TYPES[dtype][0], 1, shape, None, ctypes.byref(handle)))
        session.library.check(c.dm_array_write(session.at, handle, None, None, raw.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0)))
        handles.append(handle)
    session.library.check(getattr(c, "dm_" + name)(session.at, *handles))
    out = np.zeros_like(arguments[0])
    session.library.check(c.dm_array_read(session.at, handles[-1], None, None, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0)))
    for handle in handles:
        session.drop(handle)
    return value_of(out, dtype)


def draw(random, dtype, name, count):
    lo, hi = ROWS[name][1 if dtype == "f64" else 2]
    uniform = random.uniform(lo, hi, count // 2)
    top, bottom = np.log2(max(abs(lo), abs(hi))), -40 if lo <= 0 else max(-1000, np.log2(lo))
    size = np.exp2(random.uniform(bottom, top, count - count // 2))
    if lo < 0:
        size = size * random.choice([1, -1], size.size)
    return np.clip(np.concatenate([uniform, size]), lo, hi)


def arguments_of(random, dtype, name, count):
    if dtype in ("f16", "bf16"):
        every = np.arange(65536).astype("u2")
        lo, hi = ROWS[name][2]
        value = value_of(every, dtype)
        some = every[(value >= lo) & (value <= hi) & np.isfinite(value)]
        if name not in TWO:
            return [some[::7].copy() if name in SLOW else some]
        powers = every[np.abs(np.where(np.isfinite(value), value, 99)) <= 30]
        return [random.choice(some, count), random.choice(powers if name == "pow" else some, count)]
    count = count // 100 if name in SLOW and dtype == "f64" else count // 10 if name in SLOW else count
    rows = [draw(random, dtype, name, count)]
    if name in TWO:
        rows.append(random.uniform(-30, 30, count) if name == "pow" else random.permutation(draw(random, dtype, name, count)))
    return [bits_of(x, dtype) for x in rows]


def measure(session, random, name, dtype, count):
    """The greatest error, and where."""
    raw = arguments_of(random, dtype, name, count)
    values = [value_of(x, dtype) for x in raw]
    with np.errstate(all="ignore"):
        values = [np.where(np.isnan(v), 0, v) for v in values]
        want = ROWS[name][0](*values)
    got = run(session, name, dtype, raw)
    _, bits, least = TYPES[dtype]
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.where(np.isfinite(want), want, 1))[1] - 1, least)
        error = np.abs(got - want) / np.ldexp(np.longdouble(1), exponent - bits)
        counts = np.isfinite(want) & (np.abs(want) < LIMIT[dtype] * (1 - 2.0 ** -bits))
    wrong = counts & ~np.isfinite(error)
    error = np.where(counts, np.where(wrong, np.inf, error), 0)
    at = int(np.argmax(error))
    return float(error[at]), [float(v[at]) for v in values]


def run_complex(session, name, z):
    x, out = session.put(z), session.put(np.zeros_like(z))
    session.library.check(getattr(session.c, "dm_" + name)(session.at, x, out))
    values = session.get(out)
    session.drop(x)
    session.drop(out)
    return values.astype("G")


def measure_complex(session, random, name, dtype, count):
    """The greatest error, and where. What overflows, or is subnormal, does not count."""
    function, most = COMPLEX[name]
    spread = np.clip(random.choice([-1, 1], (2, count // 4)) * np.exp2(random.uniform(-40, np.log2(most), (2, count // 4))), -most, most)
    circle = (1 + random.normal(0, 1, count // 4) * np.exp2(random.uniform(-40, -2, count // 4))) * np.exp(1j * random.uniform(0, 7, count // 4))
    z = np.concatenate([random.uniform(-4, 4, count // 2) + 1j * random.uniform(-4, 4, count // 2), spread[0] + 1j * spread[1], circle])
    z = z.astype({"c128": "c16", "c64": "c8"}[dtype])
    info = np.finfo(z.real.dtype)
    with np.errstate(all="ignore"):
        want = function(z.astype("G"))
        size = np.hypot(want.real, want.imag)
        counts = np.isfinite(size) & (size < info.max / 2) & (size >= info.tiny)
        got = run_complex(session, name, z)
        error = np.hypot(got.real - want.real, got.imag - want.imag) / np.exp2(np.floor(np.log2(np.where(counts, size, 1)))) / np.longdouble(info.eps)
    error = np.where(counts, np.where(np.isnan(error), np.inf, error), 0)
    at = int(np.argmax(error))
    return float(error[at]), complex(z[at])


def write_table(folder, root):
    files = sorted(glob.glob(os.path.join(folder, "accuracy-*.json")))
    tables = [json.load(open(f)) for f in files]
    columns = [(t["device"], dtype) for t in tables for dtype in TYPES]
    with open(os.path.join(root, "docs", "accuracy.md"), "w") as out:
        out.write("""# Accuracy of the elementwise functions

The greatest error that was measured, in ulps: |result - exact| over the distance of the numbers of the type at exact. A result that
is rounded once has at most 0.5. `tests/numpy/accuracy.py` measures and writes this page. The exact values are computed in long
double (64 bits) or with 60 decimals (`tests/numpy/exact.py`, which has the ranges of the arguments too).

Arguments of f64 and f32: half of them uniform over the range, half with uniform exponents; f16 and bf16, which are computed in f32
and rounded once: all of their numbers in f32's range. Results beyond the largest number of the type are not counted. Functions that are not in the
table are exact, or a comparison, or round once by the rules of IEEE 754 (`subtract`, `sqrt`, `floor` and such). `remainder` and
`floor_divide` are compared with NumPy to the last bit by `numpy_rows`. The test `numpy_accuracy` has a bound for each row.

""")
        for t in tables:
            out.write(f"- {t['device']}: {t['machine']}; {t['count']} arguments, seed {t['seed']}\n")
        out.write("\n| function | range, f64 | range, f32 | " + " | ".join(f"{device} {dtype}" for device, dtype in columns) + " |\n")
        out.write("|---|---|---|" + "---|" * len(columns) + "\n")
        for name, (_, wide, narrow) in ROWS.items():
            figures = [f"{t['rows'][name][dtype]:.3f}" if dtype in t["rows"].get(name, {}) else "" for t in tables for dtype in TYPES]
            out.write(f"| {name} | {wide[0]:g} to {wide[1]:g} | {narrow[0]:g} to {narrow[1]:g} | {' | '.join(figures)} |\n")
        out.write("""
## Complex numbers

The error is that of the number, |result - exact|, over the distance of the numbers of the part's type at |exact|: a part that is much
smaller than the other one may have fewer digits that are right. c64 is computed in f64 and rounded once. Arguments: parts up to the given
size, half of them up to 4, a quarter with uniform exponents, a quarter near the unit circle. `pow` is made of products where the
exponent is a whole number from -32 to 32, else it is e^(w log z), with an error of some |w log z| ulps. Values at infinities, NaN and
zeros of both signs are those of C99, annex G, which the Python array API takes over; `numpy_rows` compares them.

""")
        columns = [(t["device"], dtype) for t in tables for dtype in ("c128", "c64")]
        out.write("| function | parts up to | " + " | ".join(f"{device} {dtype}" for device, dtype in columns) + " |\n")
        out.write("|---|---|" + "---|" * len(columns) + "\n")
        for name, (_, most) in COMPLEX.items():
            figures = [f"{t['complex'][name][dtype]:.3f}" if name in t.get("complex", {}) else "" for t in tables for dtype in ("c128", "c64")]
            out.write(f"| {name} | {most:g} | {' | '.join(figures)} |\n")


def machine(device):
    if device != "cpu":
        return os.popen("nvidia-smi --query-gpu=name --format=csv,noheader | head -1").read().strip()
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return (names or ["unknown"])[0] + ", " + " ".join(os.confstr("CS_GNU_LIBC_VERSION").split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", metavar="FOLDER")
    options = parser.parse_args()
    session, rows, good = dmath.Session(dmath.Library(options.library), 1, "device=" + options.device), {}, True
    for name in ROWS:
        rows[name] = {}
        for number, dtype in enumerate(TYPES):
            random = np.random.default_rng([options.seed, number, *name.encode()])
            error, where = measure(session, random, name, dtype, options.count)
            rows[name][dtype] = error
            bound = 0.51 if dtype in ("f16", "bf16") else BOUNDS.get(name, (1, 1))[dtype == "f32"]
            if dtype in ("f64", "f32") and options.device == "cuda":
                bound = max(bound, BOUND_CUDA[dtype == "f32"])
            if options.check and not error <= bound:
                print(f"{name} of {dtype} {where}: {error:.3f} ulps, above {bound}")
                good = False
        print(name, " ".join(f"{dtype} {error:.3f}" for dtype, error in rows[name].items()), flush=True)
    of_complex = {}
    for name in COMPLEX:
        of_complex[name] = {}
        for dtype in "c128", "c64":
            error, where = measure_complex(session, np.random.default_rng([options.seed, *name.encode()]), name, dtype, options.count)
            of_complex[name][dtype] = error
            bound = BOUNDS_COMPLEX.get(name, 4) if dtype == "c128" else 0.8
            if options.check and not error <= bound:
                print(f"{name} of {dtype} {where}: {error:.3f} ulps, above {bound}")
                good = False
        print(name, " ".join(f"{dtype} {error:.3f}" for dtype, error in of_complex[name].items()), flush=True)
    session.close()
    if options.write:
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(options.write, f"accuracy-{options.device}.json"), "w") as out:
            json.dump({"device": options.device, "machine": machine(options.device), "count": options.count, "seed": options.seed,
                       "rows": {n: {d: round(e, 4) for d, e in row.items()} for n, row in rows.items()},
                       "complex": {n: {d: round(e, 4) for d, e in row.items()} for n, row in of_complex.items()}}, out, indent=1)
            out.write("\n")
        write_table(options.write, root)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
