#!/usr/bin/env python3
"""Levels 1 and 2 of libdmath_blas, by their Fortran names, on vectors and matrices that are spread over the workers.

  check_vectors.py LIBRARY

Netlib's testers go up to 9 elements. All types, increments of either sign, options in all combinations, against NumPy
without BLAS.
"""
import ctypes
import itertools
import os
import subprocess
import sys

import numpy as np

TYPES = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
INCREMENTS = ((1, 1), (2, -3), (-1, 2))
N, M = 67, 41
calls = 0


def by_reference(value, dtype):
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode())
    if isinstance(value, int):
        return ctypes.byref(ctypes.c_int(value))
    if not isinstance(value, np.ndarray):
        value = np.array(value, dtype)
    return value.ctypes.data_as(ctypes.c_void_p) # which keeps the array


def call(blas, name, dtype, *arguments):
    global calls
    calls += 1
    kept = [by_reference(a, dtype) for a in arguments]
    getattr(blas, name + "_")(*kept)


class Vector:
    """n elements with an increment in memory whose other elements must stay as they are."""

    def __init__(self, random, dtype, n, inc):
        self.inc = inc
        self.memory = numbers(random, dtype, 1 + (n - 1) * abs(inc))
        self.before = self.memory.copy()

    def elements(self, memory=None):
        memory = self.memory if memory is None else memory
        return memory[::self.inc]

    def was(self):
        return self.elements(self.before).copy()

    def check(self, want, what):
        expected = self.before.copy()
        self.elements(expected)[:] = want
        check(self.memory, expected, what)


def numbers(random, dtype, *shape):
    a = random.standard_normal(shape)
    return np.asfortranarray((a + 1j * random.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype))


def check(got, want, what):
    error = np.abs(got - want).max(initial=0) / (1 + np.abs(want).max(initial=0))
    eps = np.finfo(want.dtype).eps
    if not error <= 100 * eps:
        raise AssertionError(f"{what}: wrong by {error}, {error / eps:.0f} eps")


def times(a, x):
    return np.einsum("ij,j->i", a, x)


def op(a, trans):
    return a if trans == "N" else a.T if trans == "T" else a.conj().T


def part(a, uplo, unit=False):
    """The triangle, zeros elsewhere."""
    t = np.triu(a) if uplo == "U" else np.tril(a)
    if unit:
        np.fill_diagonal(t, 1)
    return t


def whole(a, uplo, hermitian):
    t = part(a, uplo)
    rest = t.conj().T if hermitian else t.T
    full = t + rest
    np.fill_diagonal(full, t.diagonal().real if hermitian else t.diagonal())
    return full


def level_1(blas, random, t, dtype, incx, incy):
    what = f"{t} increments {incx} {incy}"
    factor = (0.7 - 0.4j) if t in "cz" else 0.7

    def vectors():
        return Vector(random, dtype, N, incx), Vector(random, dtype, N, incy)

    x, y = vectors()
    call(blas, t + "copy", dtype, N, x.memory, incx, y.memory, incy)
    y.check(x.was(), "copy " + what)
    x, y = vectors()
    call(blas, t + "swap", dtype, N, x.memory, incx, y.memory, incy)
    x.check(y.was(), "swap " + what)
    y.check(x.was(), "swap " + what)
    x, y = vectors()
    call(blas, t + "axpy", dtype, N, factor, x.memory, incx, y.memory, incy)
    y.check(factor * x.was() + y.was(), "axpy " + what)
    x, y = vectors()
    real = {"c8": "f4", "c16": "f8"}.get(dtype, dtype)
    call(blas, {"c": "cs", "z": "zd"}.get(t, t) + "rot", real, N, x.memory, incx, y.memory, incy, 0.6, 0.8)
    x.check(0.6 * x.was() + 0.8 * y.was(), "rot " + what)
    y.check(0.6 * y.was() - 0.8 * x.was(), "rot " + what)
    if incx > 0:
        x = Vector(random, dtype, N, incx)
        call(blas, t + "scal", dtype, N, factor, x.memory, incx)
        x.check(factor * x.was(), "scal " + what)
        for inc in (0, -incx): # nothing
            x.before[:] = x.memory
            call(blas, t + "scal", dtype, N, factor, x.memory, inc)
            x.check(x.was(), f"scal {t} increment {inc}")
        index = getattr(blas, f"i{t}amax_")(by_reference(N, None), by_reference(x.memory, None), by_reference(incx, None))
        size = np.abs(x.elements().real) + np.abs(x.elements().imag)
        if index != 1 + np.argmax(size):
            raise AssertionError(f"iamax {what}: {index}")


