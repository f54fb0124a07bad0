#!/usr/bin/env python3
"""dmath and its peers on one machine in one run: collects their lines and prints a table.

  run.py --results DIR [--bin DIR] [--tool build/release/dmath] [--gpus 4] [--sizes ...] [--dtypes ...] [--cases ...]
         [--peers torch,jax,cublasmp,cublasxt,nccl] [--rounds 1] [--minutes 20]

--bin is where build.sh put its programs. dmath runs before every peer, in turns: a machine that becomes slower meets both.
Without build.sh's dmath_gemm, `dmath bench gemm --json` (--tool) takes its place; it waits for every product and compares
with the host's BLAS, so that only sizes up to 4096 are run with it. What is missing is skipped with a line saying why.
--cpu runs dmath, torch and jax on the host, to try this program out.

DIR: lines.jsonl has all lines, table.md the table, *.log what the programs said besides.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time

HERE = os.path.dirname(os.path.abspath(__file__))
QUIET = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
         "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHONDONTWRITEBYTECODE": "1",
         "PMIX_MCA_pcompress_base_silence_warning": "1"}
# NVLink multicast belongs to the host, not to the process; see torch_gemm.py.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--results", required=True)
    p.add_argument("--bin", default="", help="build.sh's folder")
    p.add_argument("--tool", default="", help="the dmath tool, where dmath_gemm is not built")
    p.add_argument("--python", default=sys.executable, help="one that has torch and jax")
    p.add_argument("--gpus", type=int, default=0, help="0: all")
    p.add_argument("--sizes", default="4096,8192,16384")
    p.add_argument("--single-sizes", default="4096,8192,16384,32768", help="cuBLASXt's")
    p.add_argument("--dtypes", default="bf16,f32")
    p.add_argument("--cases", default="rows/rows/rows,rows/cols/cols,cols/rows/rows,remap,chain100")
    p.add_argument("--reduce-sizes", default="1,16,64,256", help="MiB, of all-reduce and all-gather")
    p.add_argument("--peers", default="torch,jax,cublasmp,cublasxt,nccl")
    p.add_argument("--samples", type=int, default=20)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--minutes", type=float, default=20, help="for all of it")
    p.add_argument("--options", default="", help="dmath's, as of a session: key=value,key=value")
    p.add_argument("--cpu", action="store_true")
    return p.parse_args()


def count_gpus():
    try:
        said = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in said.splitlines())


def missing_libraries(program):
    """The libraries that the loader does not find, and the folders of Python packages that have them."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    names = {line.split()[0] for line in said.splitlines() if "not found" in line}
    folders = []
    for top, _, files in os.walk(os.path.join(sysconfig.get_paths()["purelib"], "nvidia")):
        if names & set(files) and "stubs" not in top:
            folders.append(top)
            names -= set(files)
    return names, folders


