#!/usr/bin/env python3
"""Test accuracies of LeNet and of a net like Caffe's CIFAR-10 quick on Fashion-MNIST, trained by `dmath train` and by twins in PyTorch.

    accuracy.py TOOL [--nets lenet,quick] [--seeds 10] [--iterations N] [--workers 2] [--threads 1] [--bound SECONDS] [--device cuda]

Each seed is a training of either side with first weights of its own, from the same distributions; batches, solver and learning rates
are the same. The mean accuracies over the seeds must be within two standard errors of one another. --iterations: instead of 10 000
and 4 000. --bound ends the run after the seed in which so many seconds have gone, and judges by those that are there. All ten
seeds take hours on two cores, minutes on a GPU. --device is PyTorch's; dmath takes a GPU where DMATH_DEVICE says so. Works in a temporary
folder; the images are those of Debian's package dataset-fashion-mnist, or in the folder --images.
"""
import argparse
import gzip
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch

F = torch.nn.functional


def layer(name, kind, bottom, top, rest=""):
    return f"layer {{ name: '{name}' type: '{kind}' bottom: '{bottom}' top: '{top}' {rest} }}\n"


def learned(name, kind, bottom, param, filler):
    return layer(name, kind, bottom, name, "param { lr_mult: 1 } param { lr_mult: 2 } " +
                 f"{param} weight_filler {{ {filler} }} bias_filler {{ type: 'constant' }} }}")


def conv(name, bottom, outputs, filler, rest=""):
    return learned(name, "Convolution", bottom, f"convolution_param {{ num_output: {outputs} kernel_size: 5 {rest}", filler)


def inner(name, bottom, outputs, filler):
    return learned(name, "InnerProduct", bottom, f"inner_product_param {{ num_output: {outputs}", filler)


def pool(name, bottom, kind, size):
    return layer(name, "Pooling", bottom, name, f"pooling_param {{ pool: {kind} kernel_size: {size} stride: 2 }}")


def relu(blob):
    return layer("relu_" + blob, "ReLU", blob, blob)


def gauss(std):
    return f"type: 'gaussian' std: {std}"


XAVIER = "type: 'xavier'"


class Lenet:
    batch, iterations, transform = 64, 10000, "scale: 0.00390625"
    solver = "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.0001 power: 0.75"
    decay = 0.0005
    text = (conv("conv1", "data", 20, XAVIER) + pool("pool1", "conv1", "MAX", 2) + conv("conv2", "pool1", 50, XAVIER) +
            pool("pool2", "conv2", "MAX", 2) + inner("ip1", "pool2", 500, XAVIER) + relu("ip1") + inner("ip2", "ip1", 10, XAVIER))
    last = "ip2"
    shapes = [((20, 1, 5, 5), None), ((50, 20, 5, 5), None), ((500, 800), None), ((10, 500), None)]  # None: xavier

    @staticmethod
    def images(x):
        return x * 0.00390625

    @staticmethod
    def rate(it):
        return 0.01 * (1 + 0.0001 * it)**-0.75

    @staticmethod
    def forward(t, x):
        x = F.max_pool2d(F.conv2d(x, t[0], t[1]), 2)
        x = F.max_pool2d(F.conv2d(x, t[2], t[3]), 2).flatten(1)
        return F.linear(F.linear(x, t[4], t[5]).relu(), t[6], t[7])


class Quick:
    batch, iterations, transform = 100, 4000, "mean_value: 73"
    solver = "base_lr: 0.001 momentum: 0.9 weight_decay: 0.004 lr_policy: 'fixed'"
    decay = 0.004
    text = (conv("conv1", "data", 32, gauss(0.0001), "pad: 2") + pool("pool1", "conv1", "MAX", 3) + relu("pool1") +
            conv("conv2", "pool1", 32, gauss(0.01), "pad: 2") + relu("conv2") + pool("pool2", "conv2", "AVE", 3) +
            conv("conv3", "pool2", 64, gauss(0.01), "pad: 2") + relu("conv3") + pool("pool3", "conv3", "AVE", 3) +
            inner("ip1", "pool3", 64, gauss(0.1)) + inner("ip2", "ip1", 10, gauss(0.1)))
    last = "ip2"
    shapes = [((32, 1, 5, 5), 0.0001), ((32, 32, 5, 5), 0.01), ((64, 32, 5, 5), 0.01), ((64, 576), 0.1), ((10, 64), 0.1)]

    @staticmethod
    def images(x):
        return x - 73

    @staticmethod
    def rate(_):
        return 0.001

    @staticmethod
    def forward(t, x):
        def average(x):  # 14 to 7 and 7 to 3: no window is cut
            return F.avg_pool2d(x, 3, 2, ceil_mode=True)

        x = F.max_pool2d(F.conv2d(x, t[0], t[1], padding=2), 3, 2, ceil_mode=True).relu()
        x = average(F.conv2d(x, t[2], t[3], padding=2).relu())
        x = average(F.conv2d(x, t[4], t[5], padding=2).relu())
        return F.linear(F.linear(x.flatten(1), t[6], t[7]), t[8], t[9])


NETS = {"lenet": Lenet, "quick": Quick}


