#!/usr/bin/env python3
"""Plants faults in a copy of the sources, one at a time, and says which tests see them.

    plant-faults.py [--rows 1-10,15] [--area NAME] [--seed S --count N] [--minutes M] [--limit S] [--scratch DIR] [--list] [--check]

A row of the table below is a small wrong edit of one file and the tests that should fail with it. The files that git knows are
copied to a scratch folder, as they are in the working tree, and built there with the preset dev; all tests of the chosen rows must pass
once. Then for each row: the edit, a build of the test programs that the row names, these tests until one fails, and the edit taken out.
A test that takes longer than its limit has failed. With ccache a row takes some seconds on two cores, of the tables (*.def) a minute or two.

Prints a line a row: "seen" and by what, "NOT SEEN", or "no row": the text is no longer in the file, or the edit does not compile.
Status: 0 if all were seen, 1 if not, 2 wrong usage or tests that fail without a fault. docs/add-an-op.md says more about rows.
"""
import argparse
import filecmp
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# area, file under src/, what is wrong, from, to, tests. A test is a program of tests/, or test_ops/NAME: one of the operations;
# touches/NAME: the same, compared with the table of kernels and simulated; numpy/rows, numpy/expressions, numpy/random.
EWISE, REDUCE, TOUCHES = "kernels/ewise/ewise.def", "kernels/reduce/reduce.def", "kernels/reduce/reduce_touches.c"
ORDER, INDEX = "kernels/order/order_touches.c", "kernels/index/index_touches.c"
FAULTS = [
    ("ewise", EWISE, "maximum loses a NaN of its first operand", "A > B || A != A ? A : B)", "A > B ? A : B)",
     "test_ops/map numpy/rows"),
    ("ewise", EWISE, "alpha and beta exchanged", "ADD(MUL(S, A), MUL(T, B))", "ADD(MUL(T, A), MUL(S, B))", "test_ops/axpby"),
    ("ewise", EWISE, "logical_xor is or", "DMI_EW(logical_xor, BINARY, LOGIC, COLD, (NUMBER)(A ^ B))",
     "DMI_EW(logical_xor, BINARY, LOGIC, COLD, (NUMBER)(A | B))", "numpy/rows"),
    ("ewise", EWISE, "operands of copysign exchanged", "COLD, FN(copysign)(A, B))", "COLD, FN(copysign)(B, A))", "numpy/rows"),
    ("ewise", EWISE, "where takes the other one", "A ? B : C)", "A ? C : B)", "test_ops/map numpy/expressions"),
    ("ewise", EWISE, "the largest number of f8e5m2", "FINITE(LIT(57344))", "FINITE(LIT(49152))", "test_kernels_functions"),
    ("reduce", REDUCE, "min begins at 0", "A.v = HIGHEST", "A.v = 0", "test_ops/reduce"),
    ("reduce", REDUCE, "max loses NaN when it takes an element", "A.v = (X > A.v) | (X != X) ? X : A.v",
     "A.v = (X > A.v) ? X : A.v", "test_ops/reduce"),
    ("reduce", REDUCE, "max loses NaN when states combine", "A.v = B.v > A.v || B.v != B.v ? B.v : A.v,\n              SAME",
     "A.v = B.v > A.v ? B.v : A.v,\n              SAME", "test_ops/reduce"),
    ("reduce", REDUCE, "var without the distance of the means", "A.squares += B.squares + d * d * (A.n * (B.n / count));",
     "A.squares += B.squares;", "test_ops/reduce"),
    ("reduce", REDUCE, "std without the root", "sqrt(S * A.squares)", "S * A.squares", "test_ops/reduce"),
    ("reduce", REDUCE, "counts do not combine", "A.n += X, A.n += B.n,", "A.n += X, A.n = B.n,", "test_ops/reduce"),
    ("reduce", REDUCE, "argmax is one too large", "PLACE_COMBINE(B.v > A.v), WHOLE, A.at)",
     "PLACE_COMBINE(B.v > A.v), WHOLE, A.at + 1)", "test_ops/reduce"),
    ("reduce", REDUCE, "any begins at 1", "DMI_REDUCTION(any, LOGIC, VALUE, A.v = 0,", "DMI_REDUCTION(any, LOGIC, VALUE, A.v = 1,",
     "test_ops/reduce"),
    ("touches", "kernels/random/fill_touches.c", "fill: its parameter in memory is left out", "if (f->element)", "if (false)",
     "touches/fill"),
    ("touches", "kernels/ewise/within_touches.c", "within: bounds in memory are left out", "d->bound[i] > 0", "d->bound[i] > 2",
     "touches/require"),
    ("touches", ORDER, "scan: the starts are left out", "if (s->starts)", "if (false)", "touches/scan"),
    ("touches", ORDER, "histogram: one edge too few", "h->bins + 1, dmi", "h->bins, dmi", "touches/histogram"),
    ("touches", ORDER, "search: the offset is left out", "out[0].offset = s->sorted_offset * bytes;", "", "touches/searchsorted"),
    ("touches", ORDER, "sort: indices are not written", "made, s->index_stride, s->index_offset, 8, DMI_WRITE);",
     "made, s->index_stride, s->index_offset, 8, 0);", "touches/sort"),
    ("touches", TOUCHES, "fold: the own addend is left out", "f->own >= 0 ? DMI_READ : 0);", "0);", "touches/sum"),
    ("touches", TOUCHES, "a store with beta only writes", "t->zero[1] ? DMI_WRITE : DMI_READWRITE);",
     "t->zero[1] ? DMI_WRITE : DMI_WRITE);", "touches/sum"),
    ("touches", INDEX, "put only writes", "all ? DMI_WRITE : DMI_READWRITE);", "all ? DMI_WRITE : DMI_WRITE);", "touches/put"),
    ("touches", INDEX, "index_sort: a scratch is left out", "dmi_touch_dense(&out[3], d->owner.g, 8, DMI_WRITE);", "",
     "touches/take touches/put"),
    ("touches", "kernels/gemm/gemm_touches.c", "gemm with beta only writes", "c_elem, t->zero[1] ? DMI_WRITE : DMI_READWRITE);",
     "c_elem, DMI_WRITE);", "touches/gemm"),
    ("touches", "kernels/gemm/trsm_touches.c", "trsm does not read b", "any ? DMI_READWRITE : 0", "any ? DMI_WRITE : 0", "touches/trsm"),
    ("kernels", "kernels/index/index_cpu.c", "scatter_add of 32 bits puts", "ADD_ROW(add_32, uint32_t, a + b)",
     "ADD_ROW(add_32, uint32_t, (a & 0) + b)", "test_ops/put"),
    ("kernels", "kernels/order/search_cpu.c", "searchsorted: the other side", "d->count, d->right, d->descending",
     "d->count, !d->right, d->descending", "test_ops/searchsorted"),
    ("kernels", "kernels/order/histogram_cpu.c", "histogram: rounding is not put right",
     "k += k < last && v >= d->lo + (double)(k + 1) * step;", "", "test_ops/histogram"),
    ("kernels", "kernels/reduce/dd_cpu.h", "pairs of doubles lose their low parts", "e + (a.lo + b.lo)", "e",
     "test_kernels_reduce test_ops/sum"),
    ("kernels", "kernels/reduce/acc_cpu.c", "fold: rows one after the other are one", "row += d->pitch;", "row += 0;",
     "test_ops/sum"),
    ("kernels", "kernels/random/distributions.h", "Poisson below a rate of 10: a term is left out", "sum += p;",
     "sum += k == 3 ? 0 : p;", "test_random numpy/random"),
    ("kernels", "kernels/random/distributions.h", "gamma below a shape of 1 is that of 1 more",
     "double small = a < 1 ?", "double small = a < 0 ?", "test_random numpy/random"),
    ("kernels", "kernels/random/distributions.h", "a shape in memory that is none makes numbers",
     "p > 0 && p <= 0x1.fffffffffffffp1023", "p <= 0x1.fffffffffffffp1023", "test_random"),
    ("hazards", "memory/hazard.c", "areas that overlap are apart", "a->hi[d] <= b->lo[d] ||", "a->hi[d] <= b->hi[d] ||", "test_hazard"),
    ("hazards", "memory/hazard.c", "forgotten areas are not waited for", "dmi_hazard_merge(&h->rest, &h->area[i].last);", "",
     "test_hazard"),
    ("hazards", "plan/phases.c", "a phase overwrites what an earlier one reads", "dmi_hazard_wait(&a->earlier[i], ref->mode, &wait);",
     "dmi_hazard_wait(&a->earlier[i], DMI_READ, &wait);", "test_simulate touches/softmax"),
    ("hazards", "plan/phases.c", "a phase waits for what was known in the first one", "a->known[i] = false;", "",
     "test_simulate touches/softmax"),
    ("plans", "plan/places.c", "workspaces that meet in one phase share memory", "a->first <= b->last &&", "a->first < b->last &&",
     "test_simulate touches/softmax"),
    ("plans", "plan/late.c", "additions do not wait for what arrives", "dmi_mark_merge(step->after, after);",
     "(void)after;", "test_simulate"),
    ("plans", "plan/exchange.c", "rows on their way back", "x->rows[(int64_t)to * workers + from]",
     "x->rows[(int64_t)from * workers + to]", "test_exchange test_ops/put"),
    ("plans", "plan/reduce.c", "unsigned sums one too large for their type", "sign ? largest <= room : largest < room",
     "largest <= room", "test_ops/sum"),
    ("plans", "plan/reduce.c", "signed sums one too large for their type", "sign ? largest <= room : largest < room",
     "sign ? largest - most < room : largest < room", "test_ops/sum"),
    ("plans", "plan/reduce.c", "two places of a grid have one addend", "weight *= x->grid[d];", "", "test_ops/sum"),
    ("plans", "plan/segments.c", "the last element of a segment is nobody's", "hi = DMI_MIN(lo + each, n);",
     "hi = DMI_MIN(lo + each, n) - (each > 1);", "test_ops/all_reduce"),
    ("plans", "plan/map.c", "an element is taken for that of another region", "dmi_region_dense(&want, in->received_elements);",
     "dmi_region_dense(&want, 0);", "test_ops/map test_ops/add"),
    ("plans", "plan/addends.c", "rows of addends, one of which is in place", "a->row[sender] > a->row[receiver]",
     "a->row[sender] < a->row[receiver]", "test_ops/sum"),
    ("plans", "ops/common_random.c", "the seed of a fill with factors is its first number", "1 + (what >> SHIFT)",
     "1 + 0 * (what >> SHIFT)", "test_ops/factors"),
    ("plans", "ops/product/cyclic.c", "blocks are pushed a stage too early", "(my_number - s) % g.size",
     "(my_number - s + 1) % g.size", "test_simulate test_ops/gemm"),
    ("layouts", "layout/region.c", "the owner of a cyclic block is that of a contiguous one", "cyclic ? b % layout->grid[d] : b / blocks",
     "cyclic && d > 0 ? b % layout->grid[d] : b / blocks", "test_layout"),
    ("layouts", "layout/region.c", "the last block of a contiguous dim is nobody's", " + (layout->nblock[d] % layout->grid[d] != 0)",
     " + (layout->nblock[d] < layout->grid[d])", "test_layout"),
    ("layouts", "layout/region.c", "the number of a replica", "layout->position[worker] / layout->group;",
     "layout->position[worker] % layout->group;", "test_layout test_ops/copy"),
    ("layouts", "layout/dimset.c", "a view of a view begins anew", "out->origin = in->origin + lo;", "out->origin = lo;", "test_dimset"),
    ("layouts", "layout/explicit.c", "blocks of an explicit layout lie on one another", "own_offset[cursor[w]++] = used[w];",
     "own_offset[cursor[w]++] = 0;", "test_layout"),
    ("layouts", "layout/search.c", "the block behind the one that is sought", "if (own[middle] < block)", "if (own[middle] <= block)",
     "test_layout"),
    ("types", "base/dtype.c", "i32 and u32 are i32", "return DM_I64;", "return DM_I32;", "test_dtype"),
    ("types", "base/dtype.c", "f32 and i32 are f32", "bytes > 2 && (real", "bytes > 4 && (real", "test_dtype numpy/expressions"),
    ("types", "base/dtype.c", "c64 and f64 are c64", " || other == DM_F64;", ";", "test_dtype numpy/expressions"),
    ("types", "expr/parse.c", "<< binds as * does", "DMI_EW_bitwise_left_shift, 4}", "DMI_EW_bitwise_left_shift, 6}",
     "test_expr numpy/expressions"),
    ("types", "expr/fold.c", "a difference of constants is their sum", "*out = a - b;", "*out = a + b;", "test_expr numpy/expressions"),
    ("checks", "ops/axpby.c", "x and y may overlap", "return status == DM_OK ? dmi_check_overlap(call, 0, 1, true) : status;",
     "return status;", "test_ops/op_errors test_ops/errors"),
    ("checks", "ops/softmax.c", "out may be an integer", "!dmi_dtype_is_float(call->operand[1].desc.dtype)", "false",
     "test_ops/softmax test_ops/op_errors"),
    ("checks", "ops/common_check.c", "dims that x does not have", "if (reduced & ~all)", "if (false)",
     "test_ops/op_errors test_ops/errors"),
    ("checks", "ops/fill.c", "any rate is a Poisson rate", "p0 <= 1e15", "p0 <= 1e300", "test_random"),
    ("checks", "ops/fill.c", "an integer arange may leave its type", "kind == DMI_FILL_ARANGE && count > 0 &&",
     "kind == DMI_FILL_ARANGE && count > INT64_MAX - 1 &&", "test_ops/op_errors test_ops/errors test_ops/factors"),
    ("checks", "ops/require.c", "a bound may be NaN", "low == low && high == high", "low == low", "test_ops/require"),
    ("checks", "ops/require.c", "a bound may be a part of x", "status = dmi_check_element(call, i, X);", "", "test_ops/factors"),
    ("checks", "ops/gemm.c", "stacks of different depth", "if (rest[2] != DMI_MAX(rest[0], rest[1]))", "if (false)",
     "test_ops/op_errors test_ops/gemm_shapes"),
    ("checks", "master/program_numbers.c", "two numbers of a program with one name", "if (find(r->named, r->nameds, name))",
     "if (false)", "test_ops/program_numbers"),
    ("checks", "ops/ops.def", "put is said to read x only", "OPERAND(values, READ, ALL), OPERAND(x, READWRITE, ALL))",
     "OPERAND(values, READ, ALL), OPERAND(x, READ, ALL))", "touches/put"),
    ("memory", "memory/pool_bins.c", "an empty power stays marked", "bins->powers &= ~(UINT64_C(1) << b.power);", "", "test_pool"),
    ("memory", "memory/pool.c", "one red zone in place of two", "around = 2 * config->redzone", "around = config->redzone", "test_pool"),
    ("memory", "master/replicas.c", "a replica of an array that the product writes", "bool forgotten = written(s, call, storage);",
     "bool forgotten = written(s, call, storage) && false;", "test_ops/replicas"),
    ("memory", "master/replicas.c", "replicas outlive their array", "if (s->replicas->entry[i].source == storage)",
     "if (s->replicas->entry[i].source != storage)", "test_ops/replicas"),
    ("memory", "master/scopes.c", "handles behind one that leaves a scope", "s->handle[h->scope_next].scope_prev = h->scope_prev;", "",
     "test_scopes"),
    ("memory", "comm/ring.c", "the command ring waits for its last reader alone", "least = DMI_MIN(least, at);", "least = at;",
     "test_queueing test_turns"),
    ("files", "io/verify.c", "a damaged part of a checkpoint is taken", "status != DM_OK || hash == saved->hash[part]",
     "status != DM_OK || hash != 1", "test_damage"),
    ("files", "io/npy.c", "the length of a header of version 1", "start[6] == 1 ? 10", "start[6] == 2 ? 10", "test_npy"),
    ("files", "io/npy.c", "a file that is too short", "if (there < data)", "if (false)", "test_npy_bad test_npy"),
    ("files", "io/npy_dict.c", "a word may go on", "(in->end - in->at > length && is_word(in->at[length]))", "false",
     "test_npy_bad test_npy"),
    ("files", "base/config_value.c", "K is 1", "10 * (int)(unit - units + 1)", "10 * (int)(unit - units)", "test_config"),
]