class Runner:
    def __init__(self, o):
        self.o, self.begin, self.lines = o, time.monotonic(), []
        self.gpus = o.gpus or (2 if o.cpu else count_gpus())
        os.makedirs(o.results, exist_ok=True)
        self.file = open(os.path.join(o.results, "lines.jsonl"), "w")
        self.skipped = set()

    def left(self):
        return self.o.minutes * 60 - (time.monotonic() - self.begin)

    def skip(self, name, why):
        if (name, why) not in self.skipped:
            self.skipped.add((name, why))
            print(f"run: {name}: skipped: {why}", flush=True)

    def take(self, text):
        for line in text.splitlines():
            if line.startswith("{"):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                self.lines.append(row)
                self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def run(self, name, command, environment=None, keep=None):
        """A program within what time is left; its lines are collected, also those before it failed."""
        left = self.left()
        if left < 20:
            self.skip(name, "the time is over")
            return
        limit = min(left, 600)
        started = time.monotonic()
        print(f"run: {name}: {' '.join(command)}", flush=True)
        with open(os.path.join(self.o.results, f"{name}.log"), "a") as log:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                                     env={**os.environ, **QUIET, **WITHOUT_MULTICAST, **(environment or {})})
            try:
                said, _ = child.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)  # its own session: its children too
                said, _ = child.communicate()
                print(f"run: {name}: ended after {limit:.0f} s", flush=True)
        self.take(keep(said) if keep else said)
        print(f"run: {name}: status {child.returncode}, {time.monotonic() - started:.0f} s", flush=True)

    # ---- the programs

    def dmath(self):
        o, settings = self.o, self.o.options
        if not o.cpu:
            settings = ",".join(filter(None, ["device=cuda", settings]))
        program = os.path.join(o.bin, "dmath_gemm")
        if o.bin and os.access(program, os.X_OK):
            self.run("dmath", [program, o.cases, o.dtypes, o.sizes, str(o.samples), settings, str(self.gpus)])
        elif o.tool and os.access(o.tool, os.X_OK):
            self.by_tool(settings)
        else:
            self.skip("dmath", "neither --bin's dmath_gemm nor --tool is there")

    def dmath_reduce(self):
        o = self.o
        program = os.path.join(o.bin, "dmath_reduce")
        if not o.bin or not os.access(program, os.X_OK):
            self.skip("dmath-reduce", "dmath_reduce is not built (build.sh)")
            return
        settings = {"DMATH_DEVICE": "cpu" if o.cpu else "cuda", "DMATH_WORKERS": str(self.gpus)}
        for one in filter(None, o.options.split(",")):
            key, _, value = one.partition("=")
            settings["DMATH_" + key.upper()] = value
        self.run("dmath-reduce", [program, str(o.samples), *o.reduce_sizes.split(",")], settings)

    def by_tool(self, settings):
        o = self.o
        sizes = ",".join(s for s in o.sizes.split(",") if int(s) <= 4096)
        types = o.dtypes
        layouts = ",".join(c for c in o.cases.split(",") if "/" in c and not c.startswith("rowsT"))
        if not (sizes and types and layouts):
            self.skip("dmath", "`dmath bench gemm' measures none of these")
            return
        command = [o.tool, "bench", "gemm", "--json", "-w", str(self.gpus), "-s", sizes, "-d", types, "-l", layouts,
                   "-r", str(o.samples)]

        def converted(said):
            rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
            return "\n".join(json.dumps({
                "peer": "dmath", "case": r["layouts"], "dtype": r["dtype"], "n": r["n"], "gpus": r["workers"],
                "ms_median": r["ms_median"], "ms_min": r["ms_min"], "alone_ms": r["ms_median"], "checked": True,
                "largest_error": r["error"]}) for r in rows)

        self.run("dmath", command + [x for s in settings.split(",") if s for x in ("-O", s)], keep=converted)

    def python(self, name, program, *more):
        o = self.o
        self.run(name, [o.python, os.path.join(HERE, program), "--sizes", o.sizes, "--dtypes", o.dtypes, "--cases", o.cases,
                        "--gpus", str(self.gpus), "--samples", str(o.samples), "--limit", str(max(20, int(self.left()))),
                        *(["--cpu"] if o.cpu else []), *more])

    def torch(self):
        self.python("torch", "torch_gemm.py")

    def jax(self):
        self.python("jax", "jax_gemm.py")
        if not self.o.cpu:
            self.python("jax-windowed", "jax_gemm.py", "--windowed")

    def compiled(self, name, program):
        """The program and its environment, or None with a line saying why."""
        path = os.path.join(self.o.bin, program)
        if self.o.cpu:
            self.skip(name, "it needs GPUs")
        elif not self.o.bin or not os.access(path, os.X_OK):
            self.skip(name, f"{program} is not built (build.sh)")
        else:
            names, folders = missing_libraries(path)
            if not names:
                known = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
                return path, {"LD_LIBRARY_PATH": ":".join(known + folders)}
            self.skip(name, "libraries are missing: " + ", ".join(sorted(names)))
        return None

    def cublasmp(self):
        found = self.compiled("cublasmp", "cublasmp_gemm")
        mpirun = shutil.which("mpirun")
        if found and not mpirun:
            self.skip("cublasmp", "no mpirun")
        elif found:
            o = self.o  # MPI starts the ranks and carries small things between them; the matrices go their own way
            self.run("cublasmp", [mpirun, "-n", str(self.gpus), "--bind-to", "none", "--mca", "pml", "ob1", "-x",
                                  "LD_LIBRARY_PATH", found[0], o.cases, o.dtypes, o.sizes, str(o.samples)], found[1])

    def cublasxt(self):
        found = self.compiled("cublasxt", "cublasxt")
        counts = ",".join(str(g) for g in (1, 2, 4, 8) if g <= self.gpus)
        for place in ("pinned", "device") if found else ():
            self.run("cublasxt", [found[0], self.o.single_sizes, counts, place, "4096", "10"], found[1])

    def nccl(self):
        found = self.compiled("nccl", "nccl_allreduce")
        if found:
            self.run("nccl", [found[0], str(self.o.samples), str(self.gpus), *self.o.reduce_sizes.split(",")], found[1])


