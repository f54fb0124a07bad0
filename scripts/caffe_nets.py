#!/usr/bin/env python3
"""Caffe's own nets and solvers: each is printed back and trained on numbers made here.

  caffe_nets.py TOOL CAFFE [WORD ...]    CAFFE: a checkout of github.com/BVLC/caffe, or its bare repository; WORD: part of a path

Every .prototxt under examples/ and models/ is read by `dmath net print` and printed back to itself. Each solver's net, its data
layers replaced by DummyData of their shape with a batch of 4, is trained for 20 iterations on 1 and on 3 workers: the losses must
be equal to the last digit. Too long for CI: an hour on two cores; the ImageNet nets take most of it. Works in the current folder.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

BATCH, ITERATIONS = 4, 20
# What the data of a net are, by the place of its solver: channels, rows, columns; classes, or None for what has no labels.
DATA = [("mnist_autoencoder", (1, 28, 28), None), ("siamese", (2, 28, 28), 2), ("mnist", (1, 28, 28), 10),
        ("cifar10", (3, 32, 32), 10), ("alexnet", (3, 227, 227), 1000), ("googlenet", (3, 224, 224), 1000),
        ("flickr", (3, 227, 227), 20), ("pascal", (3, 227, 227), 21), ("caffenet", (3, 227, 227), 1000), ("hdf5", (4,), 2)]


def files_of(caffe):
    if (caffe / "examples").is_dir():
        return {str(p.relative_to(caffe)): p.read_text() for d in ("examples", "models") for p in sorted((caffe / d).rglob("*.prototxt"))}
    git = ["git", f"--git-dir={caffe}"]
    names = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD", "examples", "models"], check=True, capture_output=True, text=True)
    return {n: subprocess.run([*git, "show", f"HEAD:{n}"], check=True, capture_output=True, text=True).stdout
            for n in names.stdout.split("\n") if n.endswith(".prototxt")}


def blocks(text):
    """The text cut into top-level `layer { ... }` blocks and what lies between them."""
    at, parts = 0, []
    for m in re.finditer(r"^layers?\s*\{", text, flags=re.M):
        if m.start() < at:
            continue
        end, depth = m.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        parts += [(False, text[at:m.start()]), (True, text[m.start():end])]
        at = end
    return parts + [(False, text[at:])]


def dummy(block, shape, classes):
    """A DummyData layer in the place of a data layer: the same name, tops and rules."""
    keep = "\n".join(re.findall(r"^\s*(?:name|top):.*$|include\s*:?\s*\{[^}]*\}", block, flags=re.M))
    tops = len(re.findall(r"\btop:", block))
    dims = " ".join(f"dim: {n}" for n in (BATCH, *shape))
    label = f"shape {{ dim: {BATCH} }} data_filler {{ type: 'constant' value: 1 }}" if tops > 1 else ""
    first, second = f"shape {{ {dims} }} data_filler {{ type: 'uniform' min: 0 max: 1 }}", label
    assert tops == 1 or classes
    opener = "layers { type: DUMMY_DATA" if block.startswith("layers") else "layer { type: 'DummyData'"
    return f"{opener}\n{keep}\ndummy_data_param {{ {first}\n{second} }} }}\n"


def synthetic(net, shape, classes):
    data = re.compile(r'type:\s*"?(Data|ImageData|HDF5Data|WindowData|MemoryData|DATA)"?\s')
    return "".join(dummy(text, shape, classes) if layer and data.search(text) else text for layer, text in blocks(net))


def run(tool, *words):
    done = subprocess.run([tool, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def print_back(tool, name, text):
    kind = "SolverParameter" if re.search(r"^\s*(base_lr|train_net|net):", text, flags=re.M) else "NetParameter"
    path = pathlib.Path("printed.prototxt")
    path.write_text(text)
    first = run(tool, "net", "print", path, kind)
    if first[0] == 0:
        path.write_text(first[1])
        second = run(tool, "net", "print", path, kind)
        if second[:2] == first[:2]:
            return True
        first = second
    print(f"{name}: printed back: {first[2].strip() or 'differs'}")
    return False


def inside(solver):
    """The net that stands in a solver, and the solver without it; None if there is none."""
    start = re.search(r"^net_param\s*\{", solver, flags=re.M)
    if not start:
        return None, solver
    end, depth = start.end(), 1
    while depth:
        depth += {"{": 1, "}": -1}.get(solver[end], 0)
        end += 1
    return textwrap.dedent(solver[start.end():end - 1]), solver[:start.start()] + solver[end:]


def train(tool, name, solver, files):
    text, solver = inside(solver)
    net = re.search(r'^\s*(?:net|train_net):\s*"([^"]+)"', solver, flags=re.M)
    text = text or (files.get(net[1]) if net else None)
    if not text:
        print(f"{name}: its net {net and net[1]} is not published: not trained")
        return True
    shape, classes = next(((s, c) for word, s, c in DATA if word in name), (None, None))
    pathlib.Path("net.prototxt").write_text(synthetic(text, shape, classes))
    mine = re.sub(r"^\s*(net|train_net|test_net|test_state|test_iter|test_interval|test_initialization|snapshot\w*|display|max_iter|"
                  r"average_loss|random_seed|weights)\s*:.*$", "", solver, flags=re.M)
    pathlib.Path("solver.prototxt").write_text(f"{mine}\nnet: 'net.prototxt'\ndisplay: 1\nmax_iter: {ITERATIONS}\n"
                                               "snapshot_after_train: false\n")
    losses = []
    for workers in (1, 3):
        rc, out, err = run(tool, "train", "--solver", "solver.prototxt", "-w", workers)
        if rc != 0:
            print(f"{name}: {workers} workers: {err.strip()}")
            return False
        losses.append(re.findall(r", loss = (\S+)$", out, flags=re.M))
    good = losses[0] == losses[1] and len(losses[0]) >= ITERATIONS
    print(f"{name}: {len(losses[0])} losses, {losses[0][0]} to {losses[0][-1]}: {'equal' if good else 'NOT EQUAL'}", flush=True)
    return good


def main():
    tool, caffe, words = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    files = files_of(caffe)
    chosen = [n for n in files if not words or any(w in n for w in words)]
    failed = [n for n in chosen if not print_back(tool, n, files[n])]
    solvers = [n for n in chosen if re.search(r"^\s*base_lr:", files[n], flags=re.M)]
    failed += [n for n in solvers if not train(tool, n, files[n], files)]
    print(f"{len(chosen)} files printed back, {len(solvers)} solvers; failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