OPS_ENVIRONMENT = {"touches": {"DMATH_DEVICE": "cpu", "DMATH_TEST_TOUCHES": "1", "DMATH_TEST_PAPER": "1", "DMATH_TEST_CASES": "0.1",
                               "DMATH_TEST_LISTS": "0.1"}}
NUMPY = {"rows": ["check_rows.py", "LIBRARY", "TOOL"], "expressions": ["check_expressions.py", "LIBRARY", "--count", "600", "--malformed", "50"],
         "random": ["check_random.py", "LIBRARY"]}


NINJA = shutil.which("ninja")


def targets_of(test):
    kind = test.split("/")[0]
    # ninja takes `dmath` for the file of that name, which is the tool
    return {"test_ops": ["test_ops"], "touches": ["test_ops"],
            "numpy": ["libdmath.so" if NINJA else "dmath", "dmath_tool"]}.get(kind, [test])


class Copy:
    """The sources in a folder of their own, and their build."""

    def __init__(self, folder, limit):
        self.top, self.build, self.limit = os.path.join(folder, "tree"), os.path.join(folder, "tree", "build", "dev"), limit
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("DMATH_")}
        self.environment.update(CCACHE_BASEDIR=self.top, CCACHE_NOHASHDIR="1", TMPDIR=folder)

    def make(self):
        names = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                               capture_output=True).stdout.decode().split("\0")
        for name in filter(None, names):
            source, copied = os.path.join(TOP, name), os.path.join(self.top, name)
            if os.path.isfile(source) and not (os.path.exists(copied) and filecmp.cmp(source, copied, shallow=False)):
                os.makedirs(os.path.dirname(copied), exist_ok=True)
                shutil.copyfile(source, copied)  # its time is now, so that what was built of another text is built anew
                shutil.copymode(source, copied)
        command = ["cmake", "--preset", "dev", "-DDMATH_TESTS=ON", "-DDMATH_CUDA=OFF"]
        command += ["-GNinja"] if NINJA else []
        command += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        done = subprocess.run(command, cwd=self.top, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"plant-faults: {' '.join(command)}:\n{done.stdout}{done.stderr}")
        with open(os.path.join(self.build, "CMakeCache.txt"), encoding="utf-8") as f:
            self.python = re.search(r"^DMATH_PYTHON:\w+=(.*)$", f.read(), re.MULTILINE).group(1)

    def compile(self, tests):
        wanted = sorted({t for test in tests for t in targets_of(test)})
        return subprocess.run(["cmake", "--build", self.build, "--parallel", str(os.cpu_count()), "--target", *wanted],
                              env=self.environment, capture_output=True, text=True)

    def fails(self, test):
        """Why the test fails; None: it does not."""
        kind, _, name = test.partition("/")
        tests = os.path.join(self.build, "tests")
        if kind == "numpy":
            script, *rest = NUMPY[name]
            paths = {"LIBRARY": os.path.join(self.build, "libdmath.so"), "TOOL": os.path.join(self.build, "dmath")}
            command = [self.python, "-B", os.path.join(self.top, "tests", "numpy", script), *(paths.get(r, r) for r in rest)]
        else:
            command = [os.path.join(tests, "test_ops"), "test_" + name] if name else [os.path.join(tests, test)]
        environment = {**self.environment, **OPS_ENVIRONMENT.get(kind, {})}
        process = subprocess.Popen(command, cwd=tests, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            status = process.wait(self.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return "takes too long"
        return None if status == 0 else f"ends with {status}"


def plant(copy, row):
    """The words for one row, and whether the fault was seen."""
    _, name, _, old, new, tests = row
    path = os.path.join(copy.top, "src", name)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if text.count(old) == 0:
        return "no row: its text is not in the file", None
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new, 1))
    try:
        tests = tests.split()
        if copy.compile(tests).returncode:
            return "no row: the edit does not compile", None
        for test in tests:
            begin = time.monotonic()
            why = copy.fails(test)
            if why:
                return f"seen     {test} {why}, {time.monotonic() - begin:.1f} s", True
        return f"NOT SEEN by {', '.join(tests)}", False
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def numbers(text):
    chosen = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen.update(range(int(first), int(last or first) + 1))
    return chosen


