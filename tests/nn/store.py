#!/usr/bin/env python3
"""The store of decoded images: when all have been decoded, their files may go, and losses are those of a run without a store. What did
not fit is read again, and is an error then.

  store.py TOOL

Works in the current folder.
"""
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import numpy as np

from images import png

TOOL = sys.argv[1]
COUNT, SIDE, BATCH, ROUNDS = 24, 240, 4, 12  # 4 MiB of decoded images
random = np.random.default_rng(6)
shutil.rmtree("kept", ignore_errors=True)
pathlib.Path("kept").mkdir()
for i in range(COUNT):
    pathlib.Path(f"kept/{i}.png").write_bytes(png(np.repeat(np.repeat(random.integers(0, 256, (12, 12, 3)), 20, 0), 20, 1)))
pathlib.Path("list").write_text("".join(f"{i}.png {i % 3}\n" for i in range(COUNT)))
pathlib.Path("net.prototxt").write_text(f"""
layer {{ name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param {{ source: 'list' root_folder: 'images/' batch_size: {BATCH} }}
  transform_param {{ crop_size: 32 mirror: true scale: 0.01 }} }}
layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param {{ num_output: 3 weight_filler {{ type: 'xavier' }} }} }}
layer {{ name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }}
""")
pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.0001 lr_policy: 'fixed' max_iter: 100000000 display: 1 "
                                           "snapshot_after_train: false\n")


def train(*more):
    """Losses of a run whose images go away when it has displayed two rounds; its status, its messages."""
    shutil.rmtree("images", ignore_errors=True)
    shutil.copytree("kept", "images")
    run = subprocess.Popen([TOOL, "train", "--solver", "solver.prototxt", "--shuffle", "-w", "1", *more], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    losses = []
    for line in run.stdout:
        loss = re.search(r"^Iteration (\d+) .*loss = (\S+)$", line)
        losses += [loss[2]] if loss else []
        if loss and len(losses) == 2 * COUNT // BATCH:
            shutil.rmtree("images")
        if loss and len(losses) == ROUNDS * COUNT // BATCH:
            run.send_signal(signal.SIGINT)
    return losses[:ROUNDS * COUNT // BATCH], run.wait(), run.stderr.read()


in_memory, on_disk = train("--store", "6"), train("--store", "6", "--store-folder", ".")
assert in_memory[1] == 0 and len(in_memory[0]) == ROUNDS * COUNT // BATCH, in_memory
assert on_disk[1] == 0 and on_disk[0] == in_memory[0], on_disk
for more in ((), ("--store", "3"), ("--store", "3", "--store-folder", ".")):
    losses, status, said = train(*more)
    assert status == 1 and re.search(r"list:\d+: .*images/\d+\.png", said), (more, status, said)
    assert losses == in_memory[0][:len(losses)] and len(losses) >= 2 * COUNT // BATCH, more
r = train("--store", "3", "--store-folder", "missing")
assert r[1] == 1 and "missing: no file for decoded images can be made there" in r[2], r
assert not list(pathlib.Path(".").glob("dmath-images-*"))
print("decoded images: kept in memory and on disk")
