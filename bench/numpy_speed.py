"""The vocabulary beside NumPy on the same cores, in turns, in this process; medians of the time that passes and of the processors'.

    DMATH_WORKERS=2 python3 bench/numpy_speed.py LIBDMATH [ELEMENTS [PART ...]] > bench/results/cpu-2-cores-numpy.txt

Parts (all, or those named):
memory_bound      calls that are bound by memory, beside the rate of STREAM's add (a = b + c, which moves what its triad moves) by NumPy in as
                  many plain threads of this process as there are workers
with_targets      calls with a target against NumPy. Sums and the norm, which read 64 MiB and write little, stand beside the rate of reading
                  too: memchr of the C library looks for a byte that is not there, in one plain thread and in as many as there are workers
chosen            elements that are not zero, and membership
user_code         user code of several calls, each written as its users would write it
large_expression  an expression on arrays of 1 GiB (16 times ELEMENTS)
The last column names the target. The targets hold on cores that nothing else uses.
"""

import ctypes
import os
import sys
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "numpy"))
import dmath

RUNS = 9
library = dmath.Library(sys.argv[1])
n = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 24
session = dmath.Session(library, int(os.environ.get("DMATH_WORKERS", "2")))
c, random = library.c, np.random.default_rng(1)
D = ctypes.c_double


def call(name, *arguments):
    library.check(getattr(c, "dm_" + name)(session.at, *arguments))


def expression(text, out, **names):
    rows = (dmath.Argument * max(len(names), 1))(*[dmath.Argument(k.encode(), v) for k, v in names.items()])
    call("map", text.encode(), len(names), rows, out)


def times(work):
    passed, busy = time.perf_counter(), time.process_time()
    work()
    library.check(c.dm_sync(session.at))
    return time.perf_counter() - passed, time.process_time() - busy


