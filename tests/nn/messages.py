#!/usr/bin/env python3
"""What the commands for nets say and do where something is not as it should be.

  messages.py TOOL

Works in the current folder.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np

TOOL = sys.argv[1]
DATA = """layer { name: 'd' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [8, 6] } shape { dim: 8 }
  data_filler { type: 'gaussian' std: 1 } data_filler { value: %s } } }
"""
FC = "layer { name: 'f' type: 'InnerProduct' bottom: 'data' top: 'f' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }\n"
LOSS = "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'f' bottom: 'label' top: 'l' %s }\n"
SOLVER = "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' display: 1 max_iter: 3 snapshot_after_train: false %s\n"


def write(path, text):
    pathlib.Path(path).write_text(text)


def run(*words, rc=0):
    """What a command prints, both streams."""
    r = subprocess.run([TOOL, *words], capture_output=True, text=True)
    assert r.returncode == rc, (words, r.returncode, r.stdout, r.stderr)
    return r.stdout + r.stderr


def train(net, solver="", *more, rc=0):
    write("net.prototxt", net)
    write("solver.prototxt", SOLVER % solver)
    return run("train", "--solver", "solver.prototxt", "-w", "2", *more, rc=rc)


def nan():
    """Said once, with the label that has no class; ignored labels have none either."""
    for solver in ("", "iter_size: 2", "average_loss: 2"):
        out = train(DATA % 7 + FC + LOSS % "", solver)
        assert out.count("loss is nan") == 1, out
        assert "layer 'l': loss is nan at iteration 0: element 0 of 'label' is 7, and a label outside 0..2 has no class\n" in out, out
        assert "Optimization Done." in out
    out = train(DATA % 3 + FC + "layer { name: 'l' type: 'HingeLoss' bottom: 'f' bottom: 'label' top: 'l' }\n")
    assert "layer 'l': loss is nan at iteration 0: element 0 of 'label' is 3, " in out, out
    for value, more in ((2, ""), (7, "loss_param { ignore_label: 7 }")):
        assert "nan" not in train(DATA % value + FC + LOSS % more)
    # a base_lr that is far too high
    write("net.prototxt", DATA % 1 + FC + LOSS % "")
    write("solver.prototxt", (SOLVER % "").replace("base_lr: 0.1", "base_lr: 1e30 weight_decay: 1").replace("max_iter: 3", "max_iter: 9"))
    out = run("train", "--solver", "solver.prototxt", "-w", "1")
    assert "the labels of this batch are in 0..2; a label outside in a batch before, or too high a base_lr, is the usual cause" in out, out
    assert out.count("loss is nan") == 1, out


def zeros():
    """What nobody has written."""
    for source in ("type: 'Input' input_param { shape { dim: [4, 6] } shape { dim: 4 } }",
                   "type: 'MemoryData' memory_data_param { batch_size: 4 channels: 2 height: 3 width: 1 }"):
        net = "layer { name: 'i' top: 'data' top: 'label' %s }\n" % source
        out = train(net + FC + LOSS % "", "", "-O", "pool_debug=1")
        assert "loss = 1.09861\n" in out.split("Iteration 1", 1)[0], out  # of equal scores, log 3
        said = "layer 'i' makes zeros: only programs write what " + source.split("'")[1] + " layers hold\n"
        assert out.count(said) == 1 and "--weights" not in out, out
        for command in (("test", "-n", "1"), ("extract", "-b", "f")):
            out = run(command[0], "--model", "net.prototxt", "-w", "1", *command[1:])
            assert out.count(said) == 1 and out.count("no --weights: parameters have their first values\n") == 1, out
        write("net.prototxt", net + "layer { name: 's' type: 'Silence' bottom: 'label' }\n")
        run("extract", "--model", "net.prototxt", "-w", "2", "--blob", "data", "--iterations", "2", "--out", "zero_", "-O", "pool_debug=1")
        assert not np.load("zero_data.npy").any()


def absent():
    """Fields whose absence leaves others without effect, or the rate or the training at 0."""
    net = DATA % 1 + FC + LOSS % ""
    for fields, said in (("base_lr: 0.1 lr_policy: 'step' stepsize: 1 max_iter: 1", "lr_policy 'step' uses gamma, which is not there and so is 0"),
                         ("base_lr: 0.1 lr_policy: 'inv' gamma: 1 max_iter: 1", "lr_policy 'inv' uses power, which is not there and so is 0"),
                         ("base_lr: 0.1 lr_policy: 'multistep' gamma: 1 max_iter: 1", "lr_policy 'multistep' uses stepvalue, which is not there: the rate stays"),
                         ("lr_policy: 'fixed' max_iter: 1", "there is no base_lr: the rate is 0"),
                         ("base_lr: 0.1 lr_policy: 'fixed'", "there is no max_iter: nothing is trained"),
                         ("base_lr: 0.1 lr_policy: 'fixed' max_iter: 0", None),
                         ("base_lr: 0 lr_policy: 'exp' gamma: 0 max_iter: 1 test_interval: 0 test_initialization: false", None),
                         ("base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_interval: 5", "1: test_interval has no effect: there is no test_iter, and so no test"),
                         ("base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_compute_loss: true", "1: test_compute_loss has no effect: there is no test_iter, and so no test")):
        write("net.prototxt", net)
        write("solver.prototxt", "net: 'net.prototxt' snapshot_after_train: false " + fields + "\n")
        lines = [s for s in run("train", "--solver", "solver.prototxt", "-w", "1").splitlines() if s.startswith("solver.prototxt:")]
        assert lines == ([] if said is None else ["solver.prototxt:" + (said if said[0] == "1" else " " + said)]), (fields, lines)


def memory():
    """A net that no memory holds: the file is named."""
    write("net.prototxt", "layer { name: 'd' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [200000, 1000, 2000] } } }\n"
          "layer { name: 's' type: 'Silence' bottom: 'x' }\n")
    for words in (("net", "show", "-m", "net.prototxt"), ("test", "-m", "net.prototxt")):
        out = run(*words, "-w", "2", rc=1)
        assert "dmath: ERR_NOMEM: net.prototxt: command " in out, out


def elements():
    """`dmath test` of outputs with several elements: all of them, in Caffe's order, and their means."""
    write("net.prototxt", DATA % 1 + FC + LOSS % "" + "layer { name: 'a' type: 'Accuracy' bottom: 'f' bottom: 'label' top: 'acc' top: 'each' }\n")
    lines = run("test", "--model", "net.prototxt", "-w", "2", "--iterations", "2").splitlines()
    rows = [json.loads(s) for s in run("test", "--model", "net.prototxt", "-w", "2", "--iterations", "2", "--json").splitlines() if s.startswith("{")]
    batches = [[float(s.split("= ")[1]) for s in lines if s.startswith(f"Batch {i}, each = ")] for i in (0, 1)]
    means = [float(s.split("= ")[1]) for s in lines if s.startswith("each = ")]
    right = [float(s.split("= ")[1]) for s in lines if s.startswith("Batch ") and ", acc = " in s]
    assert [len(b) for b in batches] == [3, 3] and np.allclose(np.mean(batches, 0), means), lines
    assert [b[1] for b in batches] == right and means[0] == means[2] == 0, lines
    assert [r["value"] for r in rows if r["kind"] == "mean" and r["output"] == "each"] == means
    assert [r["element"] for r in rows if r["kind"] == "mean" and r["output"] == "each"] == [0, 1, 2]
    # images, whose arrays have the channels last: in the order in which `dmath extract` writes them
    write("net.prototxt", "layer { name: 'd' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [2, 3, 4, 5] } data_filler { type: 'uniform' } } }\n")
    said = [float(s.split("= ")[1]) for s in run("test", "--model", "net.prototxt", "-w", "1", "-n", "1").splitlines() if s.startswith("x = ")]
    run("extract", "--model", "net.prototxt", "-w", "1", "--blob", "x", "--out", "image_")
    assert np.allclose(said, np.load("image_x.npy").ravel(), rtol=1e-5), said


