#!/usr/bin/env python3
"""Runs an example and compares what it saved with NumPy, which goes its own way from the same inputs.

    check_examples.py NAME PROGRAM [--workers 1,2,3] [--launcher "mpirun -n 4"]

NAME is one of the functions below. With --launcher the ranks are the workers; else the program runs once for each number
of workers.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def close(name, got, wanted, bound):
    error = float(np.abs(np.asarray(got, float) - wanted).max()) if np.shape(got) == np.shape(wanted) else np.inf
    good = error <= bound
    print(f"  {name:<30} {error:9.2e}  (at most {bound:.0e})  {'ok' if good else 'WRONG'}")
    return good


def kmeans(of):
    x, centres = of("points"), of("first")
    for rounds in range(1, 101):
        groups = ((x[:, None, :] - centres[None]) ** 2).sum(2).argmin(1)
        new = np.array([x[groups == g].mean(0) if (groups == g).any() else centres[g] for g in range(len(centres))])
        moved = np.abs(new - centres).max()
        centres = new
        if moved < 1e-12:
            break
    return (close("rounds", of("rounds"), rounds, 0) & close("groups", of("groups"), groups, 0) &
            close("centres", of("centres"), centres, 1e-11))


def logistic(of):
    x, y = of("samples"), of("labels")
    w, v = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for _ in range(300):
        ahead = w + 0.9 * v
        v = 0.9 * v - (x.T @ (1 / (1 + np.exp(-x @ ahead)) - y) / len(x) + 1e-3 * ahead)
        w = w + v
    p = 1 / (1 + np.exp(-x @ w))
    return (close("weights", of("weights"), w, 1e-11) &
            close("loss", of("loss"), -np.log(np.where(y, p, 1 - p)).mean(), 1e-12))


def two_layers(of):
    x, labels = np.load(os.path.join(DATA, "digits.npy")) / 16, np.load(os.path.join(DATA, "digits_labels.npy"))
    w1, w2, b1, b2, history = of("w1_first"), of("w2_first"), 0, 0, []
    for _ in range(15):
        for i in range(0, 7 * 256, 256):
            hidden = np.tanh(x[i:i + 256] @ w1 + b1)
            scores = np.exp(hidden @ w2 + b2)
            p = scores / scores.sum(1, keepdims=True)
            wanted = np.eye(10)[labels[i:i + 256]]
            loss = -np.log((p * wanted).sum(1)).mean()
            g = (p - wanted) / 256
            back = g @ w2.T * (1 - hidden ** 2)
            w1, b1 = w1 - 0.5 * x[i:i + 256].T @ back, b1 - 0.5 * back.sum(0)
            w2, b2 = w2 - 0.5 * hidden.T @ g, b2 - 0.5 * g.sum(0)
        history.append(loss)
    return (close("losses", of("history"), np.array(history), 1e-11) & close("weights, first layer", of("w1"), w1, 1e-11) &
            close("weights, second layer", of("w2"), w2, 1e-11))


def heat(of):
    plate = of("before")
    for _ in range(200):
        c = plate[1:-1, 1:-1]
        inner = c + 0.2 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * c)
        plate = plate.copy()
        plate[1:-1, 1:-1] = inner
    return close("the plate", of("after"), plate, 1e-12)


def power(of):
    values, vectors = np.linalg.eigh(of("matrix"))
    values, vectors, got = values[::-1][:4], vectors[:, ::-1][:, :4], of("vectors")
    signs = np.sign((vectors * got).sum(0))
    return (close("values", of("values"), values, 1e-12) & close("vectors", got * signs, vectors, 1e-10) &
            close("orthonormal", got.T @ got, np.eye(4), 1e-14))


def pipelines(of):
    m, x, y = of("m"), of("x0"), of("y0")
    for _ in range(20):
        x = m @ x
        x = x / np.abs(x).max(0)
        y = (y + np.roll(y, 1, 0)) / 2
        y = np.tanh(y) + 0.1 * y
    return close("left", of("x"), x, 1e-9) & close("right", of("y"), y, 1e-13) & close("both", of("both"), x * y, 1e-9)


def conjugate(of):
    a, b, x = of("matrix"), of("right"), np.zeros_like(of("right"))
    r = p = b
    for runs in range(1, 61):
        q = a @ p
        step = r @ r / (p @ q)
        x, r, before = x + step * p, r - step * q, r @ r
        p = r + r @ r / before * p
        if runs % 5 == 0 and r @ r < 1e-22:  # the workers look every 5 runs; rounding may move the end by one look
            break
    return (close("solution", of("solution"), np.linalg.solve(a, b), 1e-10) & close("as here", of("solution"), x, 1e-10) &
            close("symmetric", a, a.T, 1e-14) & close("runs", of("runs"), runs, 5))


EXAMPLES = {f.__name__: f for f in (kmeans, logistic, two_layers, heat, power, pipelines, conjugate)}
ARGUMENTS = {"conjugate": ["300", "60"],
             "two_layers": [os.path.join(DATA, "digits.npy"), os.path.join(DATA, "digits_labels.npy")]}


def run(name, command, environment):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command + ARGUMENTS.get(name, []) + [folder], env=environment)
        if done.returncode != 0:
            print(f"  ended with {done.returncode}: WRONG")
            return False
        return EXAMPLES[name](lambda array: np.load(os.path.join(folder, array + ".npy")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=EXAMPLES)
    parser.add_argument("program")
    parser.add_argument("--workers", default="1,2,3")
    parser.add_argument("--launcher")
    a = parser.parse_args()
    if a.launcher:
        return run(a.name, shlex.split(a.launcher) + [a.program], os.environ)
    return all([run(a.name, [a.program], {**os.environ, "DMATH_WORKERS": n}) for n in a.workers.split(",")])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
