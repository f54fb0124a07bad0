"""Steps of training of Caffe's AlexNet in PyTorch, images a second: bf16 by autocast, channels last, fused SGD, the step in one
CUDA graph; plain and through torch.compile, with LRN as average pooling of squares, which it fuses.

    torch_nets.py [--batch 256] [--steps 50] [--plain]
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F


class Lrn(nn.Module):
    def forward(self, x):
        square = F.pad((x * x).unsqueeze(1), (0, 0, 0, 0, 2, 2))
        window = sum(square[:, :, i:i + x.shape[1]] for i in range(5)).squeeze(1)
        return x * (1 + 1e-4 / 5 * window).pow(-0.75)


def pool():
    return nn.MaxPool2d(3, 2, ceil_mode=True)


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, 4), nn.ReLU(), Lrn(), pool(),
        nn.Conv2d(96, 256, 5, padding=2, groups=2), nn.ReLU(), Lrn(), pool(),
        nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 384, 3, padding=1, groups=2), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1, groups=2), nn.ReLU(), pool(), nn.Flatten(),
        nn.Linear(9216, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(),
        nn.Linear(4096, 1000))


def measure(batch, steps, compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    net = alexnet().cuda().to(memory_format=torch.channels_last)
    solver = torch.optim.SGD(net.parameters(), 1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    images = torch.randn(batch, 3, 227, 227, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.full((batch,), 7, device="cuda")

    def loss_of(x):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(net(x), labels)

    forward = torch.compile(loss_of) if compiled else loss_of

    def step():
        solver.zero_grad(set_to_none=True)
        loss = forward(images)
        loss.backward()
        solver.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / steps)
    seconds = sorted(times)[len(times) // 2]
    form = "torch.compile" if compiled else "plain"
    print(f"PyTorch {torch.__version__} {form}, batch {batch}: {seconds * 1e3:.2f} ms, {batch / seconds:.0f} images/s, "
          f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--plain", action="store_true", help="without torch.compile alone")
    args = parser.parse_args()
    for compiled in (False,) if args.plain else (False, True):
        measure(args.batch, args.steps, compiled)


if __name__ == "__main__":
    main()
