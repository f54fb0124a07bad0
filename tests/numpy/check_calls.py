"""Calls that are made of several planners, one at a time, against NumPy: every operation of program_calls.py and those of
program_moves.py that order, count, scan and index, over numbers of workers, layouts, views, groups, types and extents, 0 too; with
NaN, infinities, zeros of both signs, equal elements and common offsets.

    check_calls.py LIBDMATH [--count N] [--seed S] [--workers 1,2,3,5,8] [--only OP --case K] [--options O]

Case K of an operation has the same operands on any number of workers, in other layouts. A difference prints what repeats it.
"""

import argparse
import os
import time
import zlib

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")
import numpy as np

import dmath
import program_calls
import program_moves
from check_expressions import Unknown, within
from dmath import Refused
from programs import Different, Program

OPS = program_calls.OPS + [program_moves.sorted_, program_moves.scanned, program_moves.counted, program_moves.indexed]


class Case(Program):
    def __init__(self, session, seed, number):
        super().__init__(session, seed, number, "calls")
        self.exact = self.whole = False
        self.chosen = []
        self.kind = self.pick(["plain", "plain", "odd", "equal", "offset"])

    def shape(self, ndim=None):
        ndim = self.integer(0, 4) if ndim is None else ndim
        sizes = [0, 1, 2, 3, 5, 7, 16, 23, 40] if ndim < 3 else [0, 1, 2, 3, 5, 7, 11]
        weights = np.array([0.4] + [1] * (len(sizes) - 1))
        return tuple(int(n) for n in self.random.choice(sizes, ndim, p=weights / weights.sum()))

    def values(self, dtype, shape):
        dtype, r = np.dtype(dtype), self.random
        if dtype.kind == "c":
            part = np.dtype("f4" if dtype == np.dtype("c8") else "f8")
            return (self.values(part, shape) + 1j * self.values(part, shape)).astype(dtype)
        if dtype.kind == "b" or self.kind == "odd" and dtype.kind != "f":
            return super().values(dtype, shape)
        if dtype.kind in "iu":
            return r.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
        values = r.normal(0, 3, shape)
        if self.kind == "equal":
            values = r.integers(-3, 4, shape) * 0.5 * r.choice([1, -1], shape)  # zeros of both signs
        elif self.kind == "offset":
            values = 1000 + values
        elif self.kind == "odd":
            odd = r.choice([0.0, -0.0, np.inf, -np.inf, np.nan, np.nan, 1e-30, 65504], shape)
            values = np.where(r.random(shape) < 0.15, odd, values)
        return values.astype(dtype)

    def adopt(self, out, want, bound):
        got = self.session.get(self.handles[out])
        if got.dtype.kind != "c":
            return super().adopt(out, want, bound)
        if not all(within(g, np.asarray(w, "g"), np.asarray(bound, "g")) for g, w in ((got.real, want.real), (got.imag, want.imag))):
            raise Different(f"gives {got}\nNumPy {want}\nbound {bound}")
        self.twins[out][...] = got


def check(session, seed, name, draw, number, counts):
    p = Case(session, seed, [zlib.crc32(name.encode()), number])
    try:
        with np.errstate(all="ignore"):
            step = draw(p)
            p.run(step)
        p.compare()
        counts["cases"] += 1
        counts["bounded"] += step.bound is not None
    except (Unknown, Refused):
        counts["left out"] += 1
        return
    except Different as difference:
        print("\n".join(p.log))
        print(f"--seed {seed} --workers {session.workers} --only {name} --case {number}: {p.log[-1]}: {difference}", flush=True)
        counts["different"] += 1
    finally:
        p.close()
    counts[name] = counts.get(name, 0) + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--seed", type=int, default=20251125)
    parser.add_argument("--workers", default="1,2,3,5,8")
    parser.add_argument("--only")
    parser.add_argument("--case", type=int)
    parser.add_argument("--options", default="device=cpu")
    options = parser.parse_args()
    library, start = dmath.Library(options.library), time.time()
    counts = {"cases": 0, "bounded": 0, "left out": 0, "different": 0}
    numbers = range(options.count) if options.case is None else [options.case]
    for workers in options.workers.split(","):
        session = dmath.Session(library, int(workers), options.options)
        for op in OPS:
            if options.only in (None, op.__name__):
                for number in numbers:
                    check(session, options.seed, op.__name__, op, number, counts)
        session.close()
    print(f"--seed {options.seed}: {counts}, {time.time() - start:.0f} s")
    least = min(counts.get(op.__name__, 0) for op in OPS if options.only in (None, op.__name__))
    if counts["different"] or options.case is None and least < options.count:
        raise SystemExit("results differ" if counts["different"] else "too few cases could be compared")


if __name__ == "__main__":
    np.set_printoptions(linewidth=150)
    main()
