#!/usr/bin/env python3
"""Signals in the middle of `dmath train`: SIGINT ends it with a snapshot from which another number of workers goes on to the same bits,
lean or not, with tests beside training or not; SIGHUP makes a snapshot and the run goes on; --sigint-effect says otherwise.

  signals.py TOOL

Works in the current folder.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TOOL = sys.argv[1]
pathlib.Path("net.prototxt").write_text("""
layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: [6, 3, 8, 8] } shape { dim: 6 }
  data_filler { type: 'uniform' } data_filler { value: 1 } } }
layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }
layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' }
layer { name: 'o' type: 'Dropout' bottom: 'c' top: 'o' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'o' top: 'ip' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }
""")
pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 100000000 display: 10 "
                                           "snapshot_prefix: 'run' test_iter: 3 test_interval: 15\n")


def start(*more):
    return subprocess.Popen([TOOL, "train", "--solver", "solver.prototxt", "-w", "2", *more], stdout=subprocess.PIPE, text=True)


def lines_until(run, words):
    seen = []
    for line in run.stdout:
        seen.append(line)
        if words in line:
            return seen
    raise AssertionError(f"no line with '{words}': {seen[-5:]}, status {run.wait()}")


def weights(iteration, *more):
    r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "--max-iter", str(iteration), *more], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return [pathlib.Path(f"run_iter_{iteration}.{kind}").read_bytes() for kind in ("caffemodel", "solverstate")]


# SIGHUP: a snapshot, and it goes on; SIGINT: a snapshot, and it ends
for lean in ((), ("--lean",), ("--test-workers", "1"), ("--test-workers", "1", "--lean")):
    run = start(*lean)
    lines_until(run, "Iteration 20 ")
    run.send_signal(signal.SIGHUP)
    made = re.search(r"run_iter_\d+\.solverstate", lines_until(run, "solverstate")[-1])[0]
    lines_until(run, "Iteration ")
    run.send_signal(signal.SIGINT)
    rest = run.stdout.read()
    assert run.wait() == 0 and "Optimization stopped early." in rest, rest[-1000:]
    last = re.findall(r"run_iter_(\d+)\.solverstate", rest)[-1]
    assert pathlib.Path(made).exists()
    at = int(last)
    resumed = weights(at + 7, "--snapshot", f"run_iter_{last}.solverstate", "-w", "3")
    again = weights(at + 7, "--snapshot", made, "-w", "1", "--lean") if at < 20000 else resumed
    assert resumed == again, f"resumed at {last} and at {made}: other weights at {at + 7}"
    for path in pathlib.Path(".").glob("run_iter_*"):
        path.unlink()

# none: it goes on
run = start("--sigint-effect", "none", "--sighup-effect", "none")
for number in (signal.SIGINT, signal.SIGHUP):
    lines_until(run, "Iteration ")
    run.send_signal(number)
for _ in range(300):
    assert "napshot" not in lines_until(run, "Iteration ")[-1]
assert run.poll() is None, f"a signal without effect has ended it: {run.poll()}"
run.kill()
run.wait()

# snapshot: so does it
run = start("--sigint-effect", "snapshot", "--sighup-effect", "stop")
lines_until(run, "Iteration 10 ")
run.send_signal(signal.SIGINT)
lines_until(run, "solverstate")
lines_until(run, "Iteration ")
run.send_signal(signal.SIGHUP)
assert "stopped early" in run.stdout.read() and run.wait() == 0

# files that a net writes: what a process that is interrupted twice has not finished is gone, and so is what a dead one has left when the next begins
pathlib.Path("rows.prototxt").write_text("""
layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: [6, 4] } shape { dim: 6 } } }
layer { name: 'o' type: 'HDF5Output' bottom: 'x' bottom: 'y' hdf5_output_param { file_name: 'rows.h5' } }
""")


def rows(iterations):
    return subprocess.Popen([TOOL, "test", "--model", "rows.prototxt", "-w", "1", "--iterations", str(iterations)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "DMATH_INTERRUPT": "1"})


def partials():
    return list(pathlib.Path(".").glob("*.partial-*"))


pathlib.Path("rows.h5").unlink(missing_ok=True)
first = rows(1)
said = first.communicate()[1]
if first.returncode == 0:
    assert pathlib.Path("rows.h5").exists() and not partials()
    for number in (signal.SIGINT, signal.SIGKILL):
        run = rows(100000000)
        while not partials() and run.poll() is None:
            time.sleep(0.02)
        assert partials(), (run.poll(), run.stderr.read())
        while run.poll() is None:  # two that come at once are one
            run.send_signal(number)
            time.sleep(0.1)
        run.communicate()
        assert run.returncode != 0 and len(partials()) == (number == signal.SIGKILL), (number, run.returncode, partials())
    assert rows(1).wait() == 0 and not partials()
else:
    assert "HDF5" in said, said  # a build without it
print("SIGINT, SIGHUP: snapshots from which runs go on to the same bits")
