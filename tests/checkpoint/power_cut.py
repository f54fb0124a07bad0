#!/usr/bin/env python3
"""Power cuts: the calls that a program makes while it saves (file_calls.c) are replayed up to every point, and what is not on the disk
then is lost, in several ways. What a program finds afterwards is a whole checkpoint (with CKPT_ARRAY in the environment: a whole array),
none older than one that was said to be saved.

  power_cut.py PROGRAM SHIM FOLDER [STEP]

The model of the disk is POSIX's worst: bytes are sure once fsync of their file has returned, names once fsync of their folder has.
What was not synced may be there or not. After each call (or every STEP-th) the disk is
  nothing  only what is sure
  names    all names, but of files only the bytes that are sure (a file system that writes names first)
  all      everything
  some     a random half of what is not sure, kept in order for each folder
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys

BATCH = 60


def fail(text):
    sys.exit("power_cut.py: " + text)


def read_log(path):
    """[(call, words, data)]"""
    log, at, calls = pathlib.Path(path).read_bytes(), 0, []
    while at < len(log):
        end = log.index(b"\n", at)
        words = log[at:end].decode().split("\t")
        at = end + 1
        data = b""
        if words[0] in ("write", "said"):
            data = log[at:at + int(words[-1])]
            at += int(words[-1])
        calls.append((words[0], words[1:], data))
    return calls


class File:
    def __init__(self):
        self.now, self.sure = bytearray(), bytearray()


class Folder:
    """Names now; and the changes of names that are not sure yet, in order."""

    def __init__(self):
        self.names, self.sure, self.changes = {}, {}, []

    def change(self, name, what):
        self.changes.append((name, what))
        apply(self.names, name, what)


def apply(names, name, what):
    if what is None:
        names.pop(name, None)
    else:
        names[name] = what


class Disk:
    def __init__(self, root):
        self.root = root
        self.top = Folder()

    def find(self, path):
        at = self.top
        for word in pathlib.PurePath(path).relative_to(self.root).parts:
            at = at.names[word]
        return at

    def place(self, path):
        pure = pathlib.PurePath(path)
        return self.find(pure.parent), pure.name

    def call(self, call, words, data):
        if call == "said":
            return
        if call in ("create", "mkdir", "unlink", "rmdir"):
            folder, name = self.place(words[0])
            if call == "mkdir" or call == "create":
                if name not in folder.names:
                    folder.change(name, Folder() if call == "mkdir" else File())
            elif name in folder.names:
                folder.change(name, None)
        elif call == "rename":
            (source, old), (target, new) = self.place(words[0]), self.place(words[1])
            if isinstance(target.names.get(new), Folder):
                return  # the system refuses: the folder is not empty
            moved = source.names[old]
            assert source is target
            source.changes.append(((old, new), moved))  # one change: it is there or not
            source.names.pop(old)
            source.names[new] = moved
        elif call == "size":
            now, size = self.find(words[0]).now, int(words[1])
            del now[size:]
            now.extend(bytes(size - len(now)))
        elif call == "write":
            now = self.find(words[0]).now
            at = len(now) if words[1] == "-1" else int(words[1])
            now.extend(bytes(max(0, at + len(data) - len(now))))
            now[at:at + len(data)] = data
        elif call == "sync":
            what = self.find(words[0])
            if isinstance(what, Folder):
                what.sure, what.changes = dict(what.names), []
            else:
                what.sure = bytearray(what.now)
        else:
            fail("an unknown call: " + call)

    def after(self, folder, way, to):
        """Makes what is on the disk after a cut."""
        to.mkdir(parents=True)
        names = dict(folder.sure)
        keep = {"nothing": 0, "names": len(folder.changes), "all": len(folder.changes),
                "some": random.randint(0, len(folder.changes))}[way]
        for name, what in folder.changes[:keep]:
            if isinstance(name, tuple):
                names.pop(name[0], None)
                names[name[1]] = what
            else:
                apply(names, name, what)
        for name, what in names.items():
            if isinstance(what, Folder):
                self.after(what, way, to / name)
            elif way == "all" or (way == "some" and random.random() < 0.5):
                (to / name).write_bytes(what.now)
            else:
                (to / name).write_bytes(what.sure)


def main():
    program, shim, folder, step = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3]), int((sys.argv + ["1"])[4])
    random.seed(int(os.environ.get("DMATH_TEST_SEED", 1)))
    env = dict(os.environ, DMATH_LOG="error", CKPT_SMALL="1", DMATH_WORKERS="2")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    root = os.path.join(folder, "disk")
    os.mkdir(root)
    log, alone = os.path.join(folder, "log"), "CKPT_ARRAY" in env
    if alone:
        os.mkdir(os.path.join(root, "series"))
    subprocess.run([program, "save", os.path.join(root, "series"), "4"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(env, LD_PRELOAD=shim, FILE_CALLS_FOLDER=root, FILE_CALLS_LOG=log))
    calls = read_log(log)
    disk, sure, cuts, checked = Disk(root), 0, [], 0
    if alone:
        disk.top.names["series"] = disk.top.sure["series"] = Folder()

    def check():
        folders = [str(path / "series") for path, _, _ in cuts]
        done = subprocess.run([program, "load"] + folders, env=env, capture_output=True, text=True)
        there = [int(line.split()[1]) for line in done.stdout.splitlines()]
        if done.returncode != 0:
            fail(f"{cuts[len(there)]}: {done.stderr}")
        for (path, at, least), found in zip(cuts, there):
            if found < least:
                fail(f"cut after call {at} ({path.name}): {found} is there, {least} was sure")
        for path, _, _ in cuts:
            shutil.rmtree(path)
        cuts.clear()
        return len(there)

    for at, (call, words, data) in enumerate(calls, 1):
        disk.call(call, words, data)
        if call == "said" and data.startswith(b"saved"):
            sure = int(data.split()[1])
        if at % step == 0 or call == "said":
            for way in ("nothing", "names", "all", "some"):
                path = pathlib.Path(folder) / f"{way}-{at}"
                disk.after(disk.top, way, path)
                cuts.append((path, at, sure))
        if len(cuts) >= BATCH:
            checked += check()
    if cuts:
        checked += check()
    print(f"{len(calls)} calls, {checked} cuts, generation {sure} at the end")
    if sure != 4:
        fail("the program did not save four generations")


if __name__ == "__main__":
    main() if len(sys.argv) in (4, 5) else sys.exit(__doc__)
