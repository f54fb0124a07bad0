#!/usr/bin/env python3
"""LeNet's published files, trained by the tool `dmath`.

  lenet.py bits TOOL EXAMPLES      200 iterations on 1 and on 3 workers, and stopped and resumed on 2: the same bits
  lenet.py oracle TOOL EXAMPLES    losses of 100 iterations against NumPy (f64), weights carried over by .caffemodel
  lenet.py torch TOOL EXAMPLES     the same against PyTorch (f32)
  lenet.py script TOOL EXAMPLES    examples/lenet/train.sh: with two emulated GPUs, on CPUs, with a number of workers given

--iterations N: other numbers. Works in the current folder. The data are Fashion-MNIST where Debian's package
dataset-fashion-mnist is installed, else images made here. Nothing here uses dmath's code: files are read by the formats'
definitions, and the solver's arithmetic is Caffe's, written out.
"""
import argparse
import gzip
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy as np

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
BATCH, CLASSES, RATE = 64, 10, 0.001


# ---- data
def make_images(count, seed):
    """Ten shapes of bars, moved and noisy."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count).astype(np.uint8)
    images = random.integers(0, 60, (count, 28, 28))
    for i, label in enumerate(labels):
        y, x = random.integers(0, 6, 2)
        images[i, y + 2 * label % 18:y + 2 * label % 18 + 4, x:x + 20] += 150
        images[i, y:y + 20, x + label:x + label + 3] += 40
    return images.clip(0, 255).astype(np.uint8), labels


def write_idx(path, array):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())


def read_idx(path):
    data = gzip.open(path).read()
    ndim = data[3]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(struct.unpack(f">{ndim}I", data[4:4 + 4 * ndim]))


def prepare(tool, examples):
    """Databases, and the published files with their sources and the lines of `changes`; returns images and labels."""
    files = [FASHION / f"{part}-{kind}.gz" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    if not all(f.exists() for f in files):
        files = [pathlib.Path(f"{part}-{kind}.gz") for part in ("train", "test") for kind in ("images", "labels")]
        for k, count in ((0, 12800), (1, 500)):
            images, labels = make_images(count, k)
            write_idx(files[2 * k], images)
            write_idx(files[2 * k + 1], labels)
    for k, name in ((0, "train_lmdb"), (1, "test_lmdb")):
        shutil.rmtree(name, ignore_errors=True)
        subprocess.run([tool, "data", "convert", files[2 * k], files[2 * k + 1], name], check=True, stdout=subprocess.DEVNULL)
    net = (pathlib.Path(examples) / "lenet/lenet_train_test.prototxt").read_text()
    pathlib.Path("net.prototxt").write_text(re.sub(r'"examples/mnist/mnist_(\w+)"', r'"\1"', net))
    return read_idx(files[0]), read_idx(files[1])


def write_solver(examples, **changes):
    text = (pathlib.Path(examples) / "lenet/lenet_solver.prototxt").read_text()
    for key, value in {"net": '"net.prototxt"', "snapshot_prefix": '"lenet"', **changes}.items():
        text, n = re.subn(rf"^{key}: \S+", f"{key}: {value}", text, flags=re.M)
        assert n == 1, key
    pathlib.Path("solver.prototxt").write_text(text)


def train(tool, workers, *more):
    run = subprocess.run([tool, "train", "--solver", "solver.prototxt", "-w", str(workers), *more], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"dmath train: {run.returncode}\n{run.stdout[-2000:]}{run.stderr}")
    return run.stdout


def losses_of(log):
    return [float(x) for x in re.findall(r"^Iteration \d+ \(.*\), loss = (\S+)$", log, flags=re.M)]


# ---- binary files
def fields(data):
    """(number, value) of each field of a message: bytes, or an integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = {0: 0, 1: 8, 2: None, 5: 4}[key & 7]
        if size == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, data[at:at + size]
        at += size


def read_weights(path):
    """{layer: [arrays]} of a .caffemodel."""
    out = {}
    for number, layer in fields(pathlib.Path(path).read_bytes()):
        if number != 100:
            continue
        name, blobs = None, []
        for n, value in fields(layer):
            if n == 1:
                name = value.decode()
            if n == 7:
                blob = dict(fields(value))
                shape = []
                for _, run in fields(blob[7]):
                    while run:  # a packed run of varints
                        count = next(i for i, b in enumerate(run) if b < 128) + 1
                        shape.append(sum((b & 127) << 7 * i for i, b in enumerate(run[:count])))
                        run = run[count:]
                blobs.append(np.frombuffer(blob[5], "<f4").reshape(shape))
        if blobs:
            out[name] = blobs
    return out


