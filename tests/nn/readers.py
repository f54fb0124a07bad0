#!/usr/bin/env python3
"""Ranks that read their own records: the same weights as in one process, for databases, images and windows, also when
resumed on other ranks; hosts without the files; `dmath-worker` with and without the library.

  readers.py TOOL WORKER LIBRARY MPIEXEC FLAG

Works in the current folder. A host without the files is a rank in another folder.
"""
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy as np

from images import png

TOOL, WORKER, LIBRARY, MPIEXEC, FLAG = sys.argv[1:]
random = np.random.default_rng(8)
SOLVER = ["--solver", "solver.prototxt", "--shuffle"]
HERE, ELSEWHERE = pathlib.Path.cwd(), pathlib.Path("elsewhere").absolute()


def run(command, fails=None):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    said = r.stdout + r.stderr
    assert r.returncode != 0 and re.search(fails, said) if fails else r.returncode == 0, f"{command}: {r.returncode}\n{said}"
    return said


def ranks(n, *args):
    return [MPIEXEC, FLAG, n, TOOL, *args]


def result(said):
    """Losses, weights and state of a training of 12 iterations."""
    state = [pathlib.Path(f"w_iter_12.{end}").read_bytes() for end in ("caffemodel", "solverstate")]
    return (re.findall(r"(Iteration \d+|Test net|Train net).*?(loss = \S+)", said), *state)


def train(command, **more):
    for f in HERE.glob("w_iter_12.*"):
        f.unlink()
    said = run(command, **more)
    return said, None if "fails" in more else result(said)


def blobs(tool):
    """Images and labels of three batches."""
    run([*tool, "extract", "-m", "net.prototxt", "-b", "x,y", "-n", 3, "--phase", "TRAIN", "--shuffle"])
    return [pathlib.Path(f"{blob}.npy").read_bytes() for blob in "xy"]


def write_net(data):
    pathlib.Path("net.prototxt").write_text(
        data + "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { num_output: 10 weight_filler { type: "
        "'xavier' } } }\nlayer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }\n")


def make_data():
    n, h, w = 53, 12, 10
    for name in ("db", "shots", "elsewhere"):
        shutil.rmtree(name, ignore_errors=True)
    ELSEWHERE.mkdir()
    pathlib.Path("images").write_bytes(struct.pack(">IIII", 0x803, n, h, w) + random.integers(0, 256, n * h * w, dtype=np.uint8).tobytes())
    pathlib.Path("labels").write_bytes(struct.pack(">II", 0x801, n) + random.integers(0, 10, n, dtype=np.uint8).tobytes())
    run([TOOL, "data", "convert", "images", "labels", "db"])
    pathlib.Path("shots").mkdir()
    shots = 11
    with open("list", "w") as f, open("windows", "w") as g:
        for i in range(shots):
            pathlib.Path(f"shots/{i}.png").write_bytes(png(random.integers(0, 256, (20, 26, 3))))
            f.write(f"{i}.png {i % 10}\n")
            g.write(f"# {i}\n{i}.png\n3\n20\n26\n2\n{1 + i % 9} 0.9 5 5 {14 + i} 12\n0 0.1 1 2 9 {8 + i}\n")
    pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 12 display: 1 snapshot: 5 "
                                               "snapshot_prefix: 'w' test_iter: 3 test_interval: 4\n")


DATABASE = ("layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'db' backend: LMDB batch_size: 7 } transform_param { crop_size: 8 "
            "mirror: true scale: 0.0039 mean_value: 100 } }\n")
LAYERS = {
    "images": "layer { name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param { source: 'list' root_folder: 'shots/' batch_size: 4 "
              "new_height: 15 new_width: 13 } transform_param { crop_size: 9 mirror: true mean_value: [1, 2, 3] } }\n",
    "windows": "layer { name: 'd' type: 'WindowData' top: 'x' top: 'y' window_data_param { source: 'windows' root_folder: 'shots/' batch_size: 5 "
               "fg_threshold: 0.5 bg_threshold: 0.3 fg_fraction: 0.4 } transform_param { crop_size: 9 mirror: true mean_value: [7, 8, 9] } }\n",
}
OWN, FOR_ALL = "layer 'd': each worker reads its own records", "layer 'd': the program's process reads the records for all workers"

make_data()

# ---- a training with tests: in one process, forced either way, and as ranks
write_net(DATABASE)
said, first = train([TOOL, "train", *SOLVER, "-w", 2])
assert "reads" not in said, said
said, own = train([TOOL, "train", *SOLVER, "-w", 3, "--read", "workers"])
assert own == first and said.count(OWN) == 2, said  # the training net and the test net
for n in (2, 3, 5):
    said, own = train(ranks(n, "train", *SOLVER))
    assert own == first and said.count(OWN) == 2, said
