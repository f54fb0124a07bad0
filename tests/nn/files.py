#!/usr/bin/env python3
"""`dmath net convert`, `upgrade` and `draw`: files in other forms mean the same, and what makes no sense is refused.

  files.py TOOL

Works in the current folder.
"""
import pathlib
import re
import subprocess
import sys

TOOL = sys.argv[1]
NEW = """name: "n\\"1"
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" include { phase: TEST } }
layer { name: "ip" type: "InnerProduct" bottom: "c" top: "y" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
OLD = """name: "n\\"1" input: "x" input_dim: 2 input_dim: 3 input_dim: 6 input_dim: 5
layers { name: "c" type: CONVOLUTION bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layers { name: "r" type: RELU bottom: "c" top: "c" include { phase: TEST } }
layers { name: "ip" type: INNER_PRODUCT bottom: "c" top: "y" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""


def run(*words, fails=None):
    r = subprocess.run([TOOL, *words], capture_output=True, text=True)
    assert r.returncode == (1 if fails else 0) and (not fails or fails in r.stderr), (words, r.returncode, r.stderr)
    return r.stdout


def bytes_of(path):
    return pathlib.Path(path).read_bytes()


pathlib.Path("new.prototxt").write_text(NEW)
pathlib.Path("old.prototxt").write_text(OLD)
run("net", "upgrade", "old.prototxt", "upgraded.prototxt")
run("net", "convert", "new.prototxt", "plain.txt")
upgraded = bytes_of("upgraded.prototxt").decode()
assert "layers" not in upgraded and "input_dim" not in upgraded and upgraded.count("layer {") == 4, upgraded
assert upgraded.replace('name: "input"', 'name: "in"') == bytes_of("plain.txt").decode(), upgraded
for form in ("binary", "again.prototxt"):
    run("net", "convert", "plain.txt" if form == "binary" else "binary", form)
assert bytes_of("again.prototxt") == bytes_of("plain.txt") and bytes_of("binary") != bytes_of("plain.txt")

# the published LeNet: through the binary form and back it is what dmath prints of it, and that is read as the same again
published = pathlib.Path(__file__).resolve().parents[2] / "examples/lenet/lenet_train_test.prototxt"
run("net", "convert", str(published), "lenet")
run("net", "convert", "lenet", "lenet.prototxt")
assert bytes_of("lenet.prototxt").decode() == run("net", "print", str(published)) == run("net", "print", "lenet.prototxt")

# weights, made by a solver that does nothing
pathlib.Path("train.prototxt").write_text(NEW.replace("layer { name: \"in\"", "layer { name: 'l' type: 'DummyData' top: 'l' dummy_data_param { "
                                                      "shape { dim: 2 } } }\nlayer { name: \"in\"", 1) +
                                          "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'y' bottom: 'l' top: 'loss' }\n")
pathlib.Path("solver.prototxt").write_text("net: 'train.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: 'w'\n")
run("train", "--solver", "solver.prototxt", "-w", "1")
run("net", "convert", "w_iter_0.caffemodel", "w.txt")
run("net", "convert", "w.txt", "w.caffemodel")
assert bytes_of("w.caffemodel") == bytes_of("w_iter_0.caffemodel"), "weights through text: other bytes"
assert "blobs {" in bytes_of("w.txt").decode()
r = subprocess.run([TOOL, "net", "convert", "w.caffemodel", "w.h5"], capture_output=True, text=True)
if r.returncode != 0:
    assert "HDF5" in r.stderr, r.stderr  # a build without it
else:
    for weights in ("w.caffemodel", "w.h5"):  # training goes on from both with the same bits
        run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", weights)
        assert bytes_of("w_iter_0.caffemodel") == bytes_of("w.caffemodel"), weights
    run("net", "convert", "w.h5", "w2.caffemodel", fails="w.h5: HDF5 files hold no nets")

# the graph: a node for each layer and blob, an edge for each bottom and top
picture = run("net", "draw", "old.prototxt")
assert picture.startswith('digraph "n\\"1" {') and picture.rstrip().endswith("}")
assert len(re.findall(r"^  layer\d+ \[", picture, re.M)) == 4 and picture.count("->") == 7, picture
assert set(re.findall(r'^  "blob (\w+)" \[', picture, re.M)) == {"x", "c", "y"} and "(TEST)" in picture

run("net", "draw", "missing.prototxt", fails="missing.prototxt: cannot be read")
run("net", "convert", "new.prototxt", "missing/net.txt", fails="missing/net.txt: cannot be written")
pathlib.Path("bad.prototxt").write_text(NEW.replace("bottom", "botom", 1))
run("net", "upgrade", "bad.prototxt", "x.prototxt", fails="bad.prototxt:3: LayerParameter has no field 'botom'")
pathlib.Path("bad.caffemodel").write_bytes(bytes_of("w.caffemodel")[:-3])
run("net", "convert", "bad.caffemodel", "x.txt", fails="bad.caffemodel")
if r.returncode == 0:
    text = bytes_of("w.txt").decode()
    at = text.index("blobs {")
    pathlib.Path("shape.txt").write_text(text[:at] + re.sub(r"dim: \d+", "dim: 7", text[at:], count=1))
    run("net", "convert", "shape.txt", "x.h5", fails="shape.txt: parameter 0 of layer 'c' does not have the elements of its shape")

# gradients in snapshots: those by which the weights moved
pathlib.Path("solver.prototxt").write_text("net: 'train.prototxt' base_lr: 0.5 lr_policy: 'fixed' max_iter: 1 snapshot_prefix: 'w' "
                                           "snapshot_diff: true\n")
pathlib.Path("train.prototxt").write_text(pathlib.Path("train.prototxt").read_text().replace("type: \"Input\"", "type: \"DummyData\"").replace(
    "input_param {", "dummy_data_param { data_filler { value: 0.5 }"))
run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", "w.caffemodel")
run("net", "convert", "w_iter_1.caffemodel", "moved.txt")


def numbers(path, field):
    return [float(v) for v in re.findall(rf"^ +{field}: (\S+)$", pathlib.Path(path).read_text(), flags=re.M)]


before, after, diffs = numbers("w.txt", "data"), numbers("moved.txt", "data"), numbers("moved.txt", "diff")
assert len(before) == len(after) == len(diffs) > 100 and any(diffs)
assert all(abs(b - 0.5 * d - a) < 1e-6 for b, a, d in zip(before, after, diffs))
assert not numbers("w.txt", "diff")
print("files in other forms: the same")
