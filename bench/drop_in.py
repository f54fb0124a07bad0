#!/usr/bin/env python3
"""Products of R, Octave and NumPy on libdmath_blas, beside the same on the BLAS that they come with.

  drop_in.py LIBRARY [--n 8192] [--runs 3] [--workers 2] [LANGUAGE...]

LIBRARY: libdmath_blas.so, which is preloaded, or a folder that has it as libblas.so.3. LANGUAGE: R, octave, numpy; default: those
that are installed. Both ways run in turns. Prints for each the median time of a product of two n x n matrices of f64: the first
one, which starts the session, the next one, and that one's processor time, which other programs disturb less; and the largest
difference between the two results, relative to the largest element. Ends with an error where that is more than 1e-13 or no product went to the workers.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

PROGRAMS = {
    "R": (["Rscript", "-"], """
n <- {n}; set.seed(1); a <- matrix(runif(n * n), n); b <- matrix(runif(n * n), n)
for (i in 1:{times}) {{ t <- system.time(c <- a %*% b); cat(t[["elapsed"]], t[["user.self"]] + t[["sys.self"]], "\\n") }}
writeBin(as.vector(c), "{out}")
"""),
    "octave": (["octave-cli", "-q", "-W", "--no-history"], """
n = {n}; rand("twister", 1); a = rand(n); b = rand(n);
for i = 1:{times}; t = tic; p = cputime; c = a * b; printf("%f %f\\n", toc(t), cputime - p); end
f = fopen("{out}", "w"); fwrite(f, c, "double"); fclose(f);
"""),
    "numpy": ([sys.executable, "-"], """
import numpy as np, time
random = np.random.default_rng(1); a = random.random(({n}, {n})); b = random.random(({n}, {n}))
for i in range({times}):
    start, busy = time.time(), time.process_time(); c = a @ b; print(time.time() - start, time.process_time() - busy)
c.tofile("{out}")
"""),
}


def run(language, n, out, **settings):
    """Of the first product and of the second: the time, and that of the processors."""
    command, text = PROGRAMS[language]
    done = subprocess.run(command, input=text.format(n=n, times=2, out=out), env=dict(os.environ, **settings),
                          capture_output=True, text=True)
    times = [float(line) for line in done.stdout.split()]
    if done.returncode != 0 or len(times) != 4 or "libdmath_blas" in done.stderr:
        sys.exit(f"{language}: {done.stdout}{done.stderr[-2000:]}")
    return times, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", default="2")
    parser.add_argument("languages", nargs="*")
    given = parser.parse_intermixed_args()
    library = os.path.abspath(given.library)
    way = "LD_LIBRARY_PATH" if os.path.isdir(library) else "LD_PRELOAD"
    settings = {way: library, "DMATH_WORKERS": given.workers, "DMATH_EXPLAIN": "1"}
    if os.path.isdir(library) and shutil.which("R"): # whose start puts its own folders before those of LD_LIBRARY_PATH
        home = subprocess.run(["R", "RHOME"], capture_output=True, text=True).stdout.strip()
        settings["R_LD_LIBRARY_PATH"] = f"{library}:{home}/lib"
    languages = given.languages or [name for name, (command, _) in PROGRAMS.items() if shutil.which(command[0])]
    failed = False
    print(f"{given.n} x {given.n}, f64, {given.workers} workers, by {way}; medians of {given.runs}")
    print("[s]       its own BLAS: first    next  processors   libdmath_blas: first    next  processors   difference")
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("own", "ours")]
        for language in languages:
            times = [[], []]
            for _ in range(given.runs):
                times[0].append(run(language, given.n, paths[0])[0])
                got, said = run(language, given.n, paths[1], **settings)
                times[1].append(got)
            results = [np.fromfile(path) for path in paths]
            difference = np.abs(results[0] - results[1]).max() / np.abs(results[0]).max()
            own, ours = (np.median(t, axis=0) for t in times)
            print(f"{language:8}  {own[0]:19.2f} {own[2]:7.2f} {own[3]:11.2f}   {ours[0]:20.2f} {ours[2]:7.2f} {ours[3]:11.2f}   "
                  f"{difference:10.1e}", flush=True)
            if said.count(": gemm") != 2:
                failed = True
                print(f"{said.count(': gemm')} of 2 products went to the workers")
            if not difference <= 1e-13 or results[0].size != given.n ** 2:
                failed = True
                print("the results differ")
    sys.exit(failed)


if __name__ == "__main__":
    main()
