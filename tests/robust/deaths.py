#!/usr/bin/env python3
"""Kills processes of jobs at random moments and looks at how the jobs end.

deaths.py PROGRAM [--worker DMATH-WORKER] [--tries N] [--seed S] [--beside N] [--what worker,rank0,launcher,...]
          [--launcher plain,recovery] [--bound SECONDS] [--named SECONDS] [--half SECONDS] [--option DMATH_FAULT=no_pidfd] [--hosts 2]
          [--heartbeat SECONDS]

PROGRAM is kill_main. mpirun runs in a shell, as in a job's script, with a process group of their own. A third of the jobs has a shell
between mpirun and each rank, too. Of each job, within --bound seconds of the kill (5; a second more than the launcher's own):
  worker    rank 0 has named the worker (--named seconds) and what it was doing; the job has ended with a status that is not 0 (of mpirun
            --enable-recovery the status is 0 whatever the ranks end with, so it is not looked at)
  rank0     everybody has left
  launcher  mpirun is killed: everybody has left
  group     the group of the script is killed, as batch systems do: the shell and mpirun. Everybody has left
  term      the same group gets SIGTERM, which batch systems send first: everybody has left
  shell     the shell alone is killed: the job goes on, for mpirun lives. Then mpirun is killed: everybody has left
  script    the shell is a batch job's (it has what LSF or PBS leaves in the environment) and is killed alone: rank 0 has said so, everybody has left
  ctrl_c    the same group gets SIGINT, as from a terminal: mpirun ends the job, whatever the option interrupt says
  interrupt rank 0 gets SIGINT twice, with the option interrupt=1: the first cancels, the job goes on; after the second everybody has left
  stop      a worker of another host than rank 0's is stopped, the first one there: rank 0 has named it and left with its host; the
            others there have named it and left, too
  stop0     rank 0 is stopped: it is the ranks of other hosts that have left
  suspend   all ranks are stopped for longer than --heartbeat, and go on: nobody complains; then rank 0 is killed
The tries take what is listed in turns. With --hosts 2 the workers pretend to be on two hosts; the bound grows by the time of --heartbeat. And nothing is left: processes, files
of shared memory, and, unless it was rank 0 that was killed, files that are half written. On a busy machine single tries take long, so --bound and --named must be generous there;
--half is what half of the tries must keep.
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
# What batch systems leave in a job's environment. Not Slurm's: Open MPI would take its number for more than that.
BATCH = ({"LSB_JOBID": "77", "LSB_HOSTS": "localhost localhost", "LSB_MCPU_HOSTS": "localhost 2"},
         {"PBS_JOBID": "77.localhost", "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_NODEFILE": "/dev/null"})
LATE = 30  # so much longer than the bounds it is looked whether it happens at all


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children():
    out = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                with open(f"/proc/{entry}/stat") as f:
                    out.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(int(entry))
        except OSError:
            pass
    return out


def pids_of(shell):
    """mpirun, the ranks by number, and the shells in front of them."""
    tree, ranks, shells = children(), {}, []
    launcher = next(iter(tree.get(shell, [])), 0)
    for child in tree.get(launcher, []):
        try:
            with open(f"/proc/{child}/environ", "rb") as f:
                rank = int(re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", f.read()).group(1))
        except (OSError, AttributeError):
            continue
        while child in tree:
            shells.append(child)
            (child,) = tree[child]
        ranks[rank] = child
    return launcher, [ranks[rank] for rank in sorted(ranks)], shells


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def calls(folder):
    """The calls that the program has given so far."""
    with open(f"{folder}/running") as f:
        return int("0" + f.read().split("\n")[0])


def one(args, number):
    """Returns a text that says what is wrong, or None, and how long it took to tell and to leave."""
    r = random.Random(args.seed * 1000003 + number)
    what, launcher = args.what[number % len(args.what)], r.choice(args.launcher)
    ranks, delay = r.randint(3, 5), r.uniform(0, 0.5)
    workers = ranks - 1
    far = [w + 1 for w in range(workers) if w * args.hosts // workers > 0]
    how = r.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV]) if what == "worker" else signal.SIGKILL
    how = signal.SIGTERM if what == "term" else signal.SIGINT if what in ("ctrl_c", "interrupt") else how
    how = signal.SIGSTOP if what.startswith("stop") else how
    victim = far[0] if what == "stop" else 0 if what == "stop0" else r.randint(1, ranks - 1)
    bound = args.bound + (args.heartbeat if args.hosts > 1 else 0)
    folder = tempfile.mkdtemp(prefix="deaths-", dir=args.folder)
    wrapped = ["bash", "-c", '"$@"; exit $?', "bash"] if r.random() < 1 / 3 else []
    command = ["bash", "-c", '"$@"; exit $?', "bash", "mpirun"] + (["--enable-recovery"] if launcher == "recovery" else [])
    options = [f"DMATH_PRETEND_HOSTS={args.hosts}", f"DMATH_HEARTBEAT_S={args.heartbeat}"] if args.hosts > 1 else []
    options += ["DMATH_INTERRUPT=1"] if how == signal.SIGINT else []
    for option in args.option + options:
        command += ["-x", option]
    form = r.choice(["program", "dmath-worker"]) if args.worker else "program"
    if form == "program":
        command += ["-n", str(ranks)] + wrapped + [args.program, folder, str(number)]
    else:
        command += ["-n", "1", "-x", "DMATH_TEST_PLAIN=1"] + wrapped + [args.program, folder, str(number)]
        command += [":", "-n", str(ranks - 1)] + wrapped + [args.worker]
    name = f"try {number} ({what} by {how.name}, rank {victim} of {ranks} {form}{', wrapped' if wrapped else ''}, {launcher}, after {delay:.3f} s)"
    batch = r.choice(BATCH) if what == "script" else {}
    env = dict(os.environ, **batch, TMPDIR=folder, OMPI_MCA_btl_vader_backing_directory=folder)
    with open(f"{folder}/output", "w") as to:
        job = subprocess.Popen(command, stdout=to, stderr=to, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
    said, pids, others = None, [], []
    try:
        if not wait_until(lambda: os.path.exists(f"{folder}/running") or job.poll() is not None, STARTS_WITHIN):
            with open(f"{folder}/output", errors="replace") as f:
                return name + ": it did not start\n" + f.read(), 0, 0
        time.sleep(delay)
        mpirun, pids, shells = pids_of(job.pid)
        others = [mpirun] + shells
        if len(pids) != ranks or len(shells) != (ranks if wrapped else 0):
            return name + f": {len(pids)} ranks and {len(shells)} shells are there", 0, 0
        if what == "shell":
            job.kill()
            time.sleep(0.5)
            with open(f"{folder}/output", errors="replace") as f:
                text = f.read()
            if "dmath" in text or not all(map(alive, pids + others)):
                return name + ": the job does not go on:\n" + text, 0, 0
        target = mpirun if what in ("launcher", "shell") else job.pid if what == "script" else pids[0] if what in ("rank0", "interrupt", "stop0", "suspend") else pids[victim]
        stopped = [target] if how == signal.SIGSTOP else []
        if what == "interrupt":
            os.kill(target, how)
            time.sleep(0.1)
            before = calls(folder)
            if not wait_until(lambda: calls(folder) > before, bound) or not all(map(alive, pids + others)):
                return name + ": the first one ends or stops the job", 0, 0
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
        if what in ("group", "term", "ctrl_c"):
            os.killpg(job.pid, how)
        else:
            os.kill(target, how)
        silent = rf"and its host have given no sign of life for {args.heartbeat:g} s \(option heartbeat_s\)"
        dead = f"(has died|{silent})" if victim in far[:1] else "has died"
        pattern = re.compile(rf"worker {victim - 1} \(\S+, (process \d+, )?CPU\) {silent if stopped else dead} (in|after) command \d+")
        pattern = re.compile("rank 0 has given no sign of life for") if what == "stop0" else pattern

        def who(pid):
            return f"rank {pids.index(pid)}" if pid in pids else "mpirun" if pid == mpirun else "a rank's shell"

        def output():
            with open(f"{folder}/output", errors="replace") as f:
                return f.read()

        if what == "worker" or stopped:
            if not wait_until(lambda: pattern.search(output()), args.named + bound - args.bound + LATE):
                return name + ": nobody named it:\n" + output(), 0, 0
            said = time.monotonic() - begin
        if what == "script" and not wait_until(lambda: "the script of this batch job, has died" in output(), bound + LATE):
            return name + ": nobody said why:\n" + output(), 0, 0
        if stopped:
            leaving = [pids[rank] for rank in range(ranks) if (rank in far if what == "stop0" else rank != victim)]
            if not wait_until(lambda: not any(map(alive, leaving)), bound):
                return name + f": left after {bound} s: {[p for p in leaving if alive(p)]}\n" + output(), 0, 0
            mates = re.compile(rf"worker {victim - 1} \(process {target}\), the first one of this host, has given no sign of life")
            # its words come through mpirun, which may take its time
            if what == "stop" and len(far) > 1 and not wait_until(lambda: mates.search(output()), bound):
                return name + ": nobody beside it named it:\n" + output(), 0, 0
            os.kill(target, signal.SIGKILL)
        if not wait_until(lambda: job.poll() is not None and not any(map(alive, pids + others)), bound + LATE):
            return name + f": left after {bound + LATE} s: {[who(p) for p in pids + others if alive(p)]}\n" + output(), 0, 0
        took = time.monotonic() - begin
        if what in ("worker", "rank0", "interrupt") and launcher == "plain" and job.returncode == 0:
            return name + ": the job ended with status 0\n" + output(), 0, 0
        left = glob.glob(f"{folder}/*.partial-*") if what in ("worker", "launcher", "group", "shell", "script") else []
        left += [f for f in glob.glob("/dev/shm/*") if any(str(p) in f for p in pids)]
        if left:
            return name + f": left: {left}\n" + output(), 0, 0
        if (said or 0) > args.named + bound - args.bound or took > bound + (bound if stopped else 0):
            return name + f": late: named after {said or 0:.2f} s, all had left after {took:.2f} s", 0, 0
        return None, said or 0, took
    finally:
        for pid in pids + others:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.wait()
        shutil.rmtree(folder, ignore_errors=True)


def arguments(tries):
    """Those of all scripts of deaths."""
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--tries", type=int, default=tries)
    p.add_argument("--first", type=int, default=0, help="number of the first try: repeats one")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--beside", type=int, default=2)
    p.add_argument("--bound", type=float, default=5)
    p.add_argument("--named", type=float, default=3)
    p.add_argument("--half", type=float)
    return p


def main():
    p = arguments(tries=50)
    p.add_argument("--what", type=lambda t: t.split(","), default=["worker", "rank0", "launcher", "group", "term", "shell", "script", "ctrl_c", "interrupt"])
    p.add_argument("--launcher", type=lambda t: t.split(","), default=["plain", "recovery"])
    p.add_argument("--worker", help="dmath-worker: half of the jobs have it on the workers' ranks")
    p.add_argument("--option", action="append", default=[])
    p.add_argument("--hosts", type=int, default=1)
    p.add_argument("--heartbeat", type=float, default=2)
    p.add_argument("--folder", default=None)
    args = p.parse_args()
    print(f"seed {args.seed}, {args.tries} tries, {','.join(args.what)}, {','.join(args.launcher)}; named within {args.named} s, "
          f"left within {args.bound} s; load {os.getloadavg()[0]:.0f}", flush=True)
    bad, late, said, took = 0, 0, [], []
    with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
        for wrong, s, t in pool.map(lambda i: one(args, i), range(args.first, args.first + args.tries)):
            if wrong:
                bad += 1
                late += ": late: " in wrong
                print(wrong, flush=True)
            else:
                said += [s] if s else []
                took.append(t)
    for what, times in ("named", said), ("all had left", took):
        if times:
            half = sorted(times)[len(times) // 2]
            print(f"{what} after at most {max(times):.2f} s, half of them within {half:.2f} s, {len(times)} times")
            if args.half is not None and half > args.half:
                bad += 1
                print(f"half of them must be within {args.half} s")
    print(f"{args.tries - bad} of {args.tries} ended as they must, {late} late, {bad - late} otherwise wrong; load {os.getloadavg()[0]:.0f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
