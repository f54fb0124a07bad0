#!/usr/bin/env python3
"""Nets of layers that others' tests do not train: the same weights, to the bit, on 1, 2, 3 and 5 workers, and when stopped and
resumed on another number.

  workers.py TOOL

Works in the current folder.
"""
import pathlib
import re
import subprocess
import sys

TOOL = sys.argv[1]
INPUT = """layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: [%s] } shape { dim: [%s] }
  data_filler { type: 'uniform' min: 0 max: 1 } data_filler { value: 1 } } }
"""
END = """layer { name: 'ip' type: 'InnerProduct' bottom: '%s' top: 'ip' inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: '%s' top: 'loss' }
"""
LABEL = "layer { name: 'e' type: 'DummyData' top: 'l' dummy_data_param { shape { dim: 6 } data_filler { value: 2 } } }\n"
NETS = {
    "rnn": INPUT % ("6, 7, 3", "6, 7") + LABEL + "layer { name: 'r' type: 'RNN' bottom: ['x', 'y'] top: 'r' recurrent_param { num_output: 5 "
           "weight_filler { type: 'gaussian' std: 0.5 } } }\n" + END % ("r", "l"),
    "parameter": INPUT % ("7, 3, 6, 5", "7") + "layer { name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: [7, 3, 6, 5] } } }\n"
                 "layer { name: 's' type: 'Eltwise' bottom: ['x', 'p'] top: 's' }\n" + END % ("s", "y"),
    "stochastic": INPUT % ("7, 3, 6, 5", "7") + "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 4 "
                  "kernel_size: 3 weight_filler { type: 'uniform' min: 0 max: 1 } } }\n"
                  "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: STOCHASTIC kernel_size: 2 } }\n" + END % ("p", "y"),
}


def train(workers, *more):
    r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", str(workers), *more], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return pathlib.Path("w_iter_8.caffemodel").read_bytes()


for name, text in NETS.items():
    pathlib.Path("net.prototxt").write_text(text)
    pathlib.Path("solver.prototxt").write_text(
        "net: 'net.prototxt' base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 8 snapshot: 4 snapshot_prefix: 'w'\n")
    first = train(1)
    for workers in (2, 3, 5):
        assert train(workers) == first, f"{name}: other weights on {workers} workers"
    if name != "rnn":  # what it knows at the end of a pass is in no snapshot
        assert train(2, "--snapshot", "w_iter_4.solverstate") == first, f"{name}: other weights when resumed"
    if name != "rnn":  # what plans say beforehand is what is sent; worker 0 sends snapshots too
        r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", "3", "--explain"], capture_output=True, text=True)
        said = re.search(r"at most ([\d.]+) KiB sent by a worker", r.stdout)
        assert r.returncode == 0 and said and float(said[1]) > 0, r.stdout + r.stderr
        train(3, "--report", "run.html")
        sent = re.findall(r"<tr><td class='n'>\d<td.*<td class='n'>([\d.]+)</tr>", pathlib.Path("run.html").read_text())
        assert 0.5 * float(said[1]) <= max(map(float, sent[1:])) <= 1.5 * float(said[1]) + 1, (said[1], sent)
        print(f"{name}: {said[1]} KiB a step by the plans, {sent[1:]} in the end")
    print(f"{name}: the same bits on 1, 2, 3 and 5 workers")
