#!/usr/bin/env python3
"""Starts jobs in which a call of one rank fails while the ranks meet, and looks at how they end.

starts.py JOB_MAIN [--settings NAME=VALUE,...] [--ranks 0,1,2] [--kind malloc,control,message,driver] [--first N] [--last N] [--step N]
          [--beside N] [--bound SECONDS] [--folder FOLDER]

Four ranks, of which each in turn of --ranks has DMATH_FAULT=KIND:N, for each N of the range; --settings is a list of settings, each tried with
all of these ("" is none; the words of one are joined by +). A job must end by itself, with the right results, or with a status that is not 0
and a sentence of dmath's that says why; and leave no process."""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from deaths import alive

SAID = re.compile(r"init: rank \d+ \(.*\): [a-z]|dmath.* error: |ERR_[A-Z]+|[a-z_]+: .*(bytes were asked for|planted fault)")


def one(args, setting, rank, kind, n):
    """Returns a text that says what is wrong, or None, and the status."""
    name = f"{setting or 'no setting'}, rank {rank}, {kind}:{n}"
    with tempfile.TemporaryDirectory(prefix="starts-", dir=args.folder) as folder:
        command = ["mpirun"]
        for r in range(4):
            command += [":"] * (r > 0) + ["-n", "1"] + (["-x", f"DMATH_FAULT={kind}:{n}"] if r == rank else []) + [args.program, "twice", folder]
        env = dict(os.environ, DMATH_EMULATED_GPUS="3", **dict(word.split("=") for word in setting.split("+") if word))
        with open(f"{folder}/output", "w") as to:
            job = subprocess.Popen(command, stdout=to, stderr=to, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
        try:
            status = job.wait(args.bound)
        except subprocess.TimeoutExpired:
            status = None
        pids = [open(f"{folder}/{f}").read() for f in os.listdir(folder) if f.isdigit()]
        pids = [int(p) for p in pids if p.strip().isdigit()]
        end = time.monotonic() + args.bound
        while status is not None and any(map(alive, pids)) and time.monotonic() < end:
            time.sleep(0.05)
        left = [p for p in pids if alive(p)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.wait()
        with open(f"{folder}/output", errors="replace") as f:
            text = f.read()
    if status is None:
        return f"{name}: it did not end within {args.bound:g} s\n{text}", status
    if left:
        return f"{name}: left behind: {left}\n{text}", status
    if not re.search("^right$", text, re.M) if status == 0 else not SAID.search(text):
        return f"{name}: status {status}, and nobody says why\n{text}", status
    return None, status


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--settings", type=lambda t: t.split(","), default=[""])
    p.add_argument("--ranks", type=lambda t: [int(r) for r in t.split(",")], default=[0, 1, 2])
    p.add_argument("--kind", type=lambda t: t.split(","), default=["malloc"])
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--last", type=int, default=60)
    p.add_argument("--step", type=int, default=1)
    p.add_argument("--beside", type=int, default=2)
    p.add_argument("--bound", type=float, default=60)
    p.add_argument("--folder", default=None)
    args = p.parse_args()
    points = [(s, r, k, n) for n in range(args.first, args.last + 1, args.step) for s in args.settings for k in args.kind for r in args.ranks]
    print(f"{len(points)} starts; load {os.getloadavg()[0]:.0f}", flush=True)
    bad, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
        for wrong, status in pool.map(lambda point: one(args, *point), points):
            failed += status != 0
            if wrong:
                bad += 1
                print(wrong, flush=True)
    print(f"{len(points) - bad} of {len(points)} ended as they must, {failed} of all by an error; load {os.getloadavg()[0]:.0f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
