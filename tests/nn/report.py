#!/usr/bin/env python3
"""What dmath train leaves behind: --log against its lines, --report against weights and counts; damaged records; a pipe has no bar.

  report.py TOOL

Works in the current folder.
"""
import base64
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import numpy as np

from lenet import read_weights, write_idx

TOOL = sys.argv[1]
random = np.random.default_rng(2)
CLASSES, COUNT = 3, 48

labels = random.integers(0, CLASSES, COUNT).astype(np.uint8)
images = (random.integers(0, 40, (COUNT, 8, 8)) + 70 * labels[:, None, None]).astype(np.uint8)
write_idx("images.gz", images)
write_idx("labels.gz", labels)
shutil.rmtree("db", ignore_errors=True)
subprocess.run([TOOL, "data", "convert", "images.gz", "labels.gz", "db"], check=True, stdout=subprocess.DEVNULL)
pathlib.Path("net.prototxt").write_text("""
name: 'a <net>'
layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { source: 'db' backend: LMDB batch_size: 16 } transform_param { scale: 0.01 } }
layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: 'xavier' } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
layer { name: 'acc' type: 'Accuracy' bottom: 'ip' bottom: 'y' top: 'acc' include { phase: TEST } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'loss' }
""")
pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.05 lr_policy: 'step' gamma: 0.5 stepsize: 20 display: 10 max_iter: 40\n"
                                           "test_iter: 3 test_interval: 20 snapshot: 20 snapshot_prefix: 'run' momentum: 0.9\n")
COMMAND = [TOOL, "train", "--solver", "solver.prototxt", "-w", "2", "--log", "run.jsonl", "--report", "run.html"]
out = subprocess.run(COMMAND, capture_output=True, text=True)
assert out.returncode == 0, out.stderr
assert "\r" not in out.stdout and "\033" not in out.stdout + out.stderr

# --- the log says what the lines say
events = [json.loads(line) for line in pathlib.Path("run.jsonl").read_text().splitlines()]
train = [e for e in events if e["kind"] == "train"]
said = re.findall(r"^Iteration (\d+)(?: \(.*\))?, loss = (\S+)$", out.stdout, flags=re.M)
assert [(str(e["iteration"]), f"{e['loss']:g}") for e in train] == said, (train, said)
assert np.allclose([e["rate"] for e in train[:4]], [0.05, 0.05, 0.025, 0.025]), train
tests = [(e["iteration"], e["value"]) for e in events if e["kind"] == "test" and e["name"] == "acc"]
assert [f"{v:g}" for _, v in tests] == re.findall(r"Test net output #\d+: acc = (\S+)", out.stdout) and [i for i, _ in tests] == [0, 20, 40]
assert [e["name"] for e in events if e["kind"] == "snapshot"] == ["run_iter_20.solverstate", "run_iter_40.solverstate"]
assert events[-1]["kind"] == "end" and all(a["seconds"] <= b["seconds"] for a, b in zip(events, events[1:]))

# --- the report
page = pathlib.Path("run.html").read_text()
assert "http" not in page, "the report needs other files"
for caption in ("loss", "learning rate", "test net 0: acc", "test net 0: loss"):
    assert f"<figcaption>{caption} (last: " in page, caption
matrix = re.search(r"<table class='matrix'>(.*?)</table>", page, re.S).group(1)
counts = np.array([int(v) for v in re.findall(r"<td class='n'[^>]*>(\d+)", matrix)]).reshape(CLASSES, CLASSES)
seen = labels[np.arange(20 * 16) % COUNT]  # 20 batches from where the last test ended, which is the beginning
assert (counts.sum(1) == np.bincount(seen, minlength=CLASSES)).all(), counts
right = int(re.search(r"(\d+) of 320 right", page).group(1))
assert right == counts.trace() and abs(right / 320 - tests[-1][1]) < 0.12, (right, tests[-1])
weights = read_weights("run_iter_40.caffemodel")["c"][0].reshape(5, 3, 3)
pictures = re.findall(r"src='data:image/bmp;base64,([^']+)'", page)
assert len(pictures) == 5
for w, text in zip(weights, pictures):
    bmp = base64.b64decode(text)
    assert bmp[:2] == b"BM" and int.from_bytes(bmp[2:6], "little") == len(bmp)
    got = np.frombuffer(bmp[54:], np.uint8).reshape(3, 12)[::-1, :9].reshape(3, 3, 3)
    expected = (w - w.min()) / (w.max() - w.min()) * 255
    assert (got == got[:, :, :1]).all() and abs(got[:, :, 0] - expected).max() <= 1
