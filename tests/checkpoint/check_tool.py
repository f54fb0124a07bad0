#!/usr/bin/env python3
"""dmath ckpt, and what NumPy reads of a checkpoint: check_tool.py TOOL CKPT_MAIN VERSION_1 FOLDER"""
import ctypes
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np

tool, program, version_1, folder = sys.argv[1:5]
env = dict(os.environ, CKPT_SMALL="1", DMATH_LOG="error")


def run(*words, status=0, env=env):
    done = subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"{words}: {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def has(text, part):
    if part not in text:
        sys.exit(f"'{part}' is not in: {text}")


def opened(path, *words, status=0):
    """How often a command opens a file."""
    libc, seen = ctypes.CDLL(None, use_errno=True), 0
    is_open, is_closed = 0x20, 0x10  # events of inotify; both, so that equal ones do not become one
    watch = libc.inotify_init1(os.O_NONBLOCK)
    if watch < 0 or libc.inotify_add_watch(watch, os.fsencode(path), is_open | is_closed) < 0:
        sys.exit(f"inotify: {os.strerror(ctypes.get_errno())}")
    run(*words, status=status)
    for event in struct.iter_unpack("iIII", os.read(watch, 1 << 16)):
        seen += event[1] & is_open != 0
    os.close(watch)
    return seen


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
here = pathlib.Path(folder)

# NumPy reads the arrays of a checkpoint, bf16 as two bytes.
assert (np.load(f"{version_1}/weights.npy") == 0.5 + 0.25 * np.arange(24, dtype="f4").reshape(4, 6)).all()
assert np.load(f"{version_1}/layers%2F1.npy").dtype.itemsize == 2
rows = [json.loads(line) for line in run(tool, "ckpt", "ls", version_1, "--json").splitlines()]
assert [(r["name"], r["kind"], r["dtype"], r["shape"], r["bytes"]) for r in rows] == [
    ("weights", "array", "f32", "4x6", 224), ("layers/1", "array", "bf16", "5", 138), ("step", "value", "i64", "1", 8),
    ("rate", "value", "f64", "1", 8), ("note", "value", "bytes", "2", 2)], rows

# Resharding keeps all; as another type it rounds as NumPy does.
series, wide = here / "series", here / "wide"
run(program, "save", series, 2)
run(tool, "ckpt", "reshard", series, here / "again", "-w", 5, "--layout", "cyclic:0:1")
has(run(tool, "ckpt", "diff", series, here / "again"), "equal")
has(run(tool, "ckpt", "ls", here / "again"), "grid 5cx1")
has(run(program, "load", here / "again"), "generation 2")
run(tool, "ckpt", "reshard", version_1, wide, "-w", 2, "-d", "f16")
assert (np.load(wide / "00000001/weights.npy") == np.load(f"{version_1}/weights.npy").astype("f2")).all()
assert np.load(wide / "00000001/weights.npy").dtype == np.float16

# What differs is said, with how much.
text = run(tool, "ckpt", "diff", series / "00000001", series / "00000002", status=1)
a, b = (np.load(series / f"0000000{i}/bytes.npy").astype("f8") for i in (1, 2))
has(text, f"bytes: {(a != b).sum()} of {a.size} elements differ, by {abs(a - b).max():g} at most")
has(text, "generation: another value")
has(run(tool, "ckpt", "diff", version_1, series, status=1), "weights: another kind, type or shape")
has(run(tool, "ckpt", "diff", version_1, series, status=1), "generation: only in the second")

# However many items there are, the manifest is opened twice: to see whether it is dmath's, and to be read.
manifest = f"{version_1}/manifest.json"
assert opened(manifest, tool, "ckpt", "ls", version_1) == 2
assert opened(manifest, tool, "ckpt", "reshard", version_1, here / "once", "-w", 2) == 2
assert opened(manifest, tool, "ckpt", "diff", version_1, wide, status=1) == 2

# Damage is named.
has(run(tool, "ckpt", "verify", series), "every byte is as it was saved")
file = series / "00000002/weights.npy"
data = bytearray(file.read_bytes())
data[-1] ^= 4
file.write_bytes(data)
has(run(tool, "ckpt", "verify", series, status=1), "damaged: " + str(file) + ": part 0 (bytes 128 to")
has(run(tool, "ckpt", "verify", here / "none", status=1), "No such file")
run(tool, "ckpt", "verify", status=2)
run(tool, "ckpt", "diff", series, status=2)


def place():
    """This host, as dmath names it in the folders of checkpoints that are not finished."""
    value = 0xcbf29ce484222325
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes()
    for byte in boot + struct.pack("Q", os.stat("/proc/self/ns/pid").st_ino):
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


# What is not finished is listed, also where nothing is: of a process that is dead, alive, of another host.
unfinished = here / "unfinished"
started = int(pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
folders = {"dead": f".partial-{os.getpid()}-1-{place():x}-0", "alive": f".partial-{os.getpid()}-{started:x}-{place():x}-1",
           "elsewhere": f".partial-12-34-{place() ^ 1:x}-2"}
for name in folders.values():
    (unfinished / name).mkdir(parents=True)
rows = [json.loads(line) for line in run(tool, "ckpt", "ls", unfinished, "--json", status=1).splitlines() if line[0] == "{"]
assert {r["writer"]: r["unfinished"] for r in rows} == folders, rows
run(program, "save", unfinished, 2)
text = run(tool, "ckpt", "ls", unfinished)
has(text, f"unfinished: {unfinished / folders['alive']}: process {os.getpid()} is at work on it\n")
has(text, "process 12 of another host")
assert text.count("unfinished: ") == 2 and "weights" in text, text
print("all right")