def results(blas, random, t, dtype, incx, incy):
    """Functions, by CBLAS, whose complex results come in memory."""
    x, y = Vector(random, dtype, N, incx), Vector(random, dtype, N, incy)
    xe, ye = x.was(), y.was()
    pointers = ctypes.c_int(N), by_reference(x.memory, None), ctypes.c_int(incx)
    real = ctypes.c_float if t in "sc" else ctypes.c_double
    if incx > 0:
        for name, want in (("nrm2", np.sqrt((np.abs(xe) ** 2).sum())),
                           ("asum", (np.abs(xe.real) + np.abs(xe.imag)).sum())):
            function = getattr(blas, "cblas_" + {"c": "sc", "z": "dz"}.get(t, t) + name)
            function.restype = real
            check(np.array(function(*pointers)), np.array(want, xe.real.dtype), f"{name} {t} {incx}")
    pointers += by_reference(y.memory, None), ctypes.c_int(incy)
    if t in "sd":
        function = getattr(blas, f"cblas_{t}dot")
        function.restype = real
        check(np.array(function(*pointers)), np.array((xe * ye).sum()), f"dot {t} {incx} {incy}")
        return
    for name, want in (("dotu", (xe * ye).sum()), ("dotc", (xe.conj() * ye).sum())):
        out = np.zeros(1, dtype)
        getattr(blas, f"cblas_{t}{name}_sub")(*pointers, by_reference(out, None))
        check(out[0], want, f"{name} {t} {incx} {incy}")


def general(blas, random, t, dtype, incx, incy):
    alpha, beta = ((0.7 - 0.4j), (0.3 + 0.2j)) if t in "cz" else (0.7, 0.3)
    for trans, scale in itertools.product("NTC", (0.0, beta)):
        a = numbers(random, dtype, M + 2, N)
        rows, cols = (M, N) if trans == "N" else (N, M)
        x, y = Vector(random, dtype, cols, incx), Vector(random, dtype, rows, incy)
        if scale == 0: # not read
            y.elements()[:] = np.nan
        call(blas, t + "gemv", dtype, trans, M, N, alpha, a, M + 2, x.memory, incx, scale, y.memory, incy)
        want = alpha * times(op(a[:M], trans), x.was())
        y.check(want + scale * y.was() if scale else want, f"gemv {t} {trans} {incx} {incy} {scale}")
    for name in ("ger",) if t in "sd" else ("geru", "gerc"):
        a = numbers(random, dtype, M + 2, N)
        before = a.copy()
        x, y = Vector(random, dtype, M, incx), Vector(random, dtype, N, incy)
        call(blas, t + name, dtype, M, N, alpha, x.memory, incx, y.memory, incy, a, M + 2)
        ye = y.was().conj() if name == "gerc" else y.was()
        before[:M] += alpha * x.was()[:, None] * ye
        check(a, before, f"{t}{name} {incx} {incy}")