layers = re.findall(r"<tr><td>(\w+)<td>(\w+)<td class='n'>([\d.]+)<td class='n'>([\d.]+)", page)
assert [name for name, *_ in layers] == ["d", "c", "ip", "loss"], layers
sent = re.findall(r"<tr><td class='n'>(\d)<td class='n'>([\d.]+)", page)
assert [w for w, _ in sent] == ["0", "1"] and all(float(m) > 0 for _, m in sent), sent
table = re.search(r"<table class='matrix links'>(.*?)</table>", page, re.S).group(1)
rows = [re.findall(r"<td>([\d./ ]*)", row) for row in table.split("<tr>")[2:]]
assert [[bool(cell) for cell in row] for row in rows] == [[False, True, True], [True, False, True]], rows
each = [float(m) for m in re.findall(r"<td class='n'>([\d.]+)</tr>", page)]  # KiB an iteration, all together
for w, row in enumerate(rows):
    counted, planned = (float(part) for part in row[1 - w].split(" / "))
    assert 0 < planned <= counted and abs(counted + float(row[2]) - each[w]) < 0.16, (row, each)

# --- of many classes the matrix has those that are confused most, and the others together
MANY = 300
pathlib.Path("many.prototxt").write_text(pathlib.Path("net.prototxt").read_text().replace("num_output: 3", f"num_output: {MANY}"))
pathlib.Path("many_solver.prototxt").write_text(pathlib.Path("solver.prototxt").read_text().replace("net.prototxt", "many.prototxt").replace(
    "max_iter: 40", "max_iter: 0").replace("snapshot: 20 ", "").replace("'run'", "'many'"))
subprocess.run([TOOL, "train", "--solver", "many_solver.prototxt", "-w", "2", "--report", "many.html"], check=True, stdout=subprocess.DEVNULL)
subprocess.run([TOOL, "extract", "--model", "many.prototxt", "--weights", "many_iter_0.caffemodel", "-b", "ip,y", "-n", "20", "-w", "2"], check=True,
               stdout=subprocess.DEVNULL)
answers, truth = np.load("ip.npy").reshape(-1, MANY).argmax(1), np.load("y.npy").astype(int).ravel()
wrong = answers != truth
confused = np.bincount(truth[wrong], minlength=MANY) + np.bincount(answers[wrong], minlength=MANY)
order = [int(c) for c in np.argsort(-confused, kind="stable")[:20] if confused[c]]
page = pathlib.Path("many.html").read_text()
assert f"The net has {MANY} classes, too many" in page and f"these are the {len(order)} that" in page, page[:2000]
assert f"{MANY - len(order)} are left out" in page and f"<p>{(~wrong).sum()} of 320 right." in page
matrix = re.search(r"<table class='matrix'>(.*?)</table>", page, re.S).group(1)
heads = re.findall(r"<th>(\w+)", matrix)
assert heads == [*map(str, order), "others"] * 2, (heads, order)
row = np.full(MANY, len(order))
row[order] = range(len(order))
expected = np.zeros((len(order) + 1, len(order) + 1), int)
np.add.at(expected, (row[truth], row[answers]), 1)
counts = np.array([int(v) for v in re.findall(r"<td class='n'[^>]*>(\d+)", matrix)]).reshape(expected.shape)
assert (counts == expected).all() and expected.sum() == 320, (counts, expected)

# --- one label a sample, in two dims: the same matrix. A curve of more points than are drawn ends with the last.
text = pathlib.Path("net.prototxt").read_text().replace("bottom: 'y' top: 'acc'", "bottom: 'z' top: 'acc'")
text = text.replace("layer { name: 'c'", "layer { name: 'z' type: 'Reshape' bottom: 'y' top: 'z' reshape_param { shape { dim: 0 dim: 1 } } }\nlayer { name: 'c'", 1)
pathlib.Path("rows.prototxt").write_text(text)
pathlib.Path("rows_solver.prototxt").write_text(pathlib.Path("solver.prototxt").read_text().replace("net.prototxt", "rows.prototxt").replace(
    "max_iter: 40", "max_iter: 2001").replace("display: 10", "display: 1").replace("test_interval: 20", "test_interval: 2001"))