def report():
    """Where it cannot be written, nothing is trained."""
    out = train(DATA % 1 + FC + LOSS % "", "", "--report", "no/such/x.html", "--log", "report.jsonl", rc=1)
    assert "no/such/x.html: cannot be written" in out and "Iteration" not in out, out
    write("kept.html", "before")
    assert "has no field" in train(DATA % 1 + FC.replace("bottom", "botom") + LOSS % "", "", "--report", "kept.html", rc=1)
    assert pathlib.Path("kept.html").read_text() == "before"


def words():
    """Errors name what the user has written, and say what would be right."""
    net = DATA % 1 + FC + LOSS % ""
    train(net)
    for one, two in (("-solver=solver.prototxt", "solver"), ("-solver", "solver"), ("-weights", "weights"), ("-max-iter=3", "max-iter")):
        out = run("train", one, "solver.prototxt", "-w", "1", rc=2)
        assert f"-{two}: options have two dashes: --{two}\n" in out, out
    assert "-gpu: there is no such option; workers take the GPUs" in run("train", "-gpu", "0", "--solver", "solver.prototxt", rc=2)
    run("train", "-ssolver.prototxt", "-w1")
    assert "Training on 1 worker\n" in run("train", "--solver", "solver.prototxt", "-w", "1")
    assert "Training on 2 workers\n" in run("train", "--solver", "solver.prototxt", "-w", "2")

    # other shapes, of weights and of parameters that are shared
    write("solver.prototxt", "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: 'w'\n")
    run("train", "--solver", "solver.prototxt", "-w", "1")
    write("net.prototxt", net.replace("num_output: 3", "num_output: 7"))
    out = run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", "w_iter_0.caffemodel", rc=1)
    assert "parameter 0 of layer 'f' has another shape in the file than in the net: 3 x 6, and not 7 x 6; a layer of another name begins anew" in out, out
    r = subprocess.run([TOOL, "net", "convert", "w_iter_0.caffemodel", "w.h5"], capture_output=True, text=True)
    if r.returncode == 0 or "built without" not in r.stderr:
        out = run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", "w.h5", rc=1)
        assert "'data/f/0' has another shape than parameter 0 of layer 'f': 3 x 6, and not 7 x 6; a layer of another name begins anew" in out, out
    shared = "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } param { name: 'both' }"
    both = FC.replace("inner_product_param { num_output: 3 weight_filler { type: 'xavier' } }", shared)
    out = train(DATA % 1 + both + both.replace("'f'", "'g'").replace("num_output: 3", "num_output: 4") + LOSS % "", rc=1)
    assert "layer 'g' shares 'both' of layer 'f', but needs another shape: 4 x 6, and not 3 x 6" in out, out

    # layers
    for old, new, said in (
            ("{ type: 'xavier' }", "{ type: 'gaussian' std: -1 }", "net.prototxt:3: layer 'f' has a gaussian filler with std -1; it must be at least 0"),
            ("num_output: 3", "num_output: -3", "net.prototxt:3: -3 does not fit the type uint32 of InnerProductParameter.num_output"),
            ("type: 'InnerProduct'", "type: 'Python' python_param { module: 'mine' layer: 'Mine' }",
             "net.prototxt:3: layer 'f' is the Python layer 'Mine' of the module 'mine': dmath runs no Python")):
        out = train(DATA % 1 + FC.replace(old, new) + LOSS % "", rc=1)
        assert said in out, (said, out)
    out = train((DATA % 1).replace("type: 'DummyData'", "type: 'DummyData' include { phase: TRAIN }") + FC + LOSS % "", "test_iter: 1 test_interval: 1", rc=1)
    assert "layer 'f' reads the blob 'data', which no layer before it makes in the phase TEST: layer 'd' in line 1 does, but its rules leave it out" in out, out

    # databases of the other kind; a folder with such a file is enough
    for name, other, said in (("data.mdb", "", "is an LMDB (it has data.mdb), and is read as a LevelDB: write backend: LMDB"),
                              ("CURRENT", "backend: LMDB", "is a LevelDB (it has CURRENT), and is read as an LMDB: write backend: LEVELDB")):
        folder = pathlib.Path("kind_of_" + name)
        folder.mkdir(exist_ok=True)
        write(folder / name, "")
        out = train("layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: '%s' batch_size: 2 %s } }\n" % (folder, other) + FC + LOSS % "",
                    rc=1)
        assert f"{folder}: {said}\n" in out, out


nan()
zeros()
absent()
memory()
words()
report()
elements()
print("the commands say what is wrong")
