#!/usr/bin/env python3
"""Damaged input: prototxt files, models, states, records, images and lists with random changes.

  mutate.py TOOL [--count N] [--seed N]

Each is used, or refused with one line that names the file. A crash, a sanitizer's report, or silence fails the test. And a disk
that fills up in the middle of a snapshot leaves the old snapshot as it was. Works in the current folder.
"""
import argparse
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys

import numpy as np

from images import jpeg, png
from lenet import write_idx

parser = argparse.ArgumentParser()
parser.add_argument("tool")
parser.add_argument("--count", type=int, default=500)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", help="kinds of files, separated by commas")
options = parser.parse_args()
TOOL = options.tool
dice = random.Random(options.seed)
REFUSED = 1

NET = """name: 'net'
layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'db' backend: LMDB batch_size: 4 }
  transform_param { scale: 0.01 crop_size: 6 mirror: true mean_value: 3 } }
layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 5 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }
layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: 'n' type: 'LRN' bottom: 'p' top: 'n' lrn_param { local_size: 3 alpha: 0.1 } }
layer { name: 'r' type: 'ReLU' bottom: 'n' top: 'n' }
layer { name: 's' type: 'PReLU' bottom: 'n' top: 'n' blobs { shape { dim: 5 } data: [ 0.1, 0.2, 0.3, 0.4, 0.5 ] } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'n' top: 'ip' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
layer { name: 'a' type: 'Accuracy' bottom: 'ip' bottom: 'y' top: 'a' include { phase: TEST } }
layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }
"""
SOLVER = """net: 'net.prototxt'
base_lr: 0.01 lr_policy: 'step' gamma: 0.1 stepsize: 2 momentum: 0.9 weight_decay: 0.001
display: 1 max_iter: 4 snapshot: 2 snapshot_prefix: 'run'
test_iter: 1 test_interval: 2
"""
HDF5 = """layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: 'h5list' batch_size: 4 } }
"""
OUTPUT = """layer { name: 'o' type: 'HDF5Output' bottom: 'x' bottom: 'y' hdf5_output_param { file_name: 'good.h5' } }
"""
LIST = ("layer { name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param { source: 'list' batch_size: 2 new_height: 5 new_width: 5 } }\n")


def small():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "asan" not in TOOL:  # sanitizers need address space of their own
        resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))


def run(*args):
    return subprocess.run([TOOL, *args, "-w", "1"], capture_output=True, text=True, errors="replace", timeout=120, preexec_fn=small)


def mutate_text(text, big=True):
    words = text.split(" ")
    numbers = [k for k, w in enumerate(words) if w.replace(".", "").isdigit()]
    if numbers and dice.random() < 0.5:  # what reads well, but may make no sense
        large = ["2147483647", "4294967295", "100000"] if big else ["20"]  # a million tests would be no fault
        words[dice.choice(numbers)] = dice.choice(["-1", "0", "1", "2", "7", "1e9", "nan", "0.5", *large])
        return " ".join(words)
    for _ in range(dice.choice([1, 1, 2, 5])):
        words = words or [""]
        k, kind = dice.randrange(len(words)), dice.randrange(7)
        if kind == 0:
            del words[k]
        elif kind == 1:
            words.insert(k, words[dice.randrange(len(words))])
        elif kind == 2:
            words[k] = dice.choice(["-1", "0", "1e30", "nan", "99999999999999999999", "''", "'", "{", "}", "TRAIN", "true", "3"])
        elif kind == 3 and words[k]:
            at = dice.randrange(len(words[k]))
            words[k] = words[k][:at] + chr(dice.randrange(1, 256)) + words[k][at + 1:]
        elif kind == 4:
            other = dice.randrange(len(words))
            words[k], words[other] = words[other], words[k]
        elif kind == 5:
            words[k] = words[k] * dice.choice([2, 1000])
        else:
            del words[k:]
            words.append("x")
    return " ".join(words)


def mutate_bytes(data):
    data = bytearray(data)
    for _ in range(dice.choice([1, 1, 3, 20])):
        kind, at = dice.randrange(5), dice.randrange(len(data)) if data else 0
        if not data or kind == 0:
            data[at:at] = bytes(dice.randrange(256) for _ in range(dice.choice([1, 8, 300])))
        elif kind == 1:
            del data[at:at + dice.choice([1, 4, 100])]
        elif kind == 2:
            data[at] = dice.choice([0, 1, 127, 128, 255, dice.randrange(256)])
        elif kind == 3:
            data[at] ^= 1 << dice.randrange(8)
        else:
            data[at:at + 5] = b"\xff" * 5
    return bytes(data[:dice.randrange(len(data) + 1)] if dice.random() < 0.15 else data)


def judge(r, what, names):
    """Well, or refused with a line that names a file of the input."""
    report = f"{what}: {r.returncode}\n{r.stdout[-1000:]}\n{r.stderr[-3000:]}"
    assert "Sanitizer" not in r.stderr and "runtime error" not in r.stderr, report
    assert r.returncode in (0, REFUSED), report
    if r.returncode == REFUSED:
        assert any(n in r.stderr for n in names), f"names no file of {names}: {report}"
    return r.returncode == REFUSED