subprocess.run([TOOL, "train", "--solver", "rows_solver.prototxt", "-w", "1", "--report", "rows.html"], check=True, stdout=subprocess.DEVNULL)
page = pathlib.Path("rows.html").read_text()
matrix = re.search(r"<table class='matrix'>(.*?)</table>", page, re.S).group(1)
assert sum(int(v) for v in re.findall(r"<td class='n'[^>]*>(\d+)", matrix)) == 320, matrix
curve = re.search(r"<figcaption>loss .*?class='curve' d='([^']*)'", page, re.S).group(1)
assert curve.count("L") < 2000 and curve.split("L")[-1].startswith("710.0 "), curve[-40:]

# --- labels of places have no matrix, and the report says so
text = pathlib.Path("net.prototxt").read_text().replace("bottom: 'ip' bottom: 'y' top: 'acc'", "bottom: 'p' bottom: 'q' top: 'acc'")
text += "".join(f"layer {{ name: '{n}' type: 'DummyData' top: '{n}' include {{ phase: TEST }} dummy_data_param {{ shape {{ dim: 4 dim: {c} dim: 2 dim: 2 }} }} }}\n"
                for n, c in (("p", 3), ("q", 1)))
lines = text.splitlines(keepends=True)
pathlib.Path("places.prototxt").write_text("".join(sorted(lines, key=lambda line: "'acc'" in line)))
pathlib.Path("places_solver.prototxt").write_text(pathlib.Path("many_solver.prototxt").read_text().replace("many", "places"))
subprocess.run([TOOL, "train", "--solver", "places_solver.prototxt", "-w", "2", "--report", "places.html"], check=True, stdout=subprocess.DEVNULL)
page = pathlib.Path("places.html").read_text()
assert "<h2>Confusion matrix</h2><p>Left out: " in page and "class='matrix'" not in page
for axis, count in ((1, 16), (2, 24), (0, 12)):  # in one dim too, and along the batch
    flat = pathlib.Path("places.prototxt").read_text().replace("'acc'", f"'acc' accuracy_param {{ axis: {axis} }}", 1).replace(
        "dim: 4 dim: 1 dim: 2 dim: 2", f"dim: {count}")
    assert f"axis: {axis}" in flat and f"dim: {count} " in flat
    pathlib.Path("flat.prototxt").write_text(flat)
    pathlib.Path("flat_solver.prototxt").write_text(pathlib.Path("many_solver.prototxt").read_text().replace("many", "flat"))
    subprocess.run([TOOL, "train", "--solver", "flat_solver.prototxt", "-w", "2", "--report", "flat.html"], check=True, stdout=subprocess.DEVNULL)
    assert "<h2>Confusion matrix</h2><p>Left out: " in pathlib.Path("flat.html").read_text(), axis

# --- labels that the layer ignores are not counted
text = pathlib.Path("net.prototxt").read_text().replace("top: 'acc'", "top: 'acc' accuracy_param { ignore_label: 1 }")
pathlib.Path("less.prototxt").write_text(text.replace("top: 'loss'", "top: 'loss' loss_param { ignore_label: 1 }"))
pathlib.Path("less_solver.prototxt").write_text(pathlib.Path("many_solver.prototxt").read_text().replace("many", "less"))
subprocess.run([TOOL, "train", "--solver", "less_solver.prototxt", "-w", "2", "--report", "less.html"], check=True, stdout=subprocess.DEVNULL)
page = pathlib.Path("less.html").read_text()
matrix = re.search(r"<table class='matrix'>(.*?)</table>", page, re.S).group(1)
counts = np.array([int(v) for v in re.findall(r"<td class='n'[^>]*>(\d+)", matrix)]).reshape(CLASSES, CLASSES)
expected = np.bincount(seen, minlength=CLASSES) * [1, 0, 1]
assert (counts.sum(1) == expected).all() and f" of {expected.sum()} right." in page, (counts, expected)

