#!/usr/bin/env python3
"""Caffe's own nets beside PyTorch: `dmath train` and a twin begin with the same weights, and so must go through the same losses.

  twins.py TOOL CAFFE [bvlc_alexnet,bvlc_googlenet] [--batch 4] [--iterations 100] [--workers 3] [--rate R] [--scale S] [--side N]
           [--again THREADS] [--disturb]

CAFFE: a checkout of github.com/BVLC/caffe, or its bare repository. A net's train_val.prototxt is used as it is but for its data (an
LMDB of images made here, in the size that the net crops to, without crops and mirrors) and the ratio of its dropouts, which is 0: what a
dropout takes is random. The twin reads the same file by a parser of its own, and its first weights from our .caffemodel. Losses
must be within 1e-4 in each iteration, and weights behind the last are compared. With the solvers' own rates and such small batches losses
jump, and the difference of the first step, a few units in the last place, soon grows: ask for lower rates. Whether that is so, a second
twin tells: --again trains it with another number of threads, and so in another order of sums; --disturb from weights that are each one unit
in the last place larger or smaller. Losses of the two twins are then compared as well. By hand: minutes to half an hour. Works in the
current folder.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from caffe_nets import blocks, files_of  # noqa: E402
from images import png  # noqa: E402
from lenet import read_weights  # noqa: E402
from peers import run  # noqa: E402

F = torch.nn.functional
IMAGES, CLASSES = 32, 10


# ---- prototxt
def parse(text):
    """A message as {field: [values]}; values are messages, words or numbers."""
    words = re.findall(r'"[^"]*"|[{}:]|[^\s{}:]+', re.sub(r"#.*", "", text))

    def message(at):
        fields = {}
        while at < len(words) and words[at] != "}":
            name, at = words[at], at + 1
            at += words[at] == ":"
            if words[at] == "{":
                value, at = message(at + 1)
            else:
                value = words[at].strip('"')
                value = float(value) if re.fullmatch(r"[-+.\d][-+.\deE]*", value) else value
            fields.setdefault(name, []).append(value)
            at += 1
        return fields, at

    return message(0)[0]


def one(fields, name, otherwise=None):
    return fields.get(name, [otherwise])[0]


# ---- the twin
class Twin:
    def __init__(self, text, weights):
        self.layers = [x for x in parse(text)["layer"] if one(one(x, "include", {}), "phase", "TRAIN") == "TRAIN"]
        self.layers = [x for x in self.layers if one(x, "type") not in ("Data", "Accuracy")]
        self.params, self.rates = {}, []
        for x in self.layers:
            name, mults = one(x, "name"), x.get("param", [])
            if name in weights:
                self.params[name] = [torch.tensor(b, requires_grad=True) for b in weights[name]]
                mults = mults + [{}] * (len(self.params[name]) - len(mults))
                self.rates += [(one(m, "lr_mult", 1.0), one(m, "decay_mult", 1.0)) for m in mults]
        self.all = [p for blobs in self.params.values() for p in blobs]
        self.history = [torch.zeros_like(p) for p in self.all]

    def forward(self, data, label):
        blobs, loss = {"data": data, "label": label}, 0
        for x in self.layers:
            kind, bottoms, p = one(x, "type"), [blobs[b] for b in x["bottom"]], self.params.get(one(x, "name"))
            own = {k: v for f in x if f.endswith("_param") for k, v in x[f][0].items()}
            y = bottoms[0]
            if kind == "Convolution":
                y = F.conv2d(y, p[0], p[1], int(one(own, "stride", 1)), int(one(own, "pad", 0)), 1, int(one(own, "group", 1)))
            elif kind == "InnerProduct":
                y = F.linear(y.flatten(1), p[0], p[1])
            elif kind == "ReLU":
                y = y.relu()
            elif kind == "LRN":
                y = F.local_response_norm(y, int(own["local_size"][0]), own["alpha"][0], own["beta"][0], 1)
            elif kind == "Pooling":
                size = [int(one(own, "kernel_size")), int(one(own, "stride", 1)), int(one(own, "pad", 0))]
                y = {"MAX": F.max_pool2d, "AVE": F.avg_pool2d}[own["pool"][0]](y, *size, ceil_mode=True)
            elif kind == "Concat":
                y = torch.cat(bottoms, 1)
            elif kind == "SoftmaxWithLoss":
                loss = loss + one(x, "loss_weight", 1.0) * F.cross_entropy(y, bottoms[1])
            else:
                assert kind == "Dropout", kind
            blobs[x["top"][0]] = y
        return loss

    def step(self, data, label, rate, momentum, decay):
        loss = self.forward(data, label)
        grads = torch.autograd.grad(loss, self.all)
        with torch.no_grad():
            for p, h, g, (lr_mult, decay_mult) in zip(self.all, self.history, grads, self.rates):
                h.mul_(momentum).add_(g + decay * decay_mult * p, alpha=rate * lr_mult)
                p -= h
        return loss.item()


# ---- both
def make_images(folder, size):
    """Coloured bars, a class each, with noise; blue first, as the records hold them."""
    dice = np.random.default_rng(7)
    labels = dice.integers(0, CLASSES, IMAGES)
    images = dice.integers(0, 120, (IMAGES, size, size, 3))
    folder.mkdir(exist_ok=True)
    lines, band = [], size // CLASSES
    for i, label in enumerate(labels):
        images[i, band * label:band * label + band // 2, :, label % 3] += 110
        images[i, :, band * label // 2:band * label // 2 + band, (label + 1) % 3] += 80
        (folder / f"{i}.png").write_bytes(png(images[i][:, :, ::-1], filters=False))
        lines.append(f"{folder}/{i}.png {label}\n")
    pathlib.Path("list.txt").write_text("".join(lines))
    return images.transpose(0, 3, 1, 2).astype(np.float32), labels.astype(np.int64)


def train(args, threads, text, weights, images, labels, known, trace):
    """The twin, and its losses."""
    torch.set_num_threads(threads)
    twin, losses = Twin(text, weights), []
    for it in range(args.iterations):
        pick = np.arange(it * args.batch, (it + 1) * args.batch) % IMAGES
        losses.append(twin.step(torch.tensor((images[pick] - 100) * np.float32(args.scale)), torch.tensor(labels[pick]), *known.values()))
        if trace:
            print(f"{trace}: iteration {it}: PyTorch's loss {losses[-1]:.6f}", flush=True)
    return twin, losses


def parted(a, b):
    """When two runs part."""
    first = {limit: next((str(it) for it, (x, y) in enumerate(zip(a, b)) if not abs(x - y) <= limit), "none") for limit in (1e-6, 1e-5, 1e-4, 1e-3)}
    return "; first iterations with more than " + ", ".join(f"{limit:g}: {it}" for limit, it in first.items())


def compare(args, name, files):
    text = files[f"models/{name}/train_val.prototxt"]
    solver = files[f"models/{name}/{'quick_solver' if 'googlenet' in name else 'solver'}.prototxt"]
    size = args.side or int(re.search(r"crop_size: (\d+)", text)[1])
    images, labels = make_images(pathlib.Path(f"images{size}"), size)
    shutil.rmtree("images", ignore_errors=True)
    run(args.tool, "data", "convert", "--from", "images", "list.txt", "images")
    data = (f"layer {{ name: 'data' type: 'Data' top: 'data' top: 'label' transform_param {{ mean_value: 100 scale: {args.scale} }}\n"
            f"data_param {{ source: 'images' backend: LMDB batch_size: {args.batch} }} }}\n")
    layers = [b for is_layer, b in blocks(text) if is_layer and not re.search(r'type: "(Data|Accuracy)"', b)]
    text = data + re.sub(r"dropout_ratio: [.\d]+", "dropout_ratio: 0", "\n".join(layers))
    pathlib.Path("net.prototxt").write_text(text)
    known = {k: one(parse(solver), k) for k in ("base_lr", "momentum", "weight_decay")}
    known["base_lr"] = args.rate or known["base_lr"]
    pathlib.Path("solver.prototxt").write_text("net: 'net.prototxt' lr_policy: 'fixed' display: 1 snapshot_prefix: 'twin' "
                                               f"max_iter: {args.iterations} {' '.join(f'{k}: {v}' for k, v in known.items())}\n")
    run(args.tool, "train", "--solver", "solver.prototxt", "--max-iter", 0)
    weights, begin, worst = read_weights("twin_iter_0.caffemodel"), time.monotonic(), 0
    task = (text.replace("'", '"'), weights, images, labels, known)
    with open("train.txt", "w") as lines:  # beside the twin
        training = subprocess.Popen([args.tool, "train", "--solver", "solver.prototxt", "-w", str(args.workers), "--log", "log.jsonl"],
                                    stdout=lines)
    twin, theirs = train(args, args.threads, *task, name if args.trace else "")
    assert training.wait() == 0
    told = [json.loads(line) for line in pathlib.Path("log.jsonl").read_text().splitlines()]  # losses with more digits than lines have
    ours = [e["loss"] for e in told if e["kind"] == "train"]
    for it in range(args.iterations):
        worst = max(worst, abs(theirs[it] - ours[it]))
        if args.trace:
            print(f"{name}: iteration {it}: loss {ours[it]:.6f}, PyTorch's {theirs[it]:.6f}", flush=True)
    last = read_weights(f"twin_iter_{args.iterations}.caffemodel")
    apart = max(float(np.abs(a - b.detach().numpy()).max()) for layer, blobs in twin.params.items() for a, b in zip(last[layer], blobs))
    print(f"{name}, batch {args.batch} of {size} x {size}, {known}, {args.workers} workers, PyTorch {torch.__version__}: {args.iterations} iterations, losses "
          f"{ours[0]:.5f} to {ours[args.iterations - 1]:.5f} (of PyTorch {theirs[0]:.5f} to {theirs[-1]:.5f}), at most {worst:.2g} apart; "
          f"weights at the end at most {apart:.2g} apart; {time.monotonic() - begin:.0f} s{parted(theirs, ours)}", flush=True)
    if args.again or args.disturb:
        dice = np.random.default_rng(3)
        for blobs in weights.values() if args.disturb else ():
            blobs[:] = [np.nextafter(b, np.where(dice.integers(0, 2, b.shape), np.inf, -np.inf).astype(b.dtype)) for b in blobs]
        other = train(args, args.again or args.threads, *task, "")[1]
        print(f"{name}, PyTorch beside itself ({args.threads} and {args.again or args.threads} threads{', disturbed' if args.disturb else ''}): losses at most "
              f"{max(abs(a - b) for a, b in zip(theirs, other)):.2g} apart{parted(theirs, other)}", flush=True)
    return worst <= 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("caffe", type=pathlib.Path)
    parser.add_argument("nets", nargs="?", default="bvlc_alexnet,bvlc_googlenet")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=float, help="instead of the solver's base_lr")
    parser.add_argument("--scale", type=float, default=1, help="of images, behind the mean; a power of 2")
    parser.add_argument("--side", type=int, help="of the images, instead of what the net crops to: AlexNet takes 67 and more")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch; on busy cores one is faster than two")
    parser.add_argument("--again", type=int, default=0, metavar="THREADS", help="train the twin again with so many threads")
    parser.add_argument("--disturb", action="store_true", help="train the twin again from other last places of the weights")
    parser.add_argument("--trace", action="store_true", help="print the losses of each iteration")
    args = parser.parse_args()
    files = files_of(args.caffe)
    raise SystemExit(not all([compare(args, name, files) for name in args.nets.split(",")]))


if __name__ == "__main__":
    main()