def prepare():
    random_ = np.random.default_rng(3)
    write_idx("images.gz", random_.integers(0, 256, (12, 8, 8)).astype(np.uint8))
    write_idx("labels.gz", random_.integers(0, 3, 12).astype(np.uint8))
    shutil.rmtree("db", ignore_errors=True)
    assert subprocess.run([TOOL, "data", "convert", "images.gz", "labels.gz", "db"], capture_output=True).returncode == 0
    pathlib.Path("net.prototxt").write_text(NET)
    pathlib.Path("solver.prototxt").write_text(SOLVER)
    r = run("train", "--solver", "solver.prototxt")
    assert r.returncode == 0, r.stderr
    pathlib.Path("hdf5.prototxt").write_text(SOLVER.replace("'run'", "'h5'") + "snapshot_format: HDF5\n")
    r = run("train", "--solver", "hdf5.prototxt")
    if r.returncode == REFUSED and "HDF5" in r.stderr:
        return False  # a build without it
    assert r.returncode == 0, r.stderr
    pathlib.Path("output.prototxt").write_text(NET[:NET.index("layer { name: 'c'")] + OUTPUT)
    r = run("extract", "-m", "output.prototxt", "-b", "x", "-n", "3")
    assert r.returncode == 0, r.stderr
    pathlib.Path("h5.prototxt").write_text(HDF5)
    pathlib.Path("h5list").write_text("bad.h5\n")
    return True


def prepare_images():
    random_ = np.random.default_rng(4)
    pathlib.Path("rgb.png").write_bytes(png(random_.integers(0, 256, (9, 8, 3))))
    pathlib.Path("gray.jpg").write_bytes(jpeg(random_.integers(0, 256, (2, 2))))
    pathlib.Path("list").write_text("rgb.png 0\ngray.jpg 1\n")
    pathlib.Path("list.prototxt").write_text(LIST)


