"""Random programs of many operations on shared arrays and views, against NumPy, on several numbers of workers.

    check_programs.py LIBDMATH [--count N] [--seed S] [--workers 1,2,3,5,8] [--case K] [--each] [--how both]
    mpirun -n RANKS python3 check_programs.py LIBDMATH --launched [--count N] ...

Case K of a seed is the same program on any number of workers, with other layouts. Of a case, one number of workers runs the
calls one by one, one runs them recorded (dm_program_begin), and one compares what dm_explain_begin predicts for each call
with the counters; the others run the calls. What it predicts for the runs of recorded ones is compared too. With --how both each runs call by call, and then once more recorded: all arrays must
be equal to the bit, those with a bound too, which are recorded as well. Results that dmath knows to the last bit must be NumPy's to the last bit, at the
end; others, in programs of their own, are read after each step, have a bound, and take NumPy's place. --each reads all arrays
after each step: it finds where a difference begins.
"""

import argparse
import os
import time

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")
import numpy as np

import dmath
import program_moves
from programs import KEPT, Different, Program


class Printed(list):
    def append(self, line):
        super().append(line)
        print(line, flush=True)


def check(session, seed, number, at, options, counts):
    how = options.how or ["calls", "recorded", "explained"][(number + at) % 3]
    if how == "both":
        trail = []
        if run(Program(session, seed, number, "calls", trail=trail), seed, number, how, options, counts):
            run(Program(session, seed, number, "recorded", follows=trail), seed, number, how, options, counts)
            counts["programs"] -= 1
    else:
        run(Program(session, seed, number, how), seed, number, how, options, counts)


def run(p, seed, number, how, options, counts):
    """Is it as it must be?"""
    different = counts["different"]
    length = p.integer(5, 51)
    p.log = Printed() if options.trace else p.log
    try:
        for _ in range(length):
            p.run(program_moves.draw(p))
            if options.each:
                p.compare()
            if len(p.twins) > KEPT:
                p.forget()
        p.compare(last=True)
    except Different as difference:
        again = f"--seed {seed} --case {number} --workers {p.session.workers} --how {how}"
        print("\n".join(p.log[-60:]))
        print(f"{again}, step {p.counts['steps']}: {p.log[-1]}: {difference}", flush=True)
        counts["different"] += 1
        p.queue = []
        if not options.go_on:
            raise SystemExit(1)
    finally:
        p.close()
    counts["programs"] += 1
    for name, count in p.counts.items():
        counts[name] += count
    return counts["different"] == different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20241123)
    parser.add_argument("--workers", default="1,2,3,5,8")
    parser.add_argument("--case", type=int)
    parser.add_argument("--how", choices=["calls", "recorded", "explained", "both"])
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--trace", action="store_true", help="print each step before it runs")
    parser.add_argument("--go-on", action="store_true", help="after a difference too")
    parser.add_argument("--options", default="device=cpu")
    parser.add_argument("--launched", action="store_true", help="the ranks of this launch are the workers")
    options = parser.parse_args()
    library, start = dmath.Library(options.library), time.time()
    counts = {n: 0 for n in ("programs", "steps", "explained", "recorded", "runs explained", "bounded", "to the bit", "different")}
    # explain cannot know what is in index arrays; where nothing is explained, threads read rows in place
    settings = f"{options.options},index_algorithm={'lend' if options.how == 'both' else 'fetch'},sort_exchange=1G"
    cases = [options.case] if options.case is not None else range(options.first, options.first + options.count)
    for at, workers in enumerate([0] if options.launched else [int(w) for w in options.workers.split(",")]):
        session = dmath.Session(library, workers, settings)
        for number in cases:
            check(session, options.seed, number, at, options, counts)
        print(f"--seed {options.seed}, {session.workers} workers: {counts}, {time.time() - start:.0f} s", flush=True)
        session.close()
    if options.how == "both" and counts["to the bit"] == 0:
        raise SystemExit("nothing was compared")
    if counts["different"] or (options.case is None and counts["explained"] == 0 and options.count > 5 and not options.how):
        raise SystemExit(1)


if __name__ == "__main__":
    np.set_printoptions(linewidth=150)
    main()
