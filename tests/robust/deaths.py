#!/usr/bin/env python3
"""Kills processes of jobs at random moments and looks at how the jobs end.

deaths.py PROGRAM [--worker DMATH-WORKER] [--tries N] [--seed S] [--beside N] [--what worker,rank0,launcher] [--launcher plain,recovery]
          [--bound SECONDS] [--named SECONDS] [--option DMATH_FAULT=no_pidfd] [--hosts 2] [--heartbeat SECONDS]

PROGRAM is kill_main. Of each job, within --bound seconds of the kill (5; a second more than the launcher's own):
  worker    rank 0 has named the worker (--named seconds) and what it was doing; the job has ended with a status that is not 0 (of mpirun
            --enable-recovery the status is 0 whatever the ranks end with, so it is not looked at)
  rank0     everybody has left
  launcher  mpirun is killed: everybody has left
  stop      a worker of another host than rank 0's is stopped, the first one there: rank 0 has named it and left with its host; the
            others there have named it and left, too
  stop0     rank 0 is stopped: it is the ranks of other hosts that have left
  suspend   all ranks are stopped for longer than --heartbeat, and go on: nobody complains; then rank 0 is killed
With --hosts 2 the workers pretend to be on two hosts; the bound grows by the time of --heartbeat. And nothing is left: processes, files that are half written, files of shared memory.
"""
import argparse
import concurrent.futures
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STARTS_WITHIN = 40


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def pids_of(job):
    """The ranks' processes, by rank: mpirun's children know it."""
    out = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                with open(f"/proc/{entry}/stat") as f:
                    parent = int(f.read().rpartition(")")[2].split()[1])
                if parent == job.pid:
                    with open(f"/proc/{entry}/environ", "rb") as f:
                        rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", f.read())
                    out[int(rank.group(1))] = int(entry)
        except (OSError, AttributeError):
            pass
    return [out[rank] for rank in sorted(out)]


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def one(args, number):
    """Returns a text that says what is wrong, or None, and how long it took to tell and to leave."""
    r = random.Random(args.seed * 1000003 + number)
    what, launcher = r.choice(args.what), r.choice(args.launcher)
    ranks, delay = r.randint(3, 5), r.uniform(0, 0.5)
    workers = ranks - 1
    far = [w + 1 for w in range(workers) if w * args.hosts // workers > 0]
    how = r.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV]) if what == "worker" else signal.SIGKILL
    how = signal.SIGSTOP if what.startswith("stop") else how
    victim = far[0] if what == "stop" else 0 if what == "stop0" else r.randint(1, ranks - 1)
    bound = args.bound + (args.heartbeat if args.hosts > 1 else 0)
    folder = tempfile.mkdtemp(prefix="deaths-", dir=args.folder)
    command = ["mpirun"] + (["--enable-recovery"] if launcher == "recovery" else [])
    options = [f"DMATH_PRETEND_HOSTS={args.hosts}", f"DMATH_HEARTBEAT_S={args.heartbeat}"] if args.hosts > 1 else []
    for option in args.option + options:
        command += ["-x", option]
    form = r.choice(["program", "dmath-worker"]) if args.worker else "program"
    if form == "program":
        command += ["-n", str(ranks), args.program, folder, str(number)]
    else:
        command += ["-n", "1", "-x", "DMATH_TEST_PLAIN=1", args.program, folder, str(number)]
        command += [":", "-n", str(ranks - 1), args.worker]
    name = f"try {number} ({what} by {how.name}, rank {victim} of {ranks} {form}, {launcher}, after {delay:.3f} s)"
    env = dict(os.environ, TMPDIR=folder, OMPI_MCA_btl_vader_backing_directory=folder)
    with open(f"{folder}/output", "w") as to:
        job = subprocess.Popen(command, stdout=to, stderr=to, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
    said, pids = None, []
    try:
        if not wait_until(lambda: os.path.exists(f"{folder}/running") or job.poll() is not None, STARTS_WITHIN):
            return name + ": it did not start", 0, 0
        time.sleep(delay)
        pids = pids_of(job)
        if len(pids) != ranks:
            return name + f": {len(pids)} ranks are there", 0, 0
        target = job.pid if what == "launcher" else pids[0] if what in ("rank0", "stop0", "suspend") else pids[victim]
        stopped = [target] if how == signal.SIGSTOP else []
        if what == "suspend":
            for sent in signal.SIGSTOP, signal.SIGCONT:
                for pid in pids:
                    os.kill(pid, sent)
                time.sleep(args.heartbeat + 1)
            with open(f"{folder}/output", errors="replace") as f:
                text = f.read()
            if "dmath" in text or not all(map(alive, pids)):
                return name + ": somebody complains:\n" + text, 0, 0
        begin = time.monotonic()
        os.kill(target, how)
        silent = rf"and its host have given no sign of life for {args.heartbeat:g} s \(option heartbeat_s\)"
        dead = f"(has died|{silent})" if victim in far[:1] else "has died"
        pattern = re.compile(rf"worker {victim - 1} \(\S+, (process \d+, )?CPU\) {silent if stopped else dead} (in|after) command \d+")
        pattern = re.compile("rank 0 has given no sign of life for") if what == "stop0" else pattern

        def output():
            with open(f"{folder}/output", errors="replace") as f:
                return f.read()

        if what == "worker" or stopped:
            if not wait_until(lambda: pattern.search(output()), args.named + bound - args.bound):
                return name + ": nobody named it:\n" + output(), 0, 0
            said = time.monotonic() - begin
        if stopped:
            leaving = [pids[rank] for rank in range(ranks) if (rank in far if what == "stop0" else rank != victim)]
            if not wait_until(lambda: not any(map(alive, leaving)), bound):
                return name + f": left after {bound} s: {[p for p in leaving if alive(p)]}\n" + output(), 0, 0
            mates = re.compile(rf"worker {victim - 1} \(process {target}\), the first one of this host, has given no sign of life")
            # its words come through mpirun, which may take its time
            if what == "stop" and len(far) > 1 and not wait_until(lambda: mates.search(output()), bound):
                return name + ": nobody beside it named it:\n" + output(), 0, 0
            os.kill(target, signal.SIGKILL)
        if not wait_until(lambda: job.poll() is not None and not any(map(alive, pids)), bound):
            return name + f": left after {bound} s: {[p for p in pids if alive(p)]}\n" + output(), 0, 0
        took = time.monotonic() - begin
        if what != "launcher" and launcher == "plain" and job.returncode == 0:
            return name + ": the job ended with status 0\n" + output(), 0, 0
        left = glob.glob(f"{folder}/*.partial-*") if what == "worker" else []
        left += [f for f in glob.glob("/dev/shm/*") if any(str(p) in f for p in pids)]
        if left:
            return name + f": left: {left}\n" + output(), 0, 0
        return None, said or 0, took
    finally:
        for pid in pids + [job.pid]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        job.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--tries", type=int, default=50)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--beside", type=int, default=2)
    p.add_argument("--bound", type=float, default=5)
    p.add_argument("--named", type=float, default=3)
    p.add_argument("--what", type=lambda t: t.split(","), default=["worker", "rank0", "launcher"])
    p.add_argument("--launcher", type=lambda t: t.split(","), default=["plain", "recovery"])
    p.add_argument("--worker", help="dmath-worker: half of the jobs have it on the workers' ranks")
    p.add_argument("--option", action="append", default=[])
    p.add_argument("--hosts", type=int, default=1)
    p.add_argument("--heartbeat", type=float, default=2)
    p.add_argument("--folder", default=None)
    args = p.parse_args()
    print(f"seed {args.seed}, {args.tries} tries, bound {args.bound} s, {','.join(args.what)}, {','.join(args.launcher)}",
          flush=True)
    bad, said, took = 0, [], []
    with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
        for wrong, s, t in pool.map(lambda i: one(args, i), range(args.tries)):
            if wrong:
                bad += 1
                print(wrong, flush=True)
            else:
                said += [s] if s else []
                took.append(t)
    if said:
        print(f"named after at most {max(said):.2f} s, {len(said)} times")
    if took:
        print(f"all had left after at most {max(took):.2f} s, half of them within {sorted(took)[len(took) // 2]:.2f} s")
    print(f"{args.tries - bad} of {args.tries} ended as they must")
    return 1 if bad else 0


sys.exit(main())
