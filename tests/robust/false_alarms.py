#!/usr/bin/env python3
"""Jobs that have little of the machine, or none for a while: nobody may complain.

false_alarms.py PROGRAM [--worker DMATH-WORKER] [--jobs N] [--minutes M] [--seed S] [--beside N] [--hogs N] [--watchdog SECONDS]
                [--heartbeat SECONDS] [--seconds S]

PROGRAM is kill_main, which works for ever. Each job runs at nice 19 beside processes that spin (--hogs; 0: one a core), with a watchdog of
--watchdog seconds (2), for --seconds seconds (8). In a random order it is
  niced      left alone
  suspended  stopped as a whole (SIGSTOP to its processes, mpirun among them), for longer than the watchdog's time, and continued
A job runs in process or as ranks, with dmath-worker on the workers' ranks or not, on one host or on two that are pretended, then with a
heartbeat of --heartbeat seconds (3); two thirds have links that take 0.1 or 0.4 of the watchdog's time. A false alarm is a time-out, a rank or host that is taken for dead, or a job that has ended.
A job must go on after all: calls must be done behind the last of it. Ends after --jobs jobs, or when no new one begins after --minutes.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from deaths import alive, calls, children, wait_until

STARTS_WITHIN = 120
GOES_ON_WITHIN = 300  # slow links, and twenty calls that were given before
COMPLAINTS = ("no progress for", "has died", "sign of life", "returned:")


def tree_of(pid):
    tree, out = children(), [pid]
    for p in out:
        out += tree.get(p, [])
    return out


def be_nice(pids):
    for pid in pids:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), 19)
        except OSError:
            pass


def send(pids, how):
    for pid in pids:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            pass


def one(args, number):
    """Returns what is wrong, or None; the stretches of each kind; and the calls that the job gave."""
    r = random.Random(args.seed * 1000003 + number)
    form = r.choice(["threads", "ranks", "ranks"] + (["dmath-worker"] if args.worker else []))
    workers = r.randint(2, 4)
    hosts = 1 if form == "threads" else r.choice([1, 1, 2])
    folder = tempfile.mkdtemp(prefix="alarms-", dir=args.folder)
    options = {"DMATH_WATCHDOG_S": f"{args.watchdog:g}", "DMATH_LOG": "error"}
    options.update({"DMATH_PRETEND_HOSTS": str(hosts), "DMATH_HEARTBEAT_S": f"{args.heartbeat:g}"} if hosts > 1 else {})
    latency = r.choice([0, 0.1, 0.4]) * args.watchdog
    options["DMATH_LINK_LATENCY_US"] = f"{latency * 1e6:.0f}"
    program = [args.program, folder, str(number), str(int(args.seconds) + STARTS_WITHIN + GOES_ON_WITHIN + 60)]
    command = program
    if form == "threads":
        options["DMATH_WORKERS"] = str(workers)
    else:
        command = ["mpirun"] + [word for name, value in options.items() for word in ("-x", f"{name}={value}")]
        if form == "ranks":
            command += ["-n", str(workers + 1)] + program
        else:
            command += ["-n", "1", "-x", "DMATH_TEST_PLAIN=1"] + program + [":", "-n", str(workers), args.worker]
    name = f"job {number} ({workers} workers, {form}, {hosts} host{'s' if hosts > 1 else ''}, links of {latency:g} s)"
    env = dict(os.environ, TMPDIR=folder, OMPI_MCA_btl_vader_backing_directory=folder, **options)
    with open(f"{folder}/output", "w") as to:
        job = subprocess.Popen(command, stdout=to, stderr=to, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
    done = {"niced": 0, "suspended": 0}
    pids = [job.pid]

    def complaint():
        with open(f"{folder}/output", errors="replace") as f:
            text = f.read()
        ended = [pid for pid in pids if not alive(pid)]
        return text + f"\nended: {len(ended)} processes" if ended or any(c in text for c in COMPLAINTS) else None

    try:
        if not wait_until(lambda: os.path.exists(f"{folder}/running") or job.poll() is not None, STARTS_WITHIN):
            return name + ": it did not start", done, 0
        pids = tree_of(job.pid)
        be_nice(pids)
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            what = r.choice(list(done))
            if what == "suspended":
                send(pids, signal.SIGSTOP)
                time.sleep(r.uniform(1, 2) * args.watchdog)
                send(pids, signal.SIGCONT)
            time.sleep(r.uniform(0, 1) * args.watchdog)
            done[what] += 1
            text = complaint()
            if text:
                return f"{name}, {what}: {text}", done, 0
        before = calls(folder)
        if not wait_until(lambda: calls(folder) > before or complaint(), GOES_ON_WITHIN):
            return f"{name}: no call was done any more in {GOES_ON_WITHIN} s", done, before
        text = complaint()
        return f"{name}: {text}" if text else None, done, before
    finally:
        send(set(tree_of(job.pid) + pids), signal.SIGKILL)
        job.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--jobs", type=int, default=1000)
    p.add_argument("--minutes", type=float, default=1e9)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--beside", type=int, default=3)
    p.add_argument("--hogs", type=int, default=0)
    p.add_argument("--watchdog", type=float, default=2)
    p.add_argument("--heartbeat", type=float, default=3)
    p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--worker", help="dmath-worker: some of the jobs have it on the workers' ranks")
    p.add_argument("--folder", default=None)
    args = p.parse_args()
    hogs = args.hogs or os.cpu_count()
    print(f"seed {args.seed}, watchdog {args.watchdog:g} s, heartbeat {args.heartbeat:g} s, {args.seconds:g} s a job, nice 19 beside {hogs} "
          f"spinning processes, load {os.getloadavg()[0]:.0f}", flush=True)
    spin = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # no longer than this script lives
    spinning = [subprocess.Popen([sys.executable, "-c", spin], start_new_session=True) for _ in range(hogs)]
    bad, jobs, given, total = 0, 0, 0, {"niced": 0, "suspended": 0}
    end, lock, numbers = time.monotonic() + 60 * args.minutes, threading.Lock(), iter(range(args.jobs))

    def work():
        nonlocal bad, jobs, given
        while time.monotonic() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            wrong, done, count = one(args, number)
            with lock:
                jobs += 1
                bad += wrong is not None
                given += count
                for what in total:
                    total[what] += done[what]
                if wrong:
                    print(wrong, flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
            for future in [pool.submit(work) for _ in range(args.beside)]:
                future.result()
    finally:
        for hog in spinning:
            hog.kill()
            hog.wait()
    print(f"{jobs} jobs with {given} calls, {total['niced']} stretches niced and {total['suspended']} suspended, {bad} false alarms; "
          f"load {os.getloadavg()[0]:.0f}")
    return 1 if bad or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
