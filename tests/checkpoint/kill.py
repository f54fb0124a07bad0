#!/usr/bin/env python3
"""Programs that die while they save: what is there afterwards is the old checkpoint or the new one, whole, and never older than one
that was said to be saved.

  kill.py moments PROGRAM FOLDER COUNT           kills COUNT times by the clock, at random moments, program after program
  kill.py calls PROGRAM SHIM FOLDER [STEP]       kills before every (STEP-th) call that changes files

With CKPT_ARRAY in the environment the programs save an array alone, and no checkpoint.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

ENV = dict(os.environ, DMATH_LOG="error")
ALONE = "CKPT_ARRAY" in ENV


def fail(text):
    sys.exit("kill.py: " + text)


def generation(program, folder, env=ENV):
    done = subprocess.run([program, "load", str(folder)], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"load of {folder} gave {done.returncode}: {done.stderr}")
    return int(done.stdout.split()[1])


def said(text):
    lines = [line.split() for line in text.splitlines()]
    return max((int(words[1]) for words in lines if len(words) == 2 and words[0] == "saved"), default=0)


def partials(folder):
    return list(pathlib.Path(folder).glob("array.npy.partial-*" if ALONE else ".partial-*"))


def clear(folder):
    shutil.rmtree(folder, ignore_errors=True)
    if ALONE:
        os.makedirs(folder)


def moments(program, folder, count):
    seed = int(os.environ.get("DMATH_TEST_SEED", time.time_ns() % 1000000))
    print("DMATH_TEST_SEED=%d" % seed)
    random.seed(seed)
    clear(folder)
    begin = time.monotonic()
    subprocess.run([program, "save", folder, "3"], env=ENV, check=True, stdout=subprocess.DEVNULL)
    longest = time.monotonic() - begin
    newest, died = 3, 0
    tries = 0
    while tries < count or (tries < 20 * count and (newest == 3 or died == 0)):  # a busy machine may be late for all of them
        tries += 1
        process = subprocess.Popen([program, "save", folder, "1000"], env=ENV, stdout=subprocess.PIPE, text=True)
        time.sleep(random.uniform(0.1 * longest, longest))
        process.send_signal(signal.SIGKILL)
        out = process.communicate()[0]
        if process.returncode != -signal.SIGKILL:
            fail(f"save gave {process.returncode}")
        died += len(partials(folder)) > 0
        sure, there = max(newest, said(out)), generation(program, folder)
        if not sure <= there <= sure + 1:
            fail(f"{sure} was said to be saved, and {there} is there")
        newest = there
        if len(partials(folder)) > 1:
            fail(f"{partials(folder)} were left by programs before")
    print(f"{tries} programs killed, {newest} generations, {died} died inside a save")
    if newest == 3 or died == 0:
        fail("none of them was killed in a save")


def calls(program, shim, folder, step):
    env = dict(ENV, CKPT_SMALL="1", DMATH_WORKERS="2")
    at, killed = 1, 0
    while True:
        clear(folder)
        for _ in range(2):
            subprocess.run([program, "save", folder, "1"], env=env, check=True, stdout=subprocess.DEVNULL)
        watched = dict(env, LD_PRELOAD=shim, FILE_CALLS_FOLDER=folder, FILE_CALLS_KILL=str(at))
        done = subprocess.run([program, "save", folder, "1"], env=watched, capture_output=True, text=True)
        there, sure = generation(program, folder, env), 2 + (said(done.stdout) == 3)
        if not sure <= there <= 3:
            fail(f"killed before call {at}: {there} is there, {sure} was sure")
        if done.returncode == 0:
            break
        if done.returncode != -signal.SIGKILL:
            fail(f"call {at}: {done.returncode}: {done.stderr}")
        killed += 1
        at += step
        subprocess.run([program, "save", folder, "1"], env=env, check=True, stdout=subprocess.DEVNULL)
        if partials(folder) or generation(program, folder, env) != there + 1:
            fail(f"killed before call {at}: the next one did not clean up: {partials(folder)}")
    print(f"{killed} programs killed, each before another call")
    if killed < (8 if ALONE else 20) // step:
        fail("that are too few: does the shim see the calls?")


if __name__ == "__main__":
    if sys.argv[1:2] == ["moments"] and len(sys.argv) == 5:
        moments(sys.argv[2], os.path.abspath(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["calls"] and len(sys.argv) in (5, 6):
        calls(sys.argv[2], sys.argv[3], os.path.abspath(sys.argv[4]), int((sys.argv + ["1"])[5]))
    else:
        sys.exit(__doc__)