def read_idx(path):
    data = gzip.open(path).read()
    ndim = data[3]
    shape = [int.from_bytes(data[4 + 4 * d:8 + 4 * d], "big") for d in range(ndim)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def ours(args, net, iterations, seed):
    data = "".join(f"layer {{ name: 'd' type: 'Data' top: 'data' top: 'label' include {{ phase: {phase} }} transform_param {{ {net.transform} }} "
                   f"data_param {{ source: '{db}' backend: LMDB batch_size: {batch} }} }}\n"
                   for phase, db, batch in (("TRAIN", "train_lmdb", net.batch), ("TEST", "test_lmdb", 100)))
    end = "".join(f"layer {{ name: '{top}' type: '{kind}' bottom: '{net.last}' bottom: 'label' top: '{top}' {rest} }}\n"
                  for top, kind, rest in (("accuracy", "Accuracy", "include { phase: TEST }"), ("loss", "SoftmaxWithLoss", "")))
    pathlib.Path("net.prototxt").write_text(data + net.text + end)
    pathlib.Path("solver.prototxt").write_text(f"net: 'net.prototxt' {net.solver} max_iter: {iterations} display: {iterations} random_seed: {seed} "
                                               f"test_iter: 100 test_interval: {iterations} test_initialization: false snapshot_after_train: false\n")
    r = subprocess.run([args.tool, "train", "--solver", "solver.prototxt", "-w", str(args.workers)], capture_output=True, text=True, check=True)
    return float(re.findall(r"accuracy = (\S+)", r.stdout)[-1])


def as_graph(step):
    """One CUDA graph of the step, which is called first with rates of zero: that changes nothing."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def peers(net, iterations, seed, data):
    torch.manual_seed(seed)
    t = []
    for shape, std in net.shapes:
        bound = (3 / np.prod(shape[1:]))**0.5
        t += [torch.empty(shape).normal_(0, std) if std else torch.empty(shape).uniform_(-bound, bound), torch.zeros(shape[0])]
    x, y, test_x, test_y = data
    t = [p.to(x.device).requires_grad_() for p in t]
    history = [torch.zeros_like(p) for p in t]
    first, rate = torch.zeros((), dtype=torch.int64, device=x.device), torch.zeros((), device=x.device)
    batch = torch.arange(net.batch, device=x.device)

    def step():
        pick = (batch + first) % len(y)
        grads = torch.autograd.grad(F.cross_entropy(net.forward(t, net.images(x[pick])), y[pick]), t)
        with torch.no_grad():
            for i, (p, h, g) in enumerate(zip(t, history, grads)):
                h.mul_(0.9).add_(rate * (1 + i % 2) * (g + net.decay * p))
                p -= h

    step = as_graph(step) if x.is_cuda else step
    for it in range(iterations):
        first.fill_(it * net.batch)
        rate.fill_(net.rate(it))
        step()
    with torch.no_grad():
        right = [(net.forward(t, net.images(a)).argmax(1) == b).float().mean().item() for a, b in zip(test_x.split(100), test_y.split(100))]
    return statistics.mean(right)


def compare(args, name, data):
    net, found, start = NETS[name], ([], []), time.monotonic()
    iterations = args.iterations or net.iterations
    for seed in range(1, args.seeds + 1):
        found[0].append(ours(args, net, iterations, seed))
        found[1].append(peers(net, iterations, seed, data))
        print(f"{name}, seed {seed}: dmath {found[0][-1]:.4f}, PyTorch {found[1][-1]:.4f}, after {time.monotonic() - start:.0f} s", flush=True)
        if seed > 1 and time.monotonic() - start > args.bound:
            break
    means, errors = [statistics.mean(f) for f in found], [statistics.stdev(f) / len(f)**0.5 for f in found]
    limit = 2 * (errors[0]**2 + errors[1]**2)**0.5
    good = abs(means[0] - means[1]) <= limit
    print(f"{name}: {len(found[0])} seeds, {iterations} iterations: dmath {means[0]:.4f} +- {errors[0]:.4f}, PyTorch {means[1]:.4f} +- "
          f"{errors[1]:.4f}: {abs(means[0] - means[1]):.4f} apart, {'within' if good else 'MORE THAN'} two standard errors ({limit:.4f})", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--nets", default="lenet,quick")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch; on busy cores one is faster than two")
    parser.add_argument("--bound", type=float, default=float("inf"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=lambda p: pathlib.Path(p).resolve(), default="/usr/share/datasets/fashion-mnist")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        data = []
        for part in ("train", "t10k"):
            files = [args.images / f"{part}-{kind}.gz" for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
            subprocess.run([args.tool, "data", "convert", *files, "train_lmdb" if part == "train" else "test_lmdb"], check=True,
                           stdout=subprocess.DEVNULL)
            data += [torch.tensor(read_idx(files[0])[:, None].astype(np.float32), device=args.device),
                     torch.tensor(read_idx(files[1]).astype(np.int64), device=args.device)]
        good = [compare(args, name, data) for name in args.nets.split(",")]
    raise SystemExit(not all(good))


if __name__ == "__main__":
    main()
