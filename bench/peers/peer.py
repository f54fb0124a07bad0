"""What the peers' benchmarks share: their cases, the lines they print, statistics and the command line.

Cases are written as dmath's layouts of A, B and C, of C = A * B with square matrices:

  rows/rows/rows    every operand by rows
  rows/cols/cols    A by rows; B and C by columns
  cols/rows/rows    K is spread: A by columns, B by rows; partial products are summed into rows
  rowsT/rows/rows   the same with A stored transposed, as the gradient of weights has it
  remap             rows to columns, no arithmetic
  chain100          100 additions in a chain, 1024 x 1024 on each GPU; n is 1024

A line is one JSON object: peer, case, dtype, n, gpus; ms_median, ms_min and iqr of at least 20 samples, each of them a
batch of calls given at once, over their number, of the slowest GPU; alone_ms, the median time of one call that is waited
for; checked: whether entries of the result were right. A case that could not be run has `error` instead of times.
"""

import argparse
import json
import math
import statistics

GEMM_CASES = ["rows/rows/rows", "rows/cols/cols", "cols/rows/rows", "rowsT/rows/rows"]
CASES = GEMM_CASES + ["remap", "chain100"]
DTYPES = ["bf16", "f16", "tf32", "f32", "f64"]
CHAIN = 100
CHAIN_EDGE = 1024

# Largest difference of an entry from its value in f64, as a part of sqrt(k), which a typical entry of a product of
# standard normal numbers has. f32's is small enough that a product in TF32 fails it.
TOLERANCE = {"bf16": 3e-2, "f16": 4e-3, "tf32": 5e-3, "f32": 1e-4, "f64": 1e-12}


def parse(description, argv=None, more=None):
    """The options that all of them take; more(parser) adds others."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--sizes", default="4096,8192,16384", help="edges of the square matrices")
    p.add_argument("--dtypes", default="bf16,f32", help=",".join(DTYPES))
    p.add_argument("--cases", default=",".join(["rows/rows/rows", "rows/cols/cols", "cols/rows/rows"]),
                   help=",".join(CASES))
    p.add_argument("--gpus", type=int, default=0, help="how many; 0: all")
    p.add_argument("--samples", type=int, default=20)
    p.add_argument("--limit", type=int, default=540, help="seconds after which the program ends, whatever it does")
    p.add_argument("--cpu", action="store_true", help="without GPUs, to try the program out")
    if more:
        more(p)
    o = p.parse_args(argv)
    o.sizes = [int(s) for s in o.sizes.split(",")]
    o.dtypes = o.dtypes.split(",")
    o.cases = o.cases.split(",")
    for given, known in ((o.dtypes, DTYPES), (o.cases, CASES)):
        for one in given:
            if one not in known:
                p.error(f"`{one}' is none of {', '.join(known)}")
    return o


def batch_for(ms):
    """So many calls a sample that launching is hidden, and so few that a sample ends soon."""
    return 20 if ms < 1 else 5 if ms < 10 else 2 if ms < 25 else 1


def quartile_range(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def emit(peer, case, dtype, n, gpus, **more):
    print(json.dumps({"peer": peer, "case": case, "dtype": dtype, "n": n, "gpus": gpus, **more}), flush=True)


def emit_times(peer, case, dtype, n, gpus, batched_ms, alone_ms, checked, error):
    emit(peer, case, dtype, n, gpus,
         ms_median=round(statistics.median(batched_ms), 5), ms_min=round(min(batched_ms), 5),
         iqr=round(quartile_range(batched_ms), 5), alone_ms=round(statistics.median(alone_ms), 5),
         checked=checked, largest_error=None if math.isnan(error) else float(f"{error:.3g}"), samples=len(batched_ms))


def emit_failure(peer, case, dtype, n, gpus, why):
    emit(peer, case, dtype, n, gpus, checked=False, error=" ".join(str(why).split())[:200])


def plan(o):
    """(case, dtype, n) to be run, each once: the cases without sizes or types do not repeat."""
    for dtype in o.dtypes:
        for n in o.sizes:
            for case in o.cases:
                if case in GEMM_CASES:
                    yield case, dtype, n
    if "remap" in o.cases:
        for n in o.sizes:
            yield "remap", "f32", n
    if "chain100" in o.cases:
        yield "chain100", "f32", CHAIN_EDGE