def one(kind):
    """Returns whether the mutated file was refused."""
    if kind == "net":
        pathlib.Path("net.prototxt").write_bytes(mutate_text(NET).encode("latin-1"))
        return judge(run("train", "--solver", "solver.prototxt"), kind, ["net.prototxt", "db", "solver.prototxt"])
    pathlib.Path("net.prototxt").write_text(NET)
    if kind == "solver":
        pathlib.Path("bad.prototxt").write_bytes(mutate_text(SOLVER, big=False).encode("latin-1"))
        return judge(run("train", "--solver", "bad.prototxt", "--max-iter", "3"), kind, ["bad.prototxt", "net.prototxt", "et", "run"])
    if kind == "weights":
        pathlib.Path("bad.caffemodel").write_bytes(mutate_bytes(pathlib.Path("run_iter_4.caffemodel").read_bytes()))
        return judge(run("test", "-m", "net.prototxt", "-W", "bad.caffemodel", "-n", "1"), kind, ["bad.caffemodel"])
    if kind == "convert":
        text = dice.random() < 0.3
        bad = "bad.prototxt" if text else "bad.caffemodel"
        pathlib.Path(bad).write_bytes(mutate_text(NET).encode("latin-1") if text else mutate_bytes(pathlib.Path("run_iter_4.caffemodel").read_bytes()))
        words = ["draw", bad] if dice.random() < 0.2 else ["convert", bad, dice.choice(["out.txt", "out.h5", "out"])]
        return judge(subprocess.run([TOOL, "net", *words], capture_output=True, text=True, errors="replace", timeout=120, preexec_fn=small),
                     kind, [bad, "out.h5"])
    if kind == "state":
        pathlib.Path("bad.solverstate").write_bytes(mutate_bytes(pathlib.Path("run_iter_2.solverstate").read_bytes()))
        return judge(run("train", "--solver", "solver.prototxt", "--snapshot", "bad.solverstate"), kind, ["bad.solverstate", "caffemodel", "un_iter"])
    if kind == "hdf5 weights":
        pathlib.Path("bad.caffemodel.h5").write_bytes(mutate_bytes(pathlib.Path("h5_iter_4.caffemodel.h5").read_bytes()))
        return judge(run("test", "-m", "net.prototxt", "-W", "bad.caffemodel.h5", "-n", "1"), kind, ["bad.caffemodel.h5"])
    if kind == "hdf5 state":
        pathlib.Path("bad.solverstate.h5").write_bytes(mutate_bytes(pathlib.Path("h5_iter_2.solverstate.h5").read_bytes()))
        return judge(run("train", "--solver", "hdf5.prototxt", "--snapshot", "bad.solverstate.h5"), kind,
                     ["bad.solverstate.h5", "caffemodel", "5_iter"])
    if kind == "hdf5 data":
        pathlib.Path("bad.h5").write_bytes(mutate_bytes(pathlib.Path("good.h5").read_bytes()))
        return judge(run("extract", "-m", "h5.prototxt", "-b", "data", "-n", "4"), kind, ["bad.h5"])
    if kind == "hdf5 rows":
        pathlib.Path("bad.h5").write_bytes(mutate_bytes(pathlib.Path("good.h5").read_bytes()))
        shutil.rmtree("made", ignore_errors=True)
        words = ["show", "bad.h5"] if dice.random() < 0.3 else ["convert", "--from=hdf5", "bad.h5", "made"]
        return judge(subprocess.run([TOOL, "data", *words], capture_output=True, text=True, errors="replace", timeout=120, preexec_fn=small),
                     kind, ["bad.h5"])
    if kind == "tree":  # numbers of LMDB's pages
        shutil.rmtree("bad", ignore_errors=True)
        shutil.copytree("db", "bad")
        data = bytearray(pathlib.Path("db/data.mdb").read_bytes())
        for _ in range(dice.choice([1, 2, 5])):
            at = 4096 * dice.randrange(len(data) // 4096) + dice.randrange(200 if dice.random() < 0.7 else 4096)
            data[at] = dice.choice([0, 255, dice.randrange(256)])
        pathlib.Path("bad/data.mdb").write_bytes(data[:dice.randrange(len(data))] if dice.random() < 0.1 else data)
        return judge(subprocess.run([TOOL, "data", "show", "bad"], capture_output=True, text=True, errors="replace", timeout=120, preexec_fn=small),
                     kind, ["bad: "])
    if kind == "record":  # the bytes of records
        shutil.rmtree("bad", ignore_errors=True)
        shutil.copytree("db", "bad")
        data = bytearray(pathlib.Path("db/data.mdb").read_bytes())
        record = data.find(b"\x08\x01\x10\x08\x18\x08", dice.randrange(len(data) // 2))
        for _ in range(dice.choice([1, 3])):
            data[record + dice.randrange(16)] = dice.randrange(256)
        pathlib.Path("bad/data.mdb").write_bytes(data)
        pathlib.Path("bad.prototxt").write_text(NET.replace("'db'", "'bad'"))
        refused = judge(run("extract", "-m", "bad.prototxt", "-b", "x", "-n", "3"), kind, ["bad: record '", "reads a record of"])
        show = subprocess.run([TOOL, "data", "show", "bad"], capture_output=True, text=True, errors="replace")
        assert not judge(show, "show", []), show.stderr
        return refused
    if kind == "list":
        pathlib.Path("list").write_bytes(mutate_text("rgb.png 0\ngray.jpg 1\n").encode("latin-1"))
        names = ["list"]
    else:
        name = dice.choice(["rgb.png", "gray.jpg"])
        pathlib.Path("bad." + name[-3:]).write_bytes(mutate_bytes(pathlib.Path(name).read_bytes()))
        pathlib.Path("list").write_text(f"bad.{name[-3:]} 0\n")
        names = ["list:1: bad."]
    return judge(run("extract", "-m", "list.prototxt", "-b", "x"), kind, names)


def full_disk(has_hdf5):
    """No file may grow beyond a limit: the snapshot fails, the old one stays as it is, and the run says so."""
    before = pathlib.Path("run_iter_2.caffemodel").read_bytes()
    pathlib.Path("net.prototxt").write_text(NET)

    def limit():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))

    r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", "1"], capture_output=True, text=True, preexec_fn=limit)
    assert r.returncode == REFUSED and "run_iter_2.caffemodel: cannot be written" in r.stderr, (r.returncode, r.stderr)
    assert pathlib.Path("run_iter_2.caffemodel").read_bytes() == before
    if has_hdf5:
        old = pathlib.Path("h5_iter_2.caffemodel.h5").read_bytes()
        r = subprocess.run([TOOL, "train", "--solver", "hdf5.prototxt", "-w", "1"], capture_output=True, text=True, preexec_fn=limit)
        assert r.returncode == REFUSED and re.search("h5_iter_2.caffemodel.h5: .*cannot be written", r.stderr), (r.returncode, r.stderr)
        assert pathlib.Path("h5_iter_2.caffemodel.h5").read_bytes() == old
        r = subprocess.run([TOOL, "data", "convert", "--from=lmdb", "db", "full.h5"], capture_output=True, text=True, preexec_fn=limit)
        assert r.returncode == REFUSED and "full.h5: " in r.stderr and "cannot be written" in r.stderr, (r.returncode, r.stderr)
        assert not pathlib.Path("full.h5").exists()
    assert not list(pathlib.Path(".").glob("*.partial-*"))


if __name__ == "__main__":
    has_hdf5 = prepare()
    prepare_images()
    full_disk(has_hdf5)
    kinds = ["net", "solver", "weights", "convert", "state", "tree", "record", "image", "list"]
    kinds += ["hdf5 weights", "hdf5 state", "hdf5 data", "hdf5 rows"] if has_hdf5 else []
    kinds = options.only.split(",") if options.only else kinds
    counts = {k: [0, 0] for k in kinds}
    for i in range(options.count):
        kind = kinds[i % len(kinds)]
        counts[kind][one(kind)] += 1
    for kind, (used, refused) in counts.items():
        print(f"{kind}: {used} used, {refused} refused")
        assert refused > 0, f"no {kind} was refused: the test tests nothing"