# ---- the same arithmetic in NumPy
def patches(x, k):
    n, c, h, w = x.shape
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))
    return view.transpose(0, 2, 3, 1, 4, 5).reshape(n * (h - k + 1) * (w - k + 1), c * k * k)


def conv(x, w, b):
    n, k, size = x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1
    cols = patches(x, w.shape[2])
    return (cols @ w.reshape(k, -1).T + b).reshape(n, size, size, k).transpose(0, 3, 1, 2), cols


def conv_back(d, cols, w, x_shape):
    k = w.shape[0]
    flat = d.transpose(0, 2, 3, 1).reshape(-1, k)
    back = np.pad(d, ((0, 0), (0, 0)) + ((w.shape[2] - 1,) * 2,) * 2)
    turned = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    dx = (patches(back, w.shape[2]) @ turned.reshape(w.shape[1], -1).T).reshape(x_shape[0], x_shape[2], x_shape[3], -1)
    return dx.transpose(0, 3, 1, 2), (flat.T @ cols).reshape(w.shape), flat.sum(0)


def pool(x):
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return cells.max(-1), cells.argmax(-1)


def pool_back(d, where):
    n, c, h, w = d.shape
    cells = (np.arange(4) == where[..., None]) * d[..., None]
    return cells.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


class Numpy:
    def __init__(self, weights):
        self.p = [b.astype(np.float64) for name in ("conv1", "conv2", "ip1", "ip2") for b in weights[name]]

    def step(self, x, y):
        w1, b1, w2, b2, w3, b3, w4, b4 = self.p
        c1, cols1 = conv(x, w1, b1)
        p1, at1 = pool(c1)
        c2, cols2 = conv(p1, w2, b2)
        p2, at2 = pool(c2)
        flat = p2.reshape(len(x), -1)
        h = flat @ w3.T + b3
        r = np.maximum(h, 0)
        s = r @ w4.T + b4
        e = np.exp(s - s.max(1, keepdims=True))
        prob = e / e.sum(1, keepdims=True)
        loss = -np.log(prob[np.arange(len(y)), y]).mean()
        d = (prob - np.eye(CLASSES)[y]) / len(y)
        g4, gb4 = d.T @ r, d.sum(0)
        d = (d @ w4) * (h > 0)
        g3, gb3 = d.T @ flat, d.sum(0)
        d = pool_back((d @ w3).reshape(p2.shape), at2)
        d, g2, gb2 = conv_back(d, cols2, w2, p1.shape)
        _, g1, gb1 = conv_back(pool_back(d, at1), cols1, w1, x.shape)
        return loss, [g1, gb1, g2, gb2, g3, gb3, g4, gb4]


class Torch:
    def __init__(self, weights):
        import torch
        self.torch = torch
        self.t = [torch.tensor(b, requires_grad=True) for name in ("conv1", "conv2", "ip1", "ip2") for b in weights[name]]
        self.p = [t.data.numpy() for t in self.t]

    def step(self, x, y):
        f, (w1, b1, w2, b2, w3, b3, w4, b4) = self.torch.nn.functional, self.t
        x = f.max_pool2d(f.conv2d(self.torch.tensor(x.astype(np.float32)), w1, b1), 2)
        x = f.max_pool2d(f.conv2d(x, w2, b2), 2).flatten(1)
        loss = f.cross_entropy(f.linear(f.linear(x, w3, b3).relu(), w4, b4), self.torch.tensor(y.astype(np.int64)))
        return loss.item(), [g.numpy() for g in self.torch.autograd.grad(loss, self.t)]


def compare(tool, examples, model, iterations):
    images, labels = prepare(tool, examples)
    # At the published rate, 0.01, f32 itself drifts: PyTorch's losses are 1e-3 off f64's after 30 iterations.
    write_solver(examples, snapshot=0, display=1, test_interval=10000000, base_lr=RATE)
    train(tool, 2, "--max-iter", "0")
    net = model(read_weights("lenet_iter_0.caffemodel"))
    history = [np.zeros_like(p) for p in net.p]
    found = losses_of(train(tool, 3, "--max-iter", str(iterations)))
    assert len(found) == iterations, len(found)
    worst = 0
    for it in range(iterations):
        pick = np.arange(it * BATCH, (it + 1) * BATCH) % len(labels)
        loss, grads = net.step(images[pick][:, None] * 0.00390625, labels[pick])
        rate = RATE * (1 + 0.0001 * it) ** -0.75
        for i, (p, h, g) in enumerate(zip(net.p, history, grads)):  # the biases' lr_mult is 2
            h[:] = 0.9 * h + rate * (1 + i % 2) * (g + 0.0005 * p)
            p -= h
        worst = max(worst, abs(loss - found[it]))
        if not worst <= 1e-4:
            sys.exit(f"iteration {it}: loss {found[it]}, expected {loss}")
    ours = read_weights(f"lenet_iter_{iterations}.caffemodel")
    apart = max(np.abs(a - b).max() for a, b in zip(net.p, [b for n in ("conv1", "conv2", "ip1", "ip2") for b in ours[n]]))
    print(f"{iterations} iterations on 3 workers: losses {found[0]:.5f} to {found[-1]:.5f}, at most {worst:.2g} apart, weights {apart:.2g}")
    if apart > 1e-3:
        sys.exit("the weights differ")


