#!/usr/bin/env python3
"""examples/resume.c: interrupted by signals again and again, and run again by what its status says, it ends with the same bits as
without: resume.py PROGRAM FOLDER [MPIRUN...]   With MPIRUN the signal goes to mpirun."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

program, folder, launcher = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
STEPS, SIDE, EVERY, REQUEUE = 1200 if launcher else 3000, 60, 100, 75
random.seed(int(os.environ.get("DMATH_TEST_SEED", 5)))


def command(series):
    return launcher + [program, str(series), str(STEPS), str(SIDE), str(EVERY)]


def newest(series):
    folders = sorted(pathlib.Path(series).glob("0*"))
    return folders[-1] if folders else None


def run(series, workers, number):
    """Sends the signal a while after the program has made a checkpoint; its status."""
    before = newest(series)
    env = dict(os.environ, DMATH_WORKERS=str(workers), DMATH_LOG="error")
    process = subprocess.Popen(command(series), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and newest(series) == before:
        time.sleep(0.002)
    time.sleep(random.uniform(0, 0.02))
    if number and process.poll() is None:
        process.send_signal(number)
    out, err = process.communicate(timeout=100)
    if process.returncode == -signal.SIGTERM:  # it came behind dm_finalize
        return REQUEUE
    if process.returncode not in (0, REQUEUE):
        sys.exit(f"{program} gave {process.returncode}: {out}{err}")
    if (process.returncode == REQUEUE) != ("leaves at step" in err):
        sys.exit(f"{program} gave {process.returncode}, and said: {out}{err}")
    return process.returncode


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
straight, again = os.path.join(folder, "straight"), os.path.join(folder, "again")
if run(straight, 3, None) != 0:
    sys.exit("a program without signals must end with 0")
requeued = 0
for _ in range(10):  # on a busy machine a program may have ended before the signal comes
    shutil.rmtree(again, ignore_errors=True)
    requeued, status = 0, REQUEUE
    while status == REQUEUE:
        number = signal.SIGUSR1 if launcher or requeued % 2 == 0 else signal.SIGTERM
        status = run(again, 1 + requeued % 4, number)
        requeued += status == REQUEUE
    if requeued >= 2:
        break
if requeued < 2:
    sys.exit(f"it was requeued {requeued} times: too few to say anything")
for name in ("heat.npy",):
    if (newest(straight) / name).read_bytes() != (newest(again) / name).read_bytes():
        sys.exit(f"{name} has other bits than without interruptions")
print(f"requeued {requeued} times, and the same bits")