def in_turns(*works):
    """Medians of (passed, busy) of each."""
    runs = [[times(w) for w in works] for _ in range(RUNS + 1)][1:]
    return [tuple(sorted(run[i][k] for run in runs)[RUNS // 2] for k in (0, 1)) for i in range(len(works))]


def stream(parts):
    threads = [threading.Thread(target=np.add, args=p) for p in parts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


libc = ctypes.CDLL(None)
libc.memchr.restype, libc.memchr.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def read(parts):
    """All bytes, which are less than 255, in a plain thread for each part."""
    threads = [threading.Thread(target=libc.memchr, args=(p.ctypes.data, 255, p.nbytes)) for p in parts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def memory_bound():
    x, y, z = (session.put(random.standard_normal(n).astype("f4")) for _ in range(3))
    host = [np.ones(n, "f4") for _ in range(3)]  # written: pages of zeros that nobody wrote are one page, in the cache
    parts = [tuple(h[i * n // session.workers:(i + 1) * n // session.workers] for h in host) for i in range(session.workers)]
    cases = {"add": (3, lambda: call("add", D(1), x, D(1), y, z)), "axpby": (3, lambda: call("axpby", D(2), x, D(1), z)),
             "multiply": (3, lambda: call("multiply", D(1), x, y, z)), "copy": (2, lambda: call("copy", x, z)),
             "maximum": (3, lambda: call("maximum", x, y, z)), "where(x > y, x, -y)": (3, lambda: expression("where(x > y, x, -y)", z, x=x, y=y))}
    for name, (arrays, work) in cases.items():
        ours, theirs = in_turns(work, lambda: stream(parts))
        passed, busy = [[t[k] for t in (ours, theirs)] for k in (0, 1)]
        rates = [moved / t / 1e9 for moved, t in zip((arrays * 4 * n, 3 * 4 * n), passed)]
        by_processors = arrays / 3 * busy[1] / busy[0]
        print(f"{name:34} {rates[0]:7.1f} GB/s, STREAM's add {rates[1]:7.1f}: {rates[0] / rates[1]:5.2f}, by time of the processors "
              f"{by_processors:5.2f}   target 0.85", flush=True)
    for h in (x, y, z):
        session.drop(h)


def compare(name, target, ours, theirs):
    (wall, busy), (their_wall, their_busy) = in_turns(ours, theirs)
    print(f"{name:34} dmath {wall * 1e3:8.1f} ms, processors {busy * 1e3:8.1f}; NumPy {their_wall * 1e3:8.1f}, {their_busy * 1e3:8.1f}; "
          f"{their_wall / wall:6.2f} and {their_busy / busy:6.2f} times   target {target}", flush=True)


def compare_reading(name, target, values, ours, theirs):
    """As compare, with the rate beside that of reading the same bytes. NumPy reads with one core."""
    ones = np.ones(values.size, "f4")
    parts = [ones[i * ones.size // session.workers:(i + 1) * ones.size // session.workers] for i in range(session.workers)]
    (wall, busy), (their_wall, their_busy), (one, _), (most, _) = in_turns(ours, theirs, lambda: read([ones]), lambda: read(parts))
    rates = [values.nbytes / t / 1e9 for t in (wall, their_wall, one, most)]
    print(f"{name:34} dmath {wall * 1e3:8.1f} ms, processors {busy * 1e3:8.1f}; NumPy {their_wall * 1e3:8.1f}, {their_busy * 1e3:8.1f}; "
          f"{their_wall / wall:6.2f} and {their_busy / busy:6.2f} times   target {target}; "
          f"{rates[0]:.1f} GB/s, {rates[0] / rates[3]:.2f} of reading ({rates[3]:.1f}; one thread {rates[2]:.1f}), NumPy {rates[1]:.1f}", flush=True)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def with_targets():
    values = random.standard_normal((n // 1024, 1024)).astype("f4")
    x, y = session.put(values), session.put(values)
    row, one, column = session.put(np.zeros(1024, "f4")), session.put(np.zeros((), "f8")), session.put(np.zeros(n // 1024, "f4"))
    dims = (ctypes.c_int * 1)
    compare_reading("sum of all", 2, values, lambda: call("sum", x, None, 0, D(1), D(0), one), lambda: values.sum())
    compare_reading("sum of columns", 2, values, lambda: call("sum", x, dims(0), 1, D(1), D(0), row), lambda: values.sum(0))
    compare_reading("sum of rows", 2, values, lambda: call("sum", x, dims(1), 1, D(1), D(0), column), lambda: values.sum(1))
    compare("softmax of rows", 2, lambda: call("softmax", x, dims(1), 1, y), lambda: softmax(values))
    compare_reading("norm", 2, values, lambda: call("norm", x, D(2), None, 0, one), lambda: np.linalg.norm(values))
    flat, keys = values.ravel(), session.put(values.ravel())
    out, counts = session.put(flat), session.put(np.zeros(100, "i8"))
    which = random.integers(0, n, n // 4)
    indices, taken = session.put(which), session.put(flat[:n // 4])
    compare("sort", 1.5, lambda: call("sort", keys, 0, 0, out), lambda: np.sort(flat))
    compare("take a quarter, random", 1.5, lambda: call("take", keys, indices, 0, 1, taken), lambda: np.take(flat, which, mode="wrap"))
    compare("histogram, 100 bins", 1.5, lambda: call("histogram", keys, D(-4), D(4), dmath.Handle(0), counts),
            lambda: np.histogram(flat, 100, (-4, 4)))
    rows = random.integers(0, n // 1024, n // 4096)
    some, table = session.put(rows), session.put(values[:n // 4096])
    compare("take a quarter of the rows, random", 1.5, lambda: call("take", x, some, 0, 1, table), lambda: values.take(rows, 0))
    for h in (x, y, row, one, column, keys, out, counts, indices, taken, some, table):
        session.drop(h)


def chosen():
    mask = random.random(n) < 0.5
    numbers, few = np.where(mask, random.standard_normal(n), 0).astype("f4"), random.random(n) < 0.01
    matrix = numbers.reshape(n // 1024, 1024)

    def nonzero(x, dims):
        out = (dmath.Handle * dims)()
        call("nonzero", x, dims, out)
        for h in out:
            session.drop(h)
    for name, values in {"nonzero, half of bool": mask, "nonzero, 1 % of bool": few, "nonzero, half of f32": numbers, "nonzero, f32, two dims": matrix}.items():
        x = session.put(values)
        compare(name, 1, lambda: nonzero(x, values.ndim), lambda: np.nonzero(values))
        session.drop(x)
    quarter = n // 4  # where NumPy sorts
    for name, dtype, high, count, tests in (("isin, i32 below 10^6, 10^4 of them", "i4", 10**6, n, 10**4),
                                            ("isin, i32 below n, n/16 of them", "i4", n, n, n // 16),
                                            ("isin, a quarter, any i32, 10^4", "i4", 2**31 - 1, quarter, 10**4),
                                            ("isin, a quarter, f32, 10^4", "f4", 0, quarter, 10**4)):
        values = random.integers(0, high, count).astype(dtype) if high else random.standard_normal(count, dtype)
        test = random.integers(0, high, tests).astype(dtype) if high else values[:tests]
        x, t, out = session.put(values), session.put(test), session.put(mask[:count])
        compare(name, 1, lambda: call("isin", x, t, 0, out), lambda: np.isin(values, test))
        for h in (x, t, out):
            session.drop(h)


def user_code():
    m = 1024
    a = random.standard_normal((n // m, m))
    x, y, mean, deviation, one = session.put(a), session.put(a), session.put(a[0]), session.put(a[0]), session.put(np.zeros(()))
    dims, labels = (ctypes.c_int * 1), random.integers(0, m, n // m)
    classes, losses, order = session.put(labels), session.put(a[:, 0]), session.put(np.zeros((n // m, 10), "i8"))
    best, small = session.put(a[:, :10]), session.put(np.zeros((m, m)))
    w, score = session.put(a[0]), session.put(a[:, 0])

    def standardise():
        call("mean", x, dims(0), 1, mean)
        call("std", x, dims(0), 1, D(0), deviation)
        expression("(x - m) / d", y, x=x, m=mean, d=deviation)

    def cross_entropy():
        p = softmax(a)
        return -np.log(p[np.arange(n // m), labels])

    def gradient():
        call("matmul", x, w, score)
        expression("1 / (1 + exp(-v))", score, v=score)
        call("gemv", 1, D(1), x, score, D(0), mean)

    def best_ten():
        i = np.argpartition(a, m - 10, 1)[:, m - 10:]
        v = np.take_along_axis(a, i, 1)
        j = np.argsort(-v, 1, kind="stable")
        return np.take_along_axis(v, j, 1), np.take_along_axis(i, j, 1)
    cases = {"standardise columns": (standardise, lambda: (a - a.mean(0)) / a.std(0)),
             "distance of two arrays": (lambda: expression("sum((x - y) ** 2)", one, x=x, y=y), lambda: ((a - a) ** 2).sum()),
             "leaky relu, then a mean": (lambda: expression("mean(where(x > 0, x, 0.1 * x))", one, x=x), lambda: np.where(a > 0, a, 0.1 * a).mean()),
             "cross-entropy of rows": (lambda: call("cross_entropy", x, classes, losses), cross_entropy),
             "gradient of logistic regression": (gradient, lambda: a.T @ (1 / (1 + np.exp(-(a @ a[0]))))),
             "ten best of each row": (lambda: call("topk", x, 1, 1, best, order), best_ten),
             "covariance": (lambda: call("covariance", x, 1, D(1), small), lambda: np.cov(a, rowvar=False)),
             "running maximum, clipped": (lambda: (call("cumulative_max", x, 1, y), expression("clip(y, -1, 1)", y, y=y)),
                                          lambda: np.clip(np.maximum.accumulate(a, 1), -1, 1))}
    for name, (ours, theirs) in cases.items():
        compare(name, 1, ours, theirs)


def large_expression():
    a, b = (random.standard_normal(16 * n, "f4") for _ in range(2))
    x, y, z = session.put(a), session.put(b), session.put(b)
    compare("where(x > 0, 2 * x + y, x * y - 1)", 3, lambda: expression("where(x > 0, 2 * x + y, x * y - 1)", z, x=x, y=y),
            lambda: np.where(a > 0, np.float32(2) * a + b, a * b - np.float32(1)))
    for h in (x, y, z):
        session.drop(h)


print(f"{session.workers} workers, NumPy {np.__version__}, {n} elements, medians of {RUNS} runs in turns, load {os.getloadavg()[0]:.1f}")
for part in sys.argv[3:] or ("memory_bound", "with_targets", "chosen", "user_code", "large_expression"):
    {"memory_bound": memory_bound, "with_targets": with_targets, "chosen": chosen, "user_code": user_code,
     "large_expression": large_expression}[part]()
library.check(c.dm_finalize(session.at, ctypes.byref(ctypes.c_int64())))  # with the arrays that are left