def bits(tool, examples, iterations):
    prepare(tool, examples)
    half = iterations // 2
    write_solver(examples, display=1, snapshot=half, test_iter=2, test_interval=max(half - 10, 7))

    def result():
        return [pathlib.Path(f"lenet_iter_{iterations}.{kind}").read_bytes() for kind in ("caffemodel", "solverstate")]

    def said(log):
        return [re.sub(r" \(.*iters\)", "", line) for line in log.splitlines() if not line.startswith("Training on")]

    one = said(train(tool, 1, "--max-iter", str(iterations))), result()
    other = said(train(tool, 3, "--max-iter", str(iterations))), result()
    if one != other:
        different = [f"{a}\n{b}" for a, b in zip(one[0], other[0]) if a != b]
        sys.exit("1 and 3 workers differ:\n" + "\n".join(different[:4] or ["weights"]))
    train(tool, 2, "--max-iter", str(iterations), "--snapshot", f"lenet_iter_{half}.solverstate")
    if result() != one[1]:
        sys.exit(f"resumed at iteration {half} on 2 workers: other weights")
    last = float(one[0][-2].split()[-1])
    print(f"{iterations} iterations on 1 and 3 workers, resumed on 2: the same bits; last loss {last}")
    if iterations >= 100 and not last < 1.5:
        sys.exit("it has not learned")


def script(tool, examples, iterations):
    data = pathlib.Path("data")
    data.mkdir(exist_ok=True)
    for part, count in (("train", 640), ("t10k", 100)):
        images, labels = make_images(count, count)
        write_idx(data / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(data / f"{part}-labels-idx1-ubyte.gz", labels)
    plain = {name: value for name, value in os.environ.items() if name not in ("DMATH_WORKERS", "DMATH_DEVICE")}
    plain |= {"TOOL": str(pathlib.Path(tool).resolve()), "DATA": str(data.resolve())}
    command = [pathlib.Path(examples) / "lenet/train.sh", "--max-iter", str(iterations)]
    gpus = {"DMATH_DEVICE": "emulated", "DMATH_EMULATED_GPUS": "2", "DMATH_LOG": "info"}
    for settings, options, workers in ((gpus, [], 2), (gpus, ["-O", "program_device=off"], 2), (gpus | {"DMATH_PROGRAM_DEVICE": "off"}, [], 2),
                                       ({"DMATH_DEVICE": "cpu"}, [], 4), ({"DMATH_DEVICE": "cpu"}, ["-w", "1"], 1),
                                       ({"DMATH_DEVICE": "cpu", "DMATH_WORKERS": "3"}, [], 3)):
        done = subprocess.run(command + options, env=plain | settings, capture_output=True, text=True)
        said = re.findall(r"Training on (\d+) worker", done.stdout + done.stderr)
        if done.returncode != 0 or said != [str(workers)] or "Optimization Done" not in done.stdout + done.stderr:
            sys.exit(f"{settings} {options}: status {done.returncode}, workers {said}, not {workers}\n{done.stdout}{done.stderr}")
        alone, may = "on the devices alone: yes" in done.stderr, settings == gpus and not options
        if alone != may:
            sys.exit(f"{settings} {options}: the step runs on the devices alone: {alone}\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bits", "oracle", "torch", "script"])
    parser.add_argument("tool")
    parser.add_argument("examples")
    parser.add_argument("--iterations", type=int)
    a = parser.parse_args()
    if a.what == "bits":
        bits(a.tool, a.examples, a.iterations or 200)
    elif a.what == "script":
        script(a.tool, a.examples, a.iterations or 2)
    else:
        compare(a.tool, a.examples, Numpy if a.what == "oracle" else Torch, a.iterations or 100)


if __name__ == "__main__":
    main()
