#!/usr/bin/env python3
"""Steps of training of LeNet, Caffe's CIFAR-10 quick and AlexNet on CPU cores: `dmath train` beside PyTorch.

    torch_cpu_nets.py TOOL [--nets lenet,quick,alexnet] [--threads 2] [--rounds 5] [--processor] [--torch-only | --dmath-only]

Both sides train the same net (f32, SGD with momentum and weight decay) on one made-up batch, in turns in one run: a round is some
steps of PyTorch in both memory formats, then some of `dmath train` with and without slices. Printed are medians over the rounds, in
milliseconds a step, and the factor of the best of each side. Both sides use as many threads as --threads says. --processor: the
processors' time of a step, not the time that passes: for cores that other programs use, with --threads 1, for threads that wait
for one another use their cores. Of dmath it is what a run of three times the steps takes more than one of them.
"""
import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

RELU, POOL = ("relu",), ("max", 3, 2)
# Layers: conv outputs, kernel, stride, pad, groups; max or ave pooling: kernel, stride; fc outputs; lrn; relu; drop.
NETS = {
    "lenet": (64, (1, 28, 28), 300, [("conv", 20, 5, 1, 0, 1), ("max", 2, 2), ("conv", 50, 5, 1, 0, 1), ("max", 2, 2), ("fc", 500), RELU,
                                     ("fc", 10)]),
    "quick": (100, (3, 32, 32), 40, [("conv", 32, 5, 1, 2, 1), POOL, RELU, ("conv", 32, 5, 1, 2, 1), RELU, ("ave", 3, 2),
                                     ("conv", 64, 5, 1, 2, 1), RELU, ("ave", 3, 2), ("fc", 64), ("fc", 10)]),
    "alexnet": (16, (3, 227, 227), 6, [("conv", 96, 11, 4, 0, 1), RELU, ("lrn",), POOL, ("conv", 256, 5, 1, 2, 2), RELU, ("lrn",), POOL,
                                       ("conv", 384, 3, 1, 1, 1), RELU, ("conv", 384, 3, 1, 1, 2), RELU, ("conv", 256, 3, 1, 1, 2), RELU,
                                       POOL, ("fc", 4096), RELU, ("drop",), ("fc", 4096), RELU, ("drop",), ("fc", 1000)]),
}


def prototxt(batch, shape, layers):
    dims = " ".join(f"dim: {n}" for n in (batch, *shape))
    out = [f"layer {{ name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {{ shape {{ {dims} }} shape {{ dim: {batch} }} "
           "data_filler { type: 'constant' value: 0.5 } data_filler { type: 'constant' value: 7 } } }"]
    bottom = "data"
    for i, (kind, *n) in enumerate(layers):
        name = top = f"{kind}{i}"
        if kind == "conv":
            rest = f"type: 'Convolution' convolution_param {{ num_output: {n[0]} kernel_size: {n[1]} stride: {n[2]} pad: {n[3]} group: {n[4]}"
        elif kind == "fc":
            rest = f"type: 'InnerProduct' inner_product_param {{ num_output: {n[0]}"
        else:
            top = bottom if kind in ("relu", "drop") else name
            rest = {"relu": "type: 'ReLU'", "drop": "type: 'Dropout'", "lrn": "type: 'LRN' lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }",
                    "max": "type: 'Pooling' pooling_param { pool: MAX kernel_size: %s stride: %s }",
                    "ave": "type: 'Pooling' pooling_param { pool: AVE kernel_size: %s stride: %s }"}[kind]
            rest = rest % tuple(n) if n else rest
        fill = " weight_filler { type: 'gaussian' std: 0.01 } }" if kind in ("conv", "fc") else ""
        out.append(f"layer {{ name: '{name}' bottom: '{bottom}' top: '{top}' {rest}{fill} }}")
        bottom = top
    return "\n".join(out + [f"layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: '{bottom}' bottom: 'label' top: 'loss' }}\n"])


