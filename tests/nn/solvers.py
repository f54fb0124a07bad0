#!/usr/bin/env python3
"""Solvers, learning rates, decay, clipping and iter_size against NumPy: a softmax regression for 50 iterations.

  solvers.py TOOL

The arithmetic is Caffe's, written out here in f64. Works in the current folder.
"""
import math
import pathlib
import re
import subprocess
import sys

import numpy as np

from lenet import read_weights

STEPS = 50
NET = """
layer { name: 'data' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: [5, 3] } shape { dim: 5 }
  data_filler { value: 0.7 } data_filler { value: 1 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0.5 }
  inner_product_param { num_output: 4 weight_filler { type: 'gaussian' std: 0.5 } bias_filler { value: 0.3 } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
"""
FIXED = dict(base_lr=0.05, lr_policy="fixed")
CASES = [
    FIXED,
    dict(FIXED, momentum=0.9, weight_decay=0.02),
    dict(FIXED, momentum=0.9, weight_decay=0.02, regularization_type="L1"),
    dict(FIXED, momentum=0.5, clip_gradients=0.1, iter_size=3, weight_decay=0.01),
    dict(FIXED, solver_type="SGD", clip_gradients=1000, average_loss=7),
    dict(base_lr=0.2, lr_policy="step", gamma=0.5, stepsize=13),
    dict(base_lr=0.2, lr_policy="exp", gamma=0.97),
    dict(base_lr=0.2, lr_policy="inv", gamma=0.1, power=0.75, momentum=0.3),
    dict(base_lr=0.2, lr_policy="multistep", gamma=0.5, stepvalue=[7, 8, 8, 30]),
    dict(base_lr=0.2, lr_policy="poly", power=2),
    dict(base_lr=0.2, lr_policy="sigmoid", gamma=0.3, stepsize=20),
    dict(FIXED, type="Nesterov", momentum=0.9, weight_decay=0.02),
    dict(FIXED, type="AdaGrad", weight_decay=0.02, delta=1e-3),
    dict(FIXED, type="RMSProp", weight_decay=0.02, rms_decay=0.9, delta=1e-2, iter_size=2),
    dict(FIXED, type="AdaDelta", momentum=0.95, delta=1e-4, weight_decay=0.02),
    dict(FIXED, type="Adam", momentum=0.9, momentum2=0.99, delta=1e-3, weight_decay=0.02, regularization_type="L1"),
    dict(FIXED, solver_type="ADAM", momentum=0.8),
]


def write_solver(case, **more):
    lines = []
    for key, value in {**case, **more}.items():
        for one in value if isinstance(value, list) else [value]:
            word = isinstance(one, str) and key != "solver_type"
            lines.append(f"{key}: '{one}'" if word else f"{key}: {one}")
    pathlib.Path("solver.prototxt").write_text("\n".join(lines) + "\n")


def train(tool, *more):
    run = subprocess.run([tool, "train", "--solver", "solver.prototxt", *more], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"dmath train: {run.returncode}\n{run.stdout[-2000:]}{run.stderr}")
    return run.stdout


