#!/usr/bin/env python3
"""`dmath net convert`, `upgrade` and `draw`: files in other forms mean the same, and what makes no sense is refused. Lists of
weights, level and stages of a training's state, and lines of JSON.

  files.py TOOL

Works in the current folder.
"""
import json
import pathlib
import re
import struct
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
    # what the net lacks is said of both, names with strokes too
    other = pathlib.Path("train.prototxt").read_text()
    pathlib.Path("stroke.prototxt").write_text(other.replace('name: "c"', 'name: "in/c"'))
    pathlib.Path("solver_stroke.prototxt").write_text(pathlib.Path("solver.prototxt").read_text().replace("train.prototxt", "stroke.prototxt").replace("'w'", "'stroke'"))
    run("train", "--solver", "solver_stroke.prototxt", "-w", "1")
    run("net", "convert", "stroke_iter_0.caffemodel", "stroke.h5")
    for weights in ("stroke_iter_0.caffemodel", "stroke.h5"):
        said = [line for line in run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", weights).splitlines() if line.startswith("Ignoring")]
        assert said == ["Ignoring source layer in/c"], (weights, said)
    # from HDF5: the weights that went there, by the names of layers
    for name, layers in (("w", ["c", "ip"]), ("stroke", ["in/c", "ip"])):
        run("net", "convert", f"{name}.h5", f"{name}_back.caffemodel")
        run("net", "convert", f"{name}_back.caffemodel", f"{name}_back.txt")
        run("net", "convert", f"{name}_iter_0.caffemodel", f"{name}_whole.txt")
        found, whole = (pathlib.Path(f"{name}_{of}.txt").read_text() for of in ("back", "whole"))
        assert re.findall(r'^  name: "(.*)"$', found, re.M) == layers, found
        for field in ("dim", "data"):
            assert re.findall(rf"^ +{field}: (\S+)$", found, re.M) == re.findall(rf"^ +{field}: (\S+)$", whole[whole.index("blobs {"):], re.M), field
        run("net", "convert", f"{name}_back.txt", f"{name}_again.h5")
        run("net", "convert", f"{name}_again.h5", f"{name}_again.caffemodel")
        assert bytes_of(f"{name}_again.caffemodel") == bytes_of(f"{name}_back.caffemodel"), name
    run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", "w_back.caffemodel")
    assert bytes_of("w_iter_0.caffemodel") == bytes_of("w.caffemodel"), "weights through HDF5: other bytes"
    run("net", "draw", "w.h5", fails="w.h5: HDF5 files hold no nets")
    pathlib.Path("bad.h5").write_bytes(bytes_of("w.h5")[:700])
    run("net", "convert", "bad.h5", "x.caffemodel", fails="bad.h5")
    # a layer of the file has all parameters of the net's layer, and no others, in both forms
    text = bytes_of("w.txt").decode()
    at = text.index("  blobs {", text.index("  blobs {") + 1)  # the bias of 'c'
    bias = text[at:text.index("\n  }\n", at) + 5]
    for change, found in ((text.replace(bias, "", 1), "fewer"), (text.replace(bias, bias + bias, 1), "more")):
        pathlib.Path("other.txt").write_text(change)
        for to in ("other.caffemodel", "other.h5"):
            run("net", "convert", "other.txt", to)
            said = f"layer 'c' has {'1' if found == 'fewer' else '3'} parameters in the file, 2 in the net" if to.endswith("model") else \
                f"other.h5: layer 'c' has {found} parameters in the file than the 2 in the net"
            run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", to, fails=said)
    # doubles, as nets of doubles have them
    pathlib.Path("doubles.txt").write_text(text.replace("    data: ", "    double_data: "))
    for to in ("doubles.caffemodel", "doubles.h5"):
        run("net", "convert", "doubles.txt", to)
        run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", to)
        assert bytes_of("w_iter_0.caffemodel") == bytes_of("w.caffemodel"), to
    # a parameter without dims, as a PReLU for all channels has
    pathlib.Path("scalar.prototxt").write_text("layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [2, 3] } data_filler { value: -4 } } }\n"
                                               "layer { name: 'p' type: 'PReLU' bottom: 'x' top: 'y' prelu_param { channel_shared: true } }\n")
    pathlib.Path("scalar.txt").write_text("layer { name: 'p' type: 'PReLU' blobs { shape { } data: 0.5 } }\n")
    run("net", "convert", "scalar.txt", "scalar.h5")
    out = run("test", "-m", "scalar.prototxt", "-W", "scalar.h5", "-n", "1")
    assert out.count("y = -2\n") == 12, out

pathlib.Path("empty.caffemodel").write_bytes(b"")
run("train", "--solver", "solver.prototxt", "-w", "1", "--weights", "empty.caffemodel", fails="empty.caffemodel: has no layers: it holds no weights")

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
if r.returncode == 0:
    for step in (("w_iter_1.caffemodel", "moved.h5"), ("moved.h5", "moved_back.txt")):
        run("net", "convert", *step)
    assert numbers("moved_back.txt", "diff") == diffs and numbers("moved_back.txt", "data") == after
    # a layer that shares weights and has a bias of its own: HDF5 files have the bias alone
    tied = pathlib.Path("train.prototxt").read_text().replace('name: "ip"', 'name: "ip" param { name: "w" }') + (
        "layer { name: 'tied' type: 'InnerProduct' bottom: 'c' top: 'z' param { name: 'w' } inner_product_param { num_output: 3 } }\n")
    pathlib.Path("tied.prototxt").write_text(tied)
    pathlib.Path("tied_solver.prototxt").write_text("net: 'tied.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: 'tied' snapshot_format: HDF5\n")
    run("train", "--solver", "tied_solver.prototxt", "-w", "1")
    run("net", "convert", "tied_iter_0.caffemodel.h5", "x.caffemodel", fails="layer 'tied' has parameter 1 and not 0, which it shares")
    run("net", "convert", "tied_iter_0.solverstate.h5", "x.caffemodel", fails="has no group 'data': it holds no weights")

# settings of solvers: the old field becomes the new one, which trains the same
for old, new in (("SGD", "SGD"), ("NESTEROV", "Nesterov"), ("ADAGRAD", "AdaGrad"), ("RMSPROP", "RMSProp"), ("ADADELTA", "AdaDelta"), ("ADAM", "Adam")):
    extra = {"ADAGRAD": "", "RMSPROP": "rms_decay: 0.5"}.get(old, "momentum: 0.75")
    body = f"base_lr: 0.5 {extra} train_state {{ stage: 'layer' }} lr_policy: 'fixed' net: 'train.prototxt' max_iter: 1 snapshot_prefix: 'old'\n"
    pathlib.Path("old_solver.prototxt").write_text(f"debug_info: false solver_type: {old} " + body)
    run("net", "upgrade", "old_solver.prototxt", "new_solver.prototxt")
    text = bytes_of("new_solver.prototxt").decode()
    assert "solver_type" not in text and f'type: "{new}"\n' in text and 'stage: "layer"' in text and "base_lr: 0.5\n" in text, text
    weights = []
    for solver in ("old_solver.prototxt", "new_solver.prototxt"):
        run("train", "--solver", solver, "-w", "1")
        weights.append(bytes_of("old_iter_1.caffemodel"))
    assert weights[0] == weights[1], old
    run("net", "upgrade", "new_solver.prototxt", "same.prototxt")
    assert bytes_of("same.prototxt") == bytes_of("new_solver.prototxt")
pathlib.Path("both.prototxt").write_text("net: 'x'\ntype: 'SGD'\nsolver_type: ADAM\n")
run("net", "upgrade", "both.prototxt", "x.prototxt", fails="both.prototxt:3: only one of type and solver_type may be there")
run("train", "--solver", "both.prototxt", "-w", "1", fails="both.prototxt:3: only one of type and solver_type may be there")
pathlib.Path("wrong.prototxt").write_text("base_lr: 1\nbase_rl: 2\n")
run("net", "upgrade", "wrong.prototxt", "x.prototxt", fails="wrong.prototxt:2: SolverParameter has no field 'base_rl'")
run("net", "convert", "new_solver.prototxt", "x.caffemodel", fails="new_solver.prototxt: a solver's settings are written as text")
run("net", "draw", "new_solver.prototxt", fails="new_solver.prototxt: holds a solver's settings, not a net")

# weights of several files: each layer's are those of the last file that has them
binary = {}
for name, drop, seed in (("one", "ip", 3), ("two", "c", 4)):
    net = pathlib.Path("train.prototxt").read_text().replace(f'name: "{drop}"', f'name: "other_{drop}"')
    pathlib.Path(f"{name}.prototxt").write_text(net)
    pathlib.Path("part.prototxt").write_text(f"net: '{name}.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: '{name}' random_seed: {seed}\n")
    run("train", "--solver", "part.prototxt", "-w", "1")
    run("net", "convert", f"{name}_iter_0.caffemodel", f"{name}.txt")


def blobs_of(path):
    """The numbers of each layer of a file of weights."""
    return {m[1]: numbers_of(m[0]) for m in re.finditer(r'^layer \{\n  name: "(\w+)".*?^\}', pathlib.Path(path).read_text(), re.M | re.S)}


def numbers_of(text):
    return re.findall(r"^ +data: (\S+)$", text, flags=re.M)


nothing = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: 'all' net: 'train.prototxt'\n"
for way in ("option", "field"):
    pathlib.Path("all.prototxt").write_text(nothing + ("weights: 'one_iter_0.caffemodel, two_iter_0.caffemodel'\n" if way == "field" else ""))
    option = ["--weights", "one_iter_0.caffemodel,two_iter_0.caffemodel"] if way == "option" else []
    out = run("train", "--solver", "all.prototxt", "-w", "1", *option)
    assert "Finetuning from one_iter_0.caffemodel\n" in out and "Finetuning from two_iter_0.caffemodel\n" in out, out
    run("net", "convert", "all_iter_0.caffemodel", "all.txt")
    got, one, two = blobs_of("all.txt"), blobs_of("one.txt"), blobs_of("two.txt")
    assert len(got["c"]) > 100 and got["c"] == one["c"] != two["other_c"] and got["ip"] == two["ip"] != one["other_ip"], way

# a layer that the test net alone has begins with the weights of the file too
head = "layer {{ name: 'head' type: 'InnerProduct' bottom: 'y' top: 'head' {} }} layer {{ name: 'end' type: 'Reduction' bottom: 'head' top: 'sum' include {{ phase: TEST }} }}\n"
plain = pathlib.Path("train.prototxt").read_text()
pathlib.Path("whole.prototxt").write_text(plain + head.format("inner_product_param { num_output: 1 bias_filler { value: 42 } }"))
pathlib.Path("part.prototxt").write_text("net: 'whole.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 snapshot_prefix: 'whole'\n")
run("train", "--solver", "part.prototxt", "-w", "1")
pathlib.Path("headed.prototxt").write_text(plain + head.format("include { phase: TEST } inner_product_param { num_output: 1 }"))
pathlib.Path("part.prototxt").write_text("net: 'headed.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 0 test_iter: 1 test_interval: 1\n")
sums = [float(run("train", "--solver", "part.prototxt", "-w", "1", *option).split("sum = ")[1].split()[0])
        for option in ([], ["--weights", "whole_iter_0.caffemodel"])]
assert sums == [0, 2 * 42], sums

pathlib.Path("all.prototxt").write_text(nothing)
run("train", "--solver", "all.prototxt", "-w", "1", "--weights", "one_iter_0.caffemodel,", fails="is not a list of files with commas")
for wrong in (" ,b", "", "one_iter_0.caffemodel,"):
    pathlib.Path("all.prototxt").write_text(nothing + f"weights: '{wrong}'\n")
    run("train", "--solver", "all.prototxt", "-w", "1", fails="all.prototxt:2: weights takes files with commas between them")

# level and stages: those of the file, unless options say more
staged = pathlib.Path("train.prototxt").read_text() + "".join(
    f"layer {{ name: '{n}' type: 'ReLU' bottom: 'c' top: '{n}' include {{ {rule} }} }} layer {{ name: 's{n}' type: 'Silence' bottom: '{n}' include {{ {rule} }} }}\n"
    for n, rule in (("red", "stage: 'red'"), ("blue", "stage: 'blue'"), ("high", "min_level: 2"), ("low", "max_level: 1")))
pathlib.Path("staged.prototxt").write_text(staged)
for state, options, expected in (("", [], {"low"}), ("", ["--stage", "red"], {"red", "low"}), ("", ["--stage", "red,blue", "--level", "2"], {"red", "blue", "high"}),
                                 ("train_state { level: 3 stage: 'blue' }", [], {"blue", "high"}),
                                 ("train_state { level: 3 stage: 'blue' }", ["--level", "0"], {"blue", "low"}),
                                 ("train_state { level: 3 stage: 'blue' }", ["--stage", "red"], {"red", "blue", "high"})):
    pathlib.Path("staged_solver.prototxt").write_text(f"net: 'staged.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 snapshot_prefix: 's' {state}\n")
    table = run("train", "--solver", "staged_solver.prototxt", "-w", "1", "--explain", *options)
    assert set(re.findall(r"^(red|blue|high|low) ", table, re.M)) == expected, (state, options, table)
for command, phase in (("test", "TEST"), ("time", "TRAIN")):
    table = run(command, "--model", "staged.prototxt", "-w", "1", "-n", "1", "--stage", "blue", "--level", "2", "--json", "--weights",
                "one_iter_0.caffemodel,two_iter_0.caffemodel")
    rows = [json.loads(line) for line in table.splitlines()]
    if command == "time":
        assert [r["layer"] for r in rows if r["type"] == "ReLU"] == (["blue", "high"]), rows
        assert all(r["forward_ms"] >= 0 and r["backward_ms"] >= 0 and r["passes"] == 1 for r in rows)
    else:
        means = {r["output"]: r["value"] for r in rows if r["kind"] == "mean"}
        assert "loss" in means and means["loss of the net"] == means["loss"] == [r["value"] for r in rows if r["kind"] == "batch" and r["output"] == "loss"][0], rows

# extract has a state too
staged_in = "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [1, 1, 2, 2] } } }\n" + "".join(
    f"layer {{ name: '{n}' type: 'Power' bottom: 'x' top: '{n}' power_param {{ shift: {k} }} include {{ {rule} }} }}\n"
    for k, (n, rule) in enumerate((("red", "stage: 'red'"), ("high", "min_level: 2"), ("train", "phase: TRAIN"), ("test", "phase: TEST"))))
pathlib.Path("staged_in.prototxt").write_text(staged_in)
for options, expected in (([], {"test": 3}), (["--stage", "red"], {"test": 3, "red": 0}), (["--level", "2", "--phase", "TRAIN"], {"high": 1, "train": 2})):
    for n in ("red", "high", "train", "test"):
        pathlib.Path(f"state_{n}.npy").unlink(missing_ok=True)
        r = subprocess.run([TOOL, "extract", "-m", "staged_in.prototxt", "-b", n, "-o", "state_", "-w", "1", *options], capture_output=True, text=True)
        assert (r.returncode == 0) == (n in expected), (options, n, r.stderr)
        if n in expected:
            assert struct.unpack("<4f", pathlib.Path(f"state_{n}.npy").read_bytes()[-16:]) == (expected[n],) * 4, (options, n)

# lines of JSON of a training: those of --log; and commands that have none say so
r = subprocess.run([TOOL, "train", "--solver", "solver.prototxt", "-w", "1", "--json", "--log", "log.jsonl"], capture_output=True, text=True)
assert r.returncode == 0 and r.stdout == pathlib.Path("log.jsonl").read_text() and "Optimization Done." in r.stderr, (r.stdout, r.stderr)
assert json.loads(r.stdout.splitlines()[-1])["kind"] == "end"
for words in (["net", "show", "-m", "train.prototxt"], ["extract", "-m", "train.prototxt", "-b", "c"], ["train", "-s", "solver.prototxt", "--explain"]):
    r = subprocess.run([TOOL, *words, "-w", "1", "--json"], capture_output=True, text=True)
    assert r.returncode == 2 and "--json" in r.stderr and "JSON" in r.stderr and not r.stdout, (words, r.stderr)
print("files in other forms: the same")
