#!/usr/bin/env python3
"""Kills workers and rank 0 of jobs that srun has started, at random moments, and looks at how the jobs end.

slurm_node.sh FOLDER deaths_srun.py PROGRAM [--worker DMATH-WORKER] [--tries N] [--seed S] [--beside N] [--what worker,rank0,stepd]
                                    [--kill-on-bad-exit 0,1] [--bound SECONDS] [--named SECONDS] [--half SECONDS]

PROGRAM is kill_main. As in deaths.py, a third of the jobs has a shell between Slurm and each rank. Of each job, after the kill:
  worker    rank 0 has named the worker and what it was doing (--named seconds; with --kill-on-bad-exit=1 Slurm ends the others with SIGKILL
            as soon as it has seen the death: then rank 0 may be silent, for it is dead)
  rank0     nothing more
  stepd     slurmstepd, which has started the ranks, is killed: the ranks and the shells have ended (srun may wait for the node to tell it)
and within --bound seconds all ranks, the shells and srun have ended, srun with a status that is not 0; the job's files that are half
written are gone where the ranks could do that, and no shared memory is left.
"""
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

from deaths import LATE, STARTS_WITHIN, alive, arguments, wait_until


def ranks_in(folder):
    """The ranks by number, and the shells in front of them: processes of the job, by their environment."""
    ranks, shells = {}, []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as f:
                environment = f.read()
            rank = re.search(rb"\0SLURM_PROCID=(\d+)\0", environment)
            if not rank or f"\0DEATHS_FOLDER={folder}\0".encode() not in environment:
                continue
            name = os.path.basename(os.readlink(f"/proc/{entry}/exe"))
        except OSError:
            continue
        if name in ("kill_main", "dmath-worker"):
            ranks[int(rank.group(1))] = int(entry)
        else:
            shells.append(int(entry))
    return [ranks[rank] for rank in sorted(ranks)], shells


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def one(args, number):
    """Returns a text that says what is wrong, or None; how long it took to tell and to leave; whether Slurm was quicker than rank 0."""
    r = random.Random(args.seed * 1000003 + number)
    what, bad_exit = r.choice(args.what), r.choice(args.kill_on_bad_exit)
    count, delay = r.randint(3, 5), r.uniform(0, 0.5)
    victim = r.randint(1, count - 1) if what == "worker" else 0
    form = r.choice(["program", "dmath-worker"]) if args.worker else "program"
    shell = "bash -c '\"$@\"; exit $?' bash " if r.random() < 1 / 3 else ""
    folder = tempfile.mkdtemp(prefix="deaths-")
    name = (f"try {number} ({what}, rank {victim} of {count} {form}{', wrapped' if shell else ''}, --kill-on-bad-exit={bad_exit}, "
            f"after {delay:.3f} s)")
    with open(f"{folder}/ranks", "w") as f:
        f.write(f"0 {shell}{args.program} {folder} {number}\n")
        f.write(f"1-{count - 1} {shell}" + (f"{args.program} {folder} {number}\n" if form == "program" else f"{args.worker}\n"))
    command = ["srun", "--mpi=pmix", f"--kill-on-bad-exit={bad_exit}", "--overcommit", "-n", str(count), "--multi-prog", f"{folder}/ranks"]
    env = dict(os.environ, DEATHS_FOLDER=folder, TMPDIR=folder, OMPI_MCA_btl_vader_backing_directory=folder)
    if form != "program":
        env["DMATH_TEST_PLAIN"] = "1"
    with open(f"{folder}/output", "w") as to:
        job = subprocess.Popen(command, stdout=to, stderr=to, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
    pids, shells = [], []

    def output():
        with open(f"{folder}/output", errors="replace") as f:
            return f.read()

    try:
        if not wait_until(lambda: os.path.exists(f"{folder}/running") or job.poll() is not None, args.starts):
            return name + ": it did not start\n" + output(), 0, 0, False
        time.sleep(delay)
        pids, shells = ranks_in(folder)
        if len(pids) != count:
            return name + f": {len(pids)} ranks are there\n" + output(), 0, 0, False
        target = pids[victim]
        while what == "stepd" and not os.path.basename(os.readlink(f"/proc/{target}/exe")).startswith("slurmstepd"):
            target = parent_of(target)
        begin = time.monotonic()
        os.kill(target, signal.SIGKILL)
        pattern = re.compile(rf"worker {victim - 1} \(\S+, (process \d+, )?CPU\) has died (in|after) command \d+")
        said, quicker = 0, False
        if what == "worker":
            if not wait_until(lambda: pattern.search(output()) or job.poll() is not None, args.named + LATE):
                return name + ": nobody named it:\n" + output(), 0, 0, False
            said = time.monotonic() - begin
            quicker = not pattern.search(output())
            if quicker and not (bad_exit and re.search(r"error: .*task 0: Killed", output())):
                return name + ": nobody named it:\n" + output(), 0, 0, False
        if not wait_until(lambda: (what == "stepd" or job.poll() is not None) and not any(map(alive, pids + shells)), args.bound + LATE):
            left = [p for p in pids + shells if alive(p)]
            return name + f": left after {args.bound + LATE} s: {left}, srun {job.poll()}\n" + output(), 0, 0, False
        took = time.monotonic() - begin
        if what != "stepd" and job.returncode == 0:
            return name + ": the job ended with status 0\n" + output(), 0, 0, False
        left = glob.glob(f"{folder}/*.partial-*") if what == "worker" and not quicker else []
        left += [f for f in glob.glob("/dev/shm/*") if any(str(p) in f for p in pids)]
        if left:
            return name + f": left: {left}\n" + output(), 0, 0, False
        if said > args.named or took > args.bound:
            return name + f": late: named after {said:.2f} s, all had left after {took:.2f} s", 0, 0, False
        return None, said, took, quicker
    finally:
        for pid in pids + shells:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        if job.poll() is None:
            job.terminate()  # cancels the job, too
        try:
            job.wait(2)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    p = arguments(tries=20)
    p.add_argument("--starts", type=float, default=STARTS_WITHIN)
    p.add_argument("--what", type=lambda t: t.split(","), default=["worker", "worker", "worker", "rank0"])
    p.add_argument("--kill-on-bad-exit", type=lambda t: [int(x) for x in t.split(",")], default=[0, 1])
    p.add_argument("--worker", help="dmath-worker: half of the jobs have it on the workers' ranks")
    args = p.parse_args()
    args.program, args.worker = os.path.abspath(args.program), args.worker and os.path.abspath(args.worker)
    print(f"seed {args.seed}, {args.tries} tries, {','.join(args.what)}; named within {args.named} s, left within {args.bound} s; "
          f"load {os.getloadavg()[0]:.0f}", flush=True)
    bad, late, quick, said, took = 0, 0, 0, [], []
    with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
        for wrong, s, t, quicker in pool.map(lambda i: one(args, i), range(args.first, args.first + args.tries)):
            if wrong:
                bad += 1
                late += ": late: " in wrong
                print(wrong, flush=True)
            else:
                quick += quicker
                said += [s] if s and not quicker else []
                took.append(t)
    for what, times in ("named", said), ("all had left", took):
        if times:
            half = sorted(times)[len(times) // 2]
            print(f"{what} after at most {max(times):.2f} s, half of them within {half:.2f} s, {len(times)} times")
            if args.half is not None and half > args.half:
                bad += 1
                print(f"half of them must be within {args.half} s")
    print(f"{quick} times Slurm had ended rank 0 first")
    print(f"{args.tries - bad} of {args.tries} ended as they must, {late} late, {bad - late} otherwise wrong; load {os.getloadavg()[0]:.0f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
