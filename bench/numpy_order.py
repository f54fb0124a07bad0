"""Sorting, scans, searching and counting beside NumPy's, in turns, in this process; medians of the time that passes and of that of
the processors, which other programs disturb less.

    DMATH_WORKERS=2 python3 bench/numpy_order.py LIBDMATH [ELEMENTS]
"""

import ctypes
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "numpy"))
import dmath

RUNS = 7
library = dmath.Library(sys.argv[1])
n = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
session = dmath.Session(library, int(os.environ.get("DMATH_WORKERS", "2")))
random = np.random.default_rng(1)


def times(work):
    passed, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - passed, time.process_time() - busy


def call(name, *arguments):
    library.check(getattr(library.c, name)(session.at, *arguments))
    library.check(library.c.dm_sync(session.at))


def compare(name, ours, theirs):
    runs = [times(ours) + times(theirs) for _ in range(RUNS + 1)][1:]
    wall, busy, their_wall, their_busy = (sorted(run[i] for run in runs)[RUNS // 2] * 1e3 for i in range(4))
    print(f"{name:46} dmath {wall:7.1f} ms, processors {busy:7.1f}; NumPy {their_wall:7.1f}, {their_busy:7.1f}; "
          f"{their_wall / wall:5.2f} and {their_busy / busy:5.2f} times", flush=True)


def sort_cases(dtype):
    values = (random.standard_normal(n) * 1e6).astype(dtype)
    x, y, places = session.put(values), session.put(values), session.put(np.zeros(n, "i8"))
    compare(f"sort {n} {dtype}", lambda: call("dm_sort", x, 0, 0, y), lambda: np.sort(values))
    assert np.array_equal(session.get(y), np.sort(values))
    compare(f"argsort, stable, {n} {dtype}", lambda: call("dm_argsort", x, 0, 0, places),
            lambda: np.argsort(values, kind="stable"))
    assert np.array_equal(session.get(places), np.argsort(values, kind="stable"))
    rows = values[: n // 1000 * 1000].reshape(-1, 1000)
    r, s = session.put(rows), session.put(rows)
    compare(f"sort {rows.shape[0]} rows of 1000 {dtype}", lambda: call("dm_sort", r, 1, 0, s), lambda: np.sort(rows))
    for handle in (x, y, places, r, s):
        session.drop(handle)


def other_cases(dtype):
    values = random.standard_normal(n).astype(dtype)
    columns = values[: n // 1000 * 1000].reshape(-1, 1000)
    x, y, c, d = session.put(values), session.put(values), session.put(columns), session.put(columns)
    compare(f"cumulative sum of {n} {dtype}", lambda: call("dm_cumulative_sum", x, 0, y), lambda: np.cumsum(values))
    compare(f"cumulative max of {n} {dtype}", lambda: call("dm_cumulative_max", x, 0, y),
            lambda: np.maximum.accumulate(values))
    compare(f"cumulative sum down {columns.shape[0]} rows {dtype}", lambda: call("dm_cumulative_sum", c, 0, d),
            lambda: np.cumsum(columns, 0))
    counts = session.put(np.zeros(100, "i8"))
    compare(f"histogram of {n} {dtype}, 100 bins",
            lambda: call("dm_histogram", x, ctypes.c_double(-4), ctypes.c_double(4), dmath.Handle(0), counts),
            lambda: np.histogram(values, 100, (-4, 4)))
    edges, places = np.sort(values[:100_000]), session.put(np.zeros(n, "i8"))
    e = session.put(edges)
    compare(f"searchsorted of {n} in 100000 {dtype}", lambda: call("dm_searchsorted", e, x, 0, places),
            lambda: np.searchsorted(edges, values))
    top, where = session.put(values[:1000]), session.put(np.zeros(1000, "i8"))
    compare(f"largest 1000 of {n} {dtype} (NumPy: argpartition)", lambda: call("dm_topk", x, 0, 1, top, where),
            lambda: np.argpartition(values, n - 1000))
    mask = session.put(np.zeros(n, "?"))
    compare(f"isin of {n} in 100000 {dtype}", lambda: call("dm_isin", x, e, 0, mask), lambda: np.isin(values, edges))
    chosen, found = session.put(values > 0), dmath.Handle()

    def nonzero():
        call("dm_nonzero", chosen, 1, ctypes.byref(found))
        session.drop(found)
    compare(f"nonzero of {n} bool, half of them", nonzero, lambda: np.nonzero(values > 0))
    for handle in (x, y, c, d, counts, e, places, top, where, mask, chosen):
        session.drop(handle)


print(f"{session.workers} workers, NumPy {np.__version__}, medians of {RUNS} runs in turns")
for dtype in ("f4", "f8", "i4", "i8"):
    sort_cases(dtype)
for dtype in ("f4", "f8", "i4"):
    other_cases(dtype)
session.close()
