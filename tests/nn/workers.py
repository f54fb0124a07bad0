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
SPLIT = ["--split", "fc6=features,fc7=features,ip=batch"]
NETS = {
    "split": INPUT % ("7, 3, 6, 5", "7") + "layer { name: 'fc6' type: 'InnerProduct' bottom: 'x' top: 'fc6' inner_product_param { num_output: 37 "
             "weight_filler { type: 'xavier' } } }\nlayer { name: 'q' type: 'ReLU' bottom: 'fc6' top: 'fc6' }\n"
             "layer { name: 'fc7' type: 'InnerProduct' bottom: 'fc6' top: 'fc7' inner_product_param { num_output: 3 weight_filler { "
             "type: 'xavier' } bias_filler { type: 'uniform' } } }\n" + END % ("fc7", "y"),
    "rnn": INPUT % ("6, 7, 3", "6, 7") + LABEL + "layer { name: 'r' type: 'RNN' bottom: ['x', 'y'] top: 'r' recurrent_param { num_output: 5 "
           "weight_filler { type: 'gaussian' std: 0.5 } } }\n" + END % ("r", "l"),
    "parameter": INPUT % ("7, 3, 6, 5", "7") + "layer { name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: [7, 3, 6, 5] } } }\n"
                 "layer { name: 's' type: 'Eltwise' bottom: ['x', 'p'] top: 's' }\n" + END % ("s", "y"),
    "stochastic": INPUT % ("7, 3, 6, 5", "7") + "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 4 "
                  "kernel_size: 3 weight_filler { type: 'uniform' min: 0 max: 1 } } }\n"
                  "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: STOCHASTIC kernel_size: 2 } }\n" + END % ("p", "y"),
}


def train(workers, *more):
    """Weights, state and scores of the tests."""
    r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", str(workers), *more], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    state = [pathlib.Path(f"w_iter_8.{end}").read_bytes() for end in ("caffemodel", "solverstate")]
    return (*state, re.findall("Test net output.*", r.stdout)[-1])


for name, text in NETS.items():
    pathlib.Path("net.prototxt").write_text(text)
    pathlib.Path("solver.prototxt").write_text(
        "net: 'net.prototxt' base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 8 snapshot: 4 snapshot_prefix: 'w' "
        "test_iter: 1 test_interval: 8\n")
    split = SPLIT if name == "split" else []
    first = train(1, *[w.replace("features", "batch") for w in split])
    for workers in (2, 3, 5):
        assert train(workers, *split) == first, f"{name}: other weights on {workers} workers"
    if name != "rnn":  # what it knows at the end of a pass is in no snapshot
        assert train(2, "--snapshot", "w_iter_4.solverstate", *split) == first, f"{name}: other weights when resumed"
    if name != "rnn":  # what plans say beforehand is what is sent; worker 0 sends snapshots too
        r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", "3", "--explain", *split], capture_output=True, text=True)
        said = re.search(r"at most ([\d.]+) KiB sent by a worker", r.stdout)
        assert r.returncode == 0 and said and float(said[1]) > 0, r.stdout + r.stderr
        train(3, "--report", "run.html", *split)
        sent = re.findall(r"<tr><td class='n'>\d<td.*<td class='n'>([\d.]+)</tr>", pathlib.Path("run.html").read_text())
        assert 0.5 * float(said[1]) <= max(map(float, sent[1:])) <= 1.5 * float(said[1]) + 1, (said[1], sent)
        print(f"{name}: {said[1]} KiB a step by the plans, {sent[1:]} in the end")
    if split:  # the length of all gradients, of which each worker has a part
        with open("solver.prototxt", "a") as f:
            f.write("clip_gradients: 0.1\n")
        assert train(1, *[w.replace("features", "batch") for w in split]) == train(3, *split) != first, f"{name}: clipped"
    print(f"{name}: the same bits on 1, 2, 3 and 5 workers")