def rates(case):
    base, gamma, power = case["base_lr"], case.get("gamma"), case.get("power")
    step = 0
    for it in range(STEPS):
        policy = case["lr_policy"]
        if policy == "step":
            yield base * gamma ** (it // case["stepsize"])
        elif policy == "exp":
            yield base * gamma ** it
        elif policy == "inv":
            yield base * (1 + gamma * it) ** -power
        elif policy == "multistep":  # one step a call, so a repeated value takes effect one iteration later
            if step < len(case["stepvalue"]) and it >= case["stepvalue"][step]:
                step += 1
            yield base * gamma ** step
        elif policy == "poly":
            yield base * (1 - it / STEPS) ** power
        elif policy == "sigmoid":
            yield base / (1 + math.exp(-gamma * (it - case["stepsize"])))
        else:
            yield base


def solve(case, weights):
    """Weights after all steps, and the losses."""
    p = [w.astype(np.float64) for w in weights]
    h, k = [np.zeros_like(w) for w in p], [np.zeros_like(w) for w in p]
    kind = case.get("type", case.get("solver_type", "SGD")).lower()
    m, b = case.get("momentum", 0), case.get("momentum2", 0.999)
    q, e = case.get("rms_decay", 0.99), case.get("delta", 1e-8)
    x, losses = np.full(3, 0.7), []
    for it, rate in enumerate(rates(case)):
        s = p[0] @ x + p[1]
        prob = np.exp(s - s.max())
        prob /= prob.sum()
        losses.append(-np.log(prob[1]))
        d = (prob - np.eye(4)[1]) * case.get("iter_size", 1)
        grads = [np.outer(d, x), d]
        length = math.sqrt(sum((g * g).sum() for g in grads))
        clip = case.get("clip_gradients", -1)
        for i, g in enumerate(grads):
            g = g * (clip / length if 0 <= clip < length else 1) / case.get("iter_size", 1)
            decay = case.get("weight_decay", 0) * (0.5 if i else 1)
            g = g + decay * (np.sign(p[i]) if case.get("regularization_type") == "L1" else p[i])
            r = rate * (2 if i else 1)
            if kind == "sgd":
                h[i] = m * h[i] + r * g
                p[i] -= h[i]
            elif kind == "nesterov":
                old, h[i] = h[i], m * h[i] + r * g
                p[i] -= (1 + m) * h[i] - m * old
            elif kind == "adagrad":
                h[i] += g * g
                p[i] -= r * g / (np.sqrt(h[i]) + e)
            elif kind == "rmsprop":
                h[i] = q * h[i] + (1 - q) * g * g
                p[i] -= r * g / (np.sqrt(h[i]) + e)
            elif kind == "adadelta":
                h[i] = m * h[i] + (1 - m) * g * g
                u = g * np.sqrt((k[i] + e) / (h[i] + e))
                k[i] = m * k[i] + (1 - m) * u * u
                p[i] -= r * u
            else:
                h[i] = m * h[i] + (1 - m) * g
                k[i] = b * k[i] + (1 - b) * g * g
                p[i] -= r * math.sqrt(1 - b ** (it + 1)) / (1 - m ** (it + 1)) * h[i] / (np.sqrt(k[i]) + e)
    return p, losses


def check(tool, case):
    write_solver(case, net="net.prototxt", max_iter=STEPS, display=1, snapshot_prefix="s", random_seed=3)
    train(tool, "-w", "1", "--max-iter", "0")
    weights, losses = solve(case, read_weights("s_iter_0.caffemodel")["ip"])
    log = train(tool, "-w", "3")
    found = read_weights(f"s_iter_{STEPS}.caffemodel")["ip"]
    apart = max(np.abs(a - b).max() for a, b in zip(weights, found))
    said = [float(x) for x in re.findall(r"^Iteration \d+, lr = (\S+)$", log, flags=re.M)]
    shown = [float(x) for x in re.findall(r"^Iteration \d+ \(.*\), loss = (\S+)$", log, flags=re.M)]
    n = case.get("average_loss", 1)
    smooth = [np.mean(losses[max(0, i - n + 1):i + 1]) for i in range(STEPS)]
    assert len(said) == len(shown) == STEPS
    if not (apart < 1e-5 and np.allclose(said, list(rates(case)), rtol=1e-5) and np.allclose(shown, smooth, atol=2e-5)):
        sys.exit(f"{case}: weights {apart:.2g} apart, rates {said[-1]} and {list(rates(case))[-1]}, losses {shown[-1]} and {smooth[-1]}")
    # Stopped half way and resumed: the same bits.
    write_solver(case, net="net.prototxt", max_iter=STEPS, snapshot=STEPS // 2, snapshot_prefix="t", random_seed=3)
    train(tool, "-w", "2")
    whole = pathlib.Path(f"t_iter_{STEPS}.solverstate").read_bytes()
    train(tool, "-w", "1", "--snapshot", f"t_iter_{STEPS // 2}.solverstate")
    if pathlib.Path(f"t_iter_{STEPS}.solverstate").read_bytes() != whole:
        sys.exit(f"{case}: resumed at {STEPS // 2}, another state")
    return apart


def check_random(tool):
    """Dropout and what BatchNorm has seen: the same bits on other numbers of workers, and stopped and resumed; and seeds that change."""
    more = """layer { name: 'norm' type: 'BatchNorm' bottom: 'ip' top: 'norm' }
layer { name: 'drop' type: 'Dropout' bottom: 'norm' top: 'drop' }
layer { name: 'loss'"""
    pathlib.Path("net.prototxt").write_text(NET.replace("layer { name: 'loss'", more).replace("bottom: 'ip' bottom", "bottom: 'drop' bottom")
                                            .replace("{ value: 0.7 }", "{ type: 'gaussian' std: 1 }"))
    write_solver(CASES[1], net="net.prototxt", max_iter=40, snapshot=20, snapshot_prefix="r", random_seed=3, display=1)
    states = []
    for workers, more in (("1", []), ("3", []), ("2", ["--snapshot", "r_iter_20.solverstate"])):
        log = train(tool, "-w", workers, *more)
        states.append([pathlib.Path(f"r_iter_40.{kind}").read_bytes() for kind in ("solverstate", "caffemodel")])
    if states[0] != states[1] or states[0] != states[2]:
        sys.exit("dropout, batch norm: other bits on other workers, or resumed")
    if len(set(re.findall(r", loss = (\S+)$", log, flags=re.M))) < 15:
        sys.exit("dropout: the same numbers in each iteration")


def main():
    pathlib.Path("net.prototxt").write_text(NET)
    worst = max(check(sys.argv[1], case) for case in CASES)
    check_random(sys.argv[1])
    print(f"{len(CASES)} solvers, {STEPS} iterations: weights at most {worst:.2g} from NumPy's; resumed with the same bits")


if __name__ == "__main__":
    main()
