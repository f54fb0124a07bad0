#!/usr/bin/env python3
"""own_clock.py SECONDS COMMAND...: runs the command, and ends it after so many seconds of its own clock.

The clock of a test that hangs is that of the wall. That of one whose threads want a processor and do not get it goes slower, by the part
of the time that they get: a machine with much else to do makes no test fail, and one that hangs or spins is found. Ends with the
command's status, or 124. The kernel says how long each thread ran and waited (/proc/PID/task/TID/schedstat)."""
import os
import signal
import sys
import time

LOOK_S = 0.5
ASLEEP = 0.1  # threads that ran, or wanted to, for less of the time than this do not count as starved
LEAVE_S = 10  # after SIGTERM


def times(pid, found):
    """Of each thread of the process and of its children: how long it ran, and how long it waited for a processor."""
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{tid}"
            with open(folder + "/schedstat") as f:
                found[tid] = tuple(map(int, f.read().split()[:2]))
            with open(folder + "/children") as f:
                for child in f.read().split():
                    times(child, found)
    except (OSError, ValueError):
        pass  # it has ended
    return found


def start(command):
    """In a process of its own, with the signals that this one has changed as they were."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        try:
            os.execvp(command[0], command)
        except OSError as e:
            print(f"own_clock.py: {command[0]}: {e.strerror}", file=sys.stderr, flush=True)
            os._exit(127)
    return pid


def ended(pid, seconds):
    """Its status, once it has ended, waited for so long; None: it has not."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        left = until - time.monotonic()
        if left <= 0:
            return None
        signal.sigtimedwait([signal.SIGCHLD], left)


def main():
    limit, own = float(sys.argv[1]), 0.0
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command, too
    pid = start(sys.argv[2:])
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(pid, signal.SIGTERM))
    begin = last = time.monotonic()
    before = {}
    status = ended(pid, LOOK_S)
    while status is None:
        now, after = time.monotonic(), times(pid, {})
        took = now - last
        ran, waited = (sum(t[i] - before.get(tid, (0, 0))[i] for tid, t in after.items()) * 1e-9 for i in range(2))
        own += took if ran + waited < ASLEEP * took else took * ran / (ran + waited)
        before, last = after, now
        if own > limit:
            print(f"own_clock.py: {limit:g} s of its own clock, {now - begin:.0f} s of the wall's: it is ended", file=sys.stderr, flush=True)
            os.kill(pid, signal.SIGTERM)
            if ended(pid, LEAVE_S) is None:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            sys.exit(124)
        status = ended(pid, LOOK_S)
    sys.exit(status if status >= 0 else 128 - status)


main()