def choose(options):
    rows = list(enumerate(FAULTS, 1))
    if options.rows:
        rows = [r for r in rows if r[0] in numbers(options.rows)]
    if options.area:
        rows = [r for r in rows if r[1][0] == options.area]
    if options.count:
        rows = sorted(random.Random(options.seed).sample(rows, min(options.count, len(rows))))
    return rows


def run(copy, rows, options):
    tests = sorted({t for _, row in rows for t in row[5].split()})
    print(f"{len(rows)} rows, {len(tests)} tests", flush=True)
    copy.make()
    built = copy.compile(tests)
    if built.returncode:
        raise SystemExit(f"plant-faults: the sources do not build:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")
    broken = [f"{test} {why}" for test in tests if (why := copy.fails(test))]
    if broken:
        print("plant-faults: without a fault: " + "; ".join(broken), file=sys.stderr)
        return 2
    end, counts = time.monotonic() + 60 * options.minutes, {True: 0, False: 0, None: 0}
    for at, row in rows:
        if time.monotonic() > end:
            print(f"the time is over before row {at}")
            break
        words, seen = plant(copy, row)
        counts[seen] += 1
        print(f"{at:3} {row[0]:<8} {os.path.basename(row[1]):<18} {row[2]:<50} {words}", flush=True)
    print(f"{sum(counts.values())} planted: {counts[True]} seen, {counts[False]} not seen, {counts[None]} are no rows any more")
    return 0 if counts[True] == len(rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="their numbers: 1-10,15")
    parser.add_argument("--area", choices=sorted({row[0] for row in FAULTS}))
    parser.add_argument("--seed", type=int, default=1, help="of the choice of --count rows")
    parser.add_argument("--count", type=int, default=0, help="so many rows, at random; 0: all")
    parser.add_argument("--minutes", type=float, default=120, help="when no new row begins any more")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a test may take")
    parser.add_argument("--scratch", help="a folder for the copy, which stays there (default: a temporary one)")
    parser.add_argument("--list", action="store_true", help="print the rows")
    parser.add_argument("--check", action="store_true", help="say only whether the text of each row is in its file")
    options = parser.parse_args()
    try:
        rows = choose(options)
    except ValueError:
        parser.error(f"--rows {options.rows}")
    if options.check:
        gone = [f"{at}: src/{row[1]}: {row[2]}" for at, row in rows if row[3] not in open(os.path.join(TOP, "src", row[1]), encoding="utf-8").read()]
        print("\n".join([*gone, f"{len(rows)} rows, {len(gone)} have a text that is not in their file"]))
        return 1 if gone else 0
    if options.list:
        for at, row in rows:
            print(f"{at:3} {row[0]:<8} src/{row[1]:<34} {row[2]}: {row[5]}")
        return 0
    if not rows:
        parser.error("no row is chosen")
    if options.scratch:
        os.makedirs(options.scratch, exist_ok=True)
        return run(Copy(os.path.abspath(options.scratch), options.limit), rows, options)
    with tempfile.TemporaryDirectory(prefix="plant-faults.") as folder:
        return run(Copy(folder, options.limit), rows, options)


if __name__ == "__main__":
    sys.exit(main())
