#!/usr/bin/env python3
"""NumPy on libdmath_blas, which is put before the BLAS that NumPy was built with, or in its place.

  check_preload.py LIBRARY
  check_preload.py FOLDER    which has the library as libblas.so.3

Starts itself with LD_PRELOAD=LIBRARY, or with LD_LIBRARY_PATH=FOLDER. Products are compared with np.einsum, which uses no BLAS.
"""
import os
import subprocess
import sys
import threading

import numpy as np

TYPES = ("f4", "f8", "c8", "c16")


def numbers(random, dtype, *shape):
    a = random.standard_normal(shape)
    return (a + 1j * random.standard_normal(shape) if dtype in ("c8", "c16") else a).astype(dtype)


def check(got, want, what):
    error = np.abs(got - want).max(initial=0) / (1 + np.abs(want).max(initial=0))
    eps = np.finfo(want.dtype).eps
    if not error <= 100 * eps:
        raise AssertionError(f"{what}: wrong by {error}, {error / eps:.0f} eps")


def products(random):
    for dtype in TYPES:
        for m, n, k in ((1, 1, 1), (3, 5, 2), (40, 1, 7), (130, 140, 150)):
            a, b = numbers(random, dtype, m, k), numbers(random, dtype, k, n)
            want = np.einsum("ik,kj->ij", a, b)
            check(a @ b, want, f"{dtype} {m}x{k} {k}x{n}")
            check(np.asfortranarray(a) @ b, want, f"{dtype} by columns")
            wide = numbers(random, dtype, m, k + 3)
            check(wide[:, 1:k + 1] @ b, np.einsum("ik,kj->ij", wide[:, 1:k + 1], b), f"{dtype} of a view")
            check(a @ a.T, np.einsum("ik,jk->ij", a, a), f"{dtype} with its transpose") # syrk


def solves(random):
    a = numbers(random, "f8", 300, 300)
    a = a @ a.T + 300 * np.eye(300)
    b = numbers(random, "f8", 300, 40)
    check(np.einsum("ik,kj->ij", a, np.linalg.solve(a, b)), b, "solve")
    root = np.linalg.cholesky(a)
    check(np.einsum("ik,jk->ij", root, root), a, "cholesky")


def threads(random):
    a, failed = numbers(random, "f8", 120, 120), []
    want = np.einsum("ik,kj->ij", a, a)

    def work():
        try:
            for _ in range(30):
                check(a @ a, want, "threads")
        except AssertionError as e:
            failed.append(e)

    all_of_them = [threading.Thread(target=work) for _ in range(4)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    if failed:
        raise failed[0]


def child(random):
    a = numbers(random, "f8", 60, 60)
    want = np.einsum("ik,kj->ij", a, a)
    pid = os.fork()
    if pid == 0:
        try:
            check(a @ a, want, "child")
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        raise AssertionError("a child of fork could not multiply")
    check(a @ a, want, "parent of a child")


def inside():
    random = np.random.default_rng(5)
    products(random)
    solves(random)
    threads(random)
    child(random)
    print("done")


def run(library, fails=0, **settings):
    environment = dict(os.environ, **settings)
    preloaded = os.environ.get("DMATH_TEST_PRELOAD", "")
    if os.path.isdir(library):
        environment.update(LD_PRELOAD=preloaded, LD_LIBRARY_PATH=library)
    else:
        environment["LD_PRELOAD"] = preloaded + " " + library
    done = subprocess.run([sys.executable, "-B", __file__, "inside"], env=environment, capture_output=True, text=True)
    if (done.returncode != 0 or "done" not in done.stdout) != fails:
        sys.exit(f"with {settings}:\n{done.stdout}{done.stderr}")
    return done.stderr


def main():
    if sys.argv[1] == "inside":
        return inside()
    library = sys.argv[1]
    preloads = not os.path.isdir(library)
    said = run(library, DMATH_BLAS_THRESHOLD="0", DMATH_WORKERS="3", DMATH_EXPLAIN="1")
    for call in ("gemm", "chain"): # syrk ends with a chain, which keeps a triangle
        if f": {call} " not in said:
            sys.exit(f"no call of {call} went to the workers:\n{said[:2000]}")
    if said.count("libdmath_blas:") != 1 or "child" not in said:
        sys.exit(f"nothing, or too much, was said of the child:\n{said[-2000:]}")
    if "libdmath_blas" in run(library): # nothing here is large enough for a session
        sys.exit("something is said though all calls are small")
    said = run(library, DMATH_BLAS_THRESHOLD="0", DMATH_WORKERS="none")
    if said.count("libdmath_blas: no session") != 1:
        sys.exit(f"a session that cannot start is not reported once:\n{said[:2000]}")
    said = run(library, 1, DMATH_BLAS_LIBRARY=os.path.realpath(library if preloads else os.path.join(library, "libblas.so.3")))
    if "is not in OpenBLAS" not in said:
        sys.exit(f"calls that lead back are not reported:\n{said[:2000]}")
    said = run(library, DMATH_BLAS_THRESHOLD="0", OMPI_COMM_WORLD_SIZE="4")
    if said.count("libdmath_blas: a launcher") != 1:
        sys.exit(f"a launcher is not reported once:\n{said[:2000]}")
    return None


if __name__ == "__main__":
    main()