# --- no passes for the report where they would add rows to files
text = pathlib.Path("net.prototxt").read_text()
for phase in ("TRAIN", "TEST"):
    text += f"layer {{ name: 'out' type: 'HDF5Output' bottom: 'ip' bottom: 'y' hdf5_output_param {{ file_name: '{phase}.h5' }} include {{ phase: {phase} }} }}\n"
pathlib.Path("rows.prototxt").write_text(text)
pathlib.Path("rows_solver.prototxt").write_text(pathlib.Path("many_solver.prototxt").read_text().replace("many", "rows").replace("max_iter: 0", "max_iter: 2"))
rows = []
for more in ([], ["--report", "rows.html"]):
    r = subprocess.run([TOOL, "train", "--solver", "rows_solver.prototxt", "-w", "2", *more], capture_output=True, text=True)
    if "built without" in r.stderr:  # HDF5
        break
    assert r.returncode == 0, r.stderr
    rows.append([subprocess.run([TOOL, "data", "show", f"{phase}.h5", "-n", "0"], check=True, capture_output=True, text=True).stdout for phase in ("TRAIN", "TEST")])
else:
    page = pathlib.Path("rows.html").read_text()
    assert rows[0] == rows[1] and page.count("which would add rows to the file of 'out'") == 2 and "class='matrix'>" not in page, rows

# --- what is said beforehand: times from the rates above the table, and memory with histories
OUTPUTS, WORKERS = 3000, 2
pathlib.Path("wide.prototxt").write_text(pathlib.Path("net.prototxt").read_text().replace("num_output: 3", f"num_output: {OUTPUTS}"))
for solver, histories in (("SGD", 1), ("Adam", 2)):
    pathlib.Path("wide_solver.prototxt").write_text(f"net: 'wide.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 type: '{solver}' momentum: 0.9\n")
    text = subprocess.run([TOOL, "train", "--solver", "wide_solver.prototxt", "-w", str(WORKERS), "--explain"], check=True, capture_output=True, text=True).stdout
    gflops, mib = map(float, re.search(r"GFLOP / (\S+) a second and MiB read and written / (\S+) a second", text).groups())
    assert text.index("GFLOP / ") < text.index("layer  "), "the rates stand above the table"
    rows = {line.split()[0]: line.split() for line in text.splitlines() if re.match(r"(c|ip|loss) ", line)}
    x, c, y = 16 * 64, 16 * 5 * 36, 16 * OUTPUTS  # elements of the blobs; then each layer's operations and elements, forward and backward
    expected = {"c": ((2 * c * 9, x + c + WORKERS * 50), (2 * c * 9, x + c + WORKERS * 2 * 50)),
                "ip": ((2 * y * 180, c + y + WORKERS * 181 * OUTPUTS), (4 * y * 180, 2 * c + y + WORKERS * 2 * 181 * OUTPUTS)),
                "loss": ((0, y + 16 + 1), (0, 2 * y + 16 + 1))}
    sums = [0, 0]
    for name, passes in expected.items():
        for k, (flops, elements) in enumerate(passes):
            ms = 1e3 * max(flops / (gflops * 1e9), 4 * elements / (mib * 2**20))
            assert abs(float(rows[name][k - 2]) - ms) <= 2e-3 * ms, (name, k, rows[name], ms)
            sums[k] += ms
    said = [float(v) for v in re.search(r"about (\S+) ms forward, (\S+) ms backward", text).groups()]
    assert said[0] >= sums[0] * 0.998 and abs(said[1] - sums[1]) <= 2e-3 * sums[1], (said, sums)  # data are written too
    assert abs(float(rows["ip"][-4]) - 4 * 181 * OUTPUTS * (2 + histories) / 2**20) < 0.006, (solver, rows["ip"])

# --- a terminal has a bar
parent, child = pty.openpty()
run = subprocess.Popen([*COMMAND[:-4], "--max-iter", "400"], stdout=subprocess.DEVNULL, stderr=child)
os.close(child)
seen = b""
while True:
    try:
        part = os.read(parent, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
assert run.wait() == 0 and b"[" in seen and b" of 400 iterations, " in seen, seen[-2000:]

# --- places that cannot be written
for option in ("--log", "--report"):
    r = subprocess.run([*COMMAND[:-4], option, "missing/file"], capture_output=True, text=True)
    assert r.returncode == 1 and "missing/file: cannot be written" in r.stderr, r.stderr
print("log, report and bar: right")