def triangles(blas, random, t, dtype, incx, incy):
    hermitian = t in "cz"
    alpha, beta = ((0.7 - 0.4j), (0.3 + 0.2j)) if hermitian else (0.7, 0.3)
    letters = "he" if hermitian else "sy"
    for uplo in "UL":
        what = f"{t} {uplo} {incx} {incy}"
        other = ~(part(np.ones((N, N)), uplo) != 0)
        a = numbers(random, dtype, N, N)
        stored = np.where(other, np.nan, a)
        x, y = Vector(random, dtype, N, incx), Vector(random, dtype, N, incy)
        call(blas, f"{t}{letters}mv", dtype, uplo, N, alpha, np.asfortranarray(stored.astype(dtype)), N, x.memory, incx, beta,
             y.memory, incy)
        y.check(alpha * times(whole(a, uplo, hermitian), x.was()) + beta * y.was(), f"{letters}mv {what}")
        for two in (False, True):
            a = numbers(random, dtype, N, N)
            before = a.copy()
            xe, ye = x.was(), y.was()
            outer = np.einsum("i,j->ij", xe, xe.conj() if hermitian else xe)
            if two:
                outer = alpha * np.einsum("i,j->ij", xe, ye.conj() if hermitian else ye)
                outer = outer + (outer.conj().T if hermitian else outer.T)
                call(blas, f"{t}{letters}r2", dtype, uplo, N, alpha, x.memory, incx, y.before, incy, a, N)
            else:
                real = {"c8": "f4", "c16": "f8"}.get(dtype, dtype)
                outer = 0.7 * outer
                call(blas, f"{t}{letters}r", real, uplo, N, 0.7, x.memory, incx, a, N)
            want = before + outer
            if hermitian:
                np.fill_diagonal(want, want.diagonal().real)
            check(a, np.where(other, before, want).astype(dtype), f"{letters}r{'2' if two else ''} {what}")
        for trans, diag in itertools.product("NTC", "NU"):
            a = (numbers(random, dtype, N, N) / N + (np.eye(N) if diag == "N" else 0)).astype(dtype)
            stored = np.where(other | (np.eye(N, dtype=bool) & (diag == "U")), np.nan, a)
            stored = np.asfortranarray(stored.astype(dtype))
            full = op(part(a, uplo, diag == "U"), trans)
            x = Vector(random, dtype, N, incx)
            call(blas, t + "trmv", dtype, uplo, trans, diag, N, stored, N, x.memory, incx)
            x.check(times(full, x.was()), f"trmv {what} {trans} {diag}")
            x = Vector(random, dtype, N, incx)
            call(blas, t + "trsv", dtype, uplo, trans, diag, N, stored, N, x.memory, incx)
            check(times(full, x.elements()), x.was(), f"trsv {what} {trans} {diag}")


def inside():
    random = np.random.default_rng(7)
    blas = ctypes.CDLL(None)
    for t, dtype in TYPES.items():
        for incx, incy in INCREMENTS:
            for check_some in (level_1, results, general, triangles):
                check_some(blas, random, t, dtype, incx, incy)
    print("calls", calls)


def main():
    if sys.argv[1] == "inside":
        return inside()
    preloaded = os.environ.get("DMATH_TEST_PRELOAD", "") + " " + sys.argv[1]
    environment = dict(os.environ, LD_PRELOAD=preloaded, DMATH_BLAS_THRESHOLD="0", DMATH_WORKERS="3", DMATH_EXPLAIN="1")
    done = subprocess.run([sys.executable, "-B", __file__, "inside"], env=environment, capture_output=True, text=True)
    said = done.stderr.count("\ncall ")
    if done.returncode != 0 or not done.stdout.startswith("calls") or "libdmath_blas" in done.stderr:
        rest = [line for line in done.stderr.splitlines() if not line.startswith(("call ", " "))]
        sys.exit(done.stdout + "\n".join(rest[-30:]))
    if said < 2.5 * int(done.stdout.split()[1]): # each call: two writes or more, and a command
        sys.exit(f"{done.stdout.strip()}, and only {said} commands: not all of them went to the workers")
    return None


if __name__ == "__main__":
    main()