def number(value):
    return "" if value is None else f"{value:.3f}" if value < 100 else f"{value:.1f}"


def table(lines):
    """The fastest peer of every case beside dmath; what was not checked or was wrong does not take part."""
    cells = {}
    for r in lines:
        if "ms_median" in r and r.get("checked") is not False:
            key = (r["case"], r["dtype"], r["n"], r["gpus"])
            cells.setdefault(key, {}).setdefault(r["peer"], []).append(r)
    out = ["| case | type | n | GPUs | local, ms | best peer | its ms | alone | dmath, ms | alone | peer / dmath | "
           "alone |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for key in sorted(cells):
        middle = {peer: (statistics.median(r["ms_median"] for r in rows), statistics.median(r["alone_ms"] for r in rows))
                  for peer, rows in cells[key].items()}
        ours = middle.pop("dmath", None)
        local = min((m for p, (m, _) in middle.items() if p.startswith("local")), default=None)
        peers = {p: t for p, t in middle.items() if not p.startswith("local")}
        best = min(peers, key=lambda p: peers[p][0]) if peers else ""
        quickest = min((t[1] for t in peers.values()), default=None)
        theirs = peers.get(best, (None, None))[0]
        ratios = ["", ""] if not (ours and peers) else [f"{theirs / ours[0]:.2f}", f"{quickest / ours[1]:.2f}"]
        out.append("| " + " | ".join([*map(str, key), number(local), best, number(theirs), number(quickest),
                                      *(map(number, ours) if ours else ("", "")), *ratios]) + " |")
    wrong = sorted({(r["peer"], r["case"], r["dtype"], r["n"], r.get("error", "wrong result"))
                    for r in lines if r.get("checked") is False})
    if wrong:
        out += ["", "Not in the table:", ""] + [f"- {' '.join(map(str, w[:4]))}: {w[4]}" for w in wrong]
    return "\n".join(out + ["", "Times in ms, medians. `alone`: one call that is waited for, of dmath and of the quickest "
                            "peer; otherwise calls given in batches. Ratios above 1: dmath is faster. n of all_reduce and "
                            "all_gather: MiB of the result.", ""])


def main():
    o = options()
    r = Runner(o)
    if r.gpus == 0:
        print("run: skipped: no GPU here (--cpu tries the program out)")
        return 77
    for _ in range(o.rounds):
        for peer in o.peers.split(","):
            measure = {"torch": r.torch, "jax": r.jax, "cublasmp": r.cublasmp, "cublasxt": r.cublasxt,
                       "nccl": r.nccl}.get(peer)
            if not measure:
                print(f"run: `{peer}' is none of torch, jax, cublasmp, cublasxt, nccl")
                return 2
            if peer == "nccl":
                r.dmath_reduce()
            elif peer != "cublasxt":  # which has no case in common
                r.dmath()
            measure()
    text = table(r.lines)
    with open(os.path.join(o.results, "table.md"), "w") as f:
        f.write(text)
    print(text)
    wrong = any(x.get("checked") is False and "error" not in x for x in r.lines)
    return 1 if wrong or not r.lines else 0


if __name__ == "__main__":
    sys.exit(main())
