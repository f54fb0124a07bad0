"""Gamma and Poisson numbers and dropout masks: moments and distributions against closed forms, the same bits on any number of workers.

    check_random.py LIBDMATH

The distribution functions are computed here (series and continued fraction of the incomplete gamma function, sums of
probabilities by lgamma), and checked against values from tables. Bounds: Kolmogorov-Smirnov 2.7 / sqrt(n) and chi-square mean +
5.5 deviations, which a right sample passes but for about one in a million.
"""

import ctypes
import math
import sys

import numpy as np

import dmath

N = 40000


def gamma_function(a, x):
    """The regularised lower incomplete gamma function P(a, x)."""
    if x <= 0:
        return 0.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while abs(term) > 1e-17 * abs(total):
            k += 1
            term *= x / k
            total += term
        return min(total * scale, 1.0)
    b, c = x + 1 - a, 1e300
    d = 1 / b
    h = d
    for i in range(1, 100000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return 1 - scale * h


def moments(name, x, mean, variance, fourth):
    """fourth: the fourth central moment."""
    n = x.size
    at = abs(x.mean() - mean) / math.sqrt(variance / n)
    spread = abs(((x - mean) ** 2).mean() - variance) / math.sqrt((fourth - variance ** 2) / n)
    print(f"  {name}: mean off by {at:.2f}, variance by {spread:.2f} deviations")
    return at < 5 and spread < 5


def check_gamma(fill, shape, scale):
    x = fill("gamma", "f8", shape, scale, 17)
    good = moments(f"gamma {shape} {scale}", x, shape * scale, shape * scale ** 2, 3 * shape * (shape + 2) * scale ** 4)
    some = np.sort(x)[::97]  # the function is slow
    at = np.arange(x.size)[::97]
    f = np.array([gamma_function(shape, v / scale) for v in some])
    distance = max(np.abs(f - at / x.size).max(), np.abs(f - (at + 1) / x.size).max()) * math.sqrt(x.size)
    print(f"    Kolmogorov-Smirnov {distance:.2f}")
    short = fill("gamma", "f4", shape, scale, 17)
    return good and distance < 2.7 and bool(np.array_equal(short, x.astype("f4")))


def check_poisson(fill, rate):
    x = fill("poisson", "i8", rate, None, 23)
    good = moments(f"poisson {rate}", x, rate, rate, rate * (1 + 3 * rate)) if rate else bool(np.all(x == 0))
    if rate == 0 or rate > 1e6:
        return good
    lo, hi = max(0, int(rate - 6 * math.sqrt(rate))), int(rate + 6 * math.sqrt(rate) + 6)
    p = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in range(lo, hi)])
    seen = np.bincount(np.clip(x, lo, hi - 1) - lo, minlength=hi - lo)
    group = np.cumsum(p) * N // 20  # bins of at least 20 or so
    groups = np.unique(group)
    want = np.array([p[group == g].sum() for g in groups]) * N
    got = np.array([seen[group == g].sum() for g in groups])
    want[-1] += N - want.sum()
    chi, freedom = float(((got - want) ** 2 / np.maximum(want, 1e-9)).sum()), len(groups) - 1
    print(f"    chi-square {chi:.1f} of {freedom}")
    return good and chi < freedom + 5.5 * math.sqrt(2 * max(freedom, 1)) + 10 and \
        bool(np.array_equal(fill("poisson", "f8", rate, None, 23), x))


def check_dropout(fill, p):
    x = fill("dropout", "f8", p, None, 5)
    dropped = float((x == 0).mean())
    away = abs(dropped - p) / math.sqrt(p * (1 - p) / x.size) if p else abs(dropped)
    print(f"  dropout {p}: off by {away:.2f} deviations")
    return away < 5 and set(np.unique(x)) <= {0, 1 / (1 - p)}


def main(path):
    library = dmath.Library(path)
    assert abs(gamma_function(2.5, 2) - 0.45058404864721976) < 1e-12 and abs(gamma_function(0.5, 0.5) - 0.6826894921370859) < 1e-12
    assert abs(gamma_function(3, 10) - 0.9972306042844884) < 1e-12
    cases = [("gamma", s, t) for s, t in ((0.05, 1), (0.5, 3), (1, 1), (2.5, 0.5), (40, 1), (1e6, 1e-3))]
    cases += [("poisson", r, None) for r in (0, 0.01, 1, 9.99, 10, 11.5, 40, 1000, 1e5, 1e15)]
    cases += [("dropout", p, None) for p in (0, 0.1, 0.5)]
    checks, first, good = {"gamma": check_gamma, "poisson": check_poisson, "dropout": check_dropout}, {}, True
    for workers in (1, 2, 3, 5, 8):
        session = dmath.Session(library, workers)

        def fill(kind, dtype, one, two, seed):
            layout = [None, session.c.dm_layout_cyclic(session.at, 0, 3), session.c.dm_layout_replicated(session.at)][workers % 3]
            handle = session.put(np.zeros(N, dtype), layout)
            numbers = [ctypes.c_double(v) for v in (one, two) if v is not None]
            library.check(getattr(session.c, f"dm_fill_{kind}")(session.at, handle, *numbers, ctypes.c_uint64(seed)))
            values = session.get(handle)
            session.drop(handle)
            return values
        for kind, one, two in cases:
            if workers == 1:
                ok = checks[kind](fill, *(v for v in (one, two) if v is not None))
                good &= ok
                print("" if ok else f"  {kind} {one} {two}: WRONG\n", end="")
            for dtype in ("f8", "f2", "f4") if kind != "poisson" else ("f8", "i4", "u1"):
                values = fill(kind, dtype, one, two, 99).tobytes()
                if first.setdefault((kind, one, two, dtype), values) != values:
                    print(f"  {kind} {one} {two} of {dtype}: other bits on {workers} workers")
                    good = False
        session.close()
    print("agrees" if good else "DOES NOT AGREE")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