said, own = train(ranks(3, "train", *SOLVER, "--read", "master"))
assert own == first and "reads" not in said, said
for n in (2, 4):
    _, own = train(ranks(n, "train", *SOLVER, "--snapshot", "w_iter_5.solverstate"))
    assert own[1:] == first[1:], f"{n} ranks: other weights when resumed"
assert "d: each worker reads its own records" in run(ranks(3, "train", *SOLVER, "--explain"))
assert "d: the program's process reads the records" in run([TOOL, "train", *SOLVER, "--explain"])
print("a training with tests: the same weights by one process and by ranks, resumed too")

# ---- the program's process alone has the files
apart = [MPIEXEC, FLAG, 1, TOOL, "train", *SOLVER, "SETTING", ":", FLAG, 2, "-wdir", ELSEWHERE, TOOL, "train", *SOLVER, "SETTING"]
said, own = train([c for c in apart if c != "SETTING"])
assert own == first and re.search(FOR_ALL + r": worker 0 \(.*\): db: is no LMDB", said), said
train(["--read=workers" if c == "SETTING" else c for c in apart],
      fails=r"ERR_IO: net.prototxt:1: layer 'd' cannot be read by the workers: worker 0 \(.*\): db: is no LMDB")
shutil.copy("images", ELSEWHERE)
shutil.copy("labels", ELSEWHERE)
(ELSEWHERE / "images").write_bytes(struct.pack(">IIII", 0x803, 9, 12, 10) + bytes(9 * 120))
(ELSEWHERE / "labels").write_bytes(struct.pack(">II", 0x801, 9) + bytes(9))
run([TOOL, "data", "convert", ELSEWHERE / "images", ELSEWHERE / "labels", ELSEWHERE / "db"])
train([c for c in apart if c != "SETTING"], fails=r"worker 0 \(.*\): db: has 9 records here, and 53 where the program runs")
print("files that a host lacks: named, or read by the program's process; other files of the same name: refused")

# ---- workers that run dmath-worker
said, own = train([MPIEXEC, FLAG, 1, TOOL, "train", *SOLVER, ":", FLAG, 2, WORKER])
assert own == first and "start dmath-worker with --load" in said, said
said, own = train([MPIEXEC, FLAG, 1, TOOL, "train", *SOLVER, ":", FLAG, 2, WORKER, "--load", LIBRARY])
assert own == first and said.count(OWN) == 2, said
print("dmath-worker: reads with --load, else the program's process does")

# ---- images and windows; the store; damage
for name, layer in LAYERS.items():
    write_net(layer)
    _, first = train([TOOL, "train", *SOLVER, "-w", 2])
    for n in (3, 4):
        said, own = train(ranks(n, "train", *SOLVER))
        assert own == first and said.count(OWN) == 2, f"{name}: other weights\n{said}"
    assert blobs([TOOL]) == blobs(ranks(4)), f"{name}: other images"
write_net(LAYERS["images"])
_, first = train([TOOL, "train", *SOLVER, "-w", 2])
for store in ((), ("--store", 1), ("--store", 1, "--store-folder", ".")):
    _, own = train(ranks(3, "train", *SOLVER, *store))
    assert own == first, store
whole = pathlib.Path("shots/3.png").read_bytes()
pathlib.Path("shots/3.png").write_bytes(whole[:len(whole) // 2])
pathlib.Path("shots/7.png").unlink()
damage = r"layer 'd': skipped.*"
said, first = train([TOOL, "train", *SOLVER, "-w", 2, "--damaged", "skip"])
mine, (said, own) = re.findall(damage, said), train(ranks(3, "train", *SOLVER, "--damaged", "skip"))
assert own == first and sorted(re.findall(damage, said)) == sorted(mine) and len(mine) > 5, (mine, said)
train(ranks(3, "train", *SOLVER), fails=r"worker \d.*list:(4|8): .*shots/(3|7)\.png")
print("images and windows: the same bits; damage: counted and named alike, or an error of the worker")

# ---- loading that is the slowest part is told, whoever waits
pathlib.Path("shots/large.png").write_bytes(png(random.integers(0, 256, (800, 800, 3))))
pathlib.Path("list").write_text("large.png 1\n")
write_net(LAYERS["images"].replace("batch_size: 4", "batch_size: 24"))
pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.001 lr_policy: 'fixed' max_iter: 40 snapshot_after_train: false\n")
for command in ([TOOL, "train", *SOLVER, "-w", 1], [TOOL, "train", *SOLVER, "-w", 2, "--read", "workers"], ranks(2, "train", *SOLVER)):
    assert "layer 'd': loading data is the slowest part" in run(command), command
print("slow loading: told")
