"""Elementwise functions beside NumPy's, in nanoseconds of the processors for each element; arrays that fit the caches.

    python3 bench/numpy_functions.py LIBDMATH [ELEMENTS] > bench/results/cpu-2-cores-functions.txt

Least of 5 runs of 10 calls each, on operands and results that are there. The last column is what 2 free cores would make of it: NumPy
uses one.
"""

import ctypes
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "numpy"))
import dmath

ONE = {"exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
       "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "exp2": "exp2", "expm1": "expm1", "log2": "log2", "log10": "log10",
       "log1p": "log1p", "cbrt": "cbrt", "sqrt": "sqrt", "floor": "floor", "sign": "sign", "isnan": "isnan"}
TWO = {"pow": "power", "atan2": "arctan2", "hypot": "hypot", "logaddexp": "logaddexp", "remainder": "remainder",
       "greater": "greater", "maximum": "maximum"}
CALLS = 10
library = dmath.Library(sys.argv[1])
n = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20
session = dmath.Session(library, 2)
random = np.random.default_rng(2)


def least(work, end=lambda: None):
    times = []
    for _ in range(6):
        begin = time.process_time()
        for _ in range(CALLS):
            work()
        end()
        times.append(time.process_time() - begin)
    return min(times[1:]) / CALLS / n * 1e9


print(f"2 workers, NumPy {np.__version__}, {n} elements, load {os.getloadavg()[0]:.1f}")
for dtype in ("f4", "f8"):
    x, y = ((random.random(n) * 0.9 + 0.05).astype(dtype) for _ in range(2))
    arrays, out, truth = (session.put(x), session.put(y)), session.put(x), session.put(np.zeros(n, "?"))
    for name, theirs in (*ONE.items(), *TWO.items()):
        operands, to = arrays[:2 if name in TWO else 1], truth if name in ("isnan", "greater") else out

        def ours():
            library.check(getattr(library.c, "dm_" + name)(session.at, *operands, to))

        into = np.empty(n, "?" if to is truth else dtype)
        a, b = least(ours, lambda: library.check(library.c.dm_sync(session.at))), least(lambda: getattr(np, theirs)(*(x, y)[:len(operands)], into))
        print(f"{dtype} {name:12} dmath {a:6.2f} ns, NumPy {b:6.2f}; {2 * b / a:5.2f} times", flush=True)
library.check(library.c.dm_finalize(session.at, ctypes.byref(ctypes.c_int64())))