class Torch:
    def __init__(self, batch, shape, layers, last):
        import torch
        from torch import nn

        class Lrn(nn.Module):
            def forward(self, x):
                return nn.functional.local_response_norm(x, 5, 1e-4, 0.75)

        self.torch, modules, x = torch, [], torch.full((batch, *shape), 0.5)
        for kind, *n in layers:
            flat = kind == "fc" and x.dim() == 4
            modules += [nn.Flatten()] if flat else []
            width = x[0].numel() if kind == "fc" else x.shape[1]
            modules.append({"conv": lambda: nn.Conv2d(width, n[0], n[1], n[2], n[3], groups=n[4]), "fc": lambda: nn.Linear(width, n[0]),
                            "relu": lambda: nn.ReLU(inplace=True), "drop": nn.Dropout, "lrn": Lrn,
                            "max": lambda: nn.MaxPool2d(n[0], n[1], ceil_mode=True),
                            "ave": lambda: nn.AvgPool2d(n[0], n[1], ceil_mode=True)}[kind]())
            with torch.no_grad():
                for m in modules[-1 - flat:]:
                    x = m(x)
        self.net, self.x = nn.Sequential(*modules), torch.full((batch, *shape), 0.5)
        self.y = torch.full((batch,), 7)
        if last:
            self.net, self.x = self.net.to(memory_format=torch.channels_last), self.x.to(memory_format=torch.channels_last)
        self.solver = torch.optim.SGD(self.net.parameters(), 1e-4, momentum=0.9, weight_decay=5e-4)
        self.steps(2)

    def steps(self, count, processor=False):
        clock = time.process_time if processor else time.perf_counter
        begin = clock()
        for _ in range(count):
            self.solver.zero_grad(set_to_none=True)
            loss = self.torch.nn.functional.cross_entropy(self.net(self.x), self.y)
            loss.backward()
            self.solver.step()
            loss.item()
        return (clock() - begin) / count * 1e3


def ours(tool, threads, steps, slices, processor):
    path, taken = pathlib.Path("solver.prototxt"), []
    for times in (1, 3) if processor else (2,):
        path.write_text("net: 'net.prototxt' base_lr: 0.0001 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' "
                        f"snapshot_after_train: false display: {steps} max_iter: {times * steps + 1}\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        r = subprocess.run([tool, "train", "--solver", path, "-w", str(threads), "--slices", str(slices)], capture_output=True, text=True,
                           check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (taken[1] - taken[0]) / (2 * steps) * 1e3 if processor else 1e3 / float(re.findall(r"\((\S+) iter/s", r.stdout)[-1])


def measure(args, name):
    batch, shape, steps, layers = NETS[name]
    batch, steps = args.batch or batch, args.steps or steps
    pathlib.Path("net.prototxt").write_text(prototxt(batch, shape, layers))
    peers = {} if args.dmath_only else {form: Torch(batch, shape, layers, form == "channels last") for form in ("contiguous", "channels last")}
    times = {}
    for _ in range(args.rounds):
        for form, peer in peers.items():
            times.setdefault(f"PyTorch, {form}", []).append(peer.steps(steps, args.processor))
        for slices in () if args.torch_only else (0, 4):
            times.setdefault(f"dmath, {slices} slices" if slices else "dmath, no slices", []).append(ours(args.tool, args.threads, steps, slices, args.processor))
    best = {}
    for form, all_ in times.items():
        middle = statistics.median(all_)
        best[form[:5]] = min(best.get(form[:5], middle), middle)
        print(f"{name}, batch {batch}: {form}: {middle:.2f} ms a step ({min(all_):.2f} to {max(all_):.2f}), {batch / middle * 1e3:.0f} images/s",
              flush=True)
    if len(best) == 2:
        print(f"{name}, batch {batch}: PyTorch's time / dmath's: {best['PyTor'] / best['dmath']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--nets", default="lenet,quick,alexnet")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, help="instead of each net's own")
    parser.add_argument("--steps", type=int, help="of a round, instead of each net's own")
    parser.add_argument("--processor", action="store_true", help="the processors' time")
    parser.add_argument("--torch-only", action="store_true")
    parser.add_argument("--dmath-only", action="store_true")
    args = parser.parse_args()
    if not args.dmath_only:
        import torch
        torch.set_num_threads(args.threads)
        torch.manual_seed(1)
        print(f"PyTorch {torch.__version__}, {args.threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in args.nets.split(","):
            measure(args, name)


if __name__ == "__main__":
    main()
