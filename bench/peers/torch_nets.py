"""Steps of training of Caffe's AlexNet, GoogLeNet and LeNet in PyTorch, images a second: bf16 by autocast (LeNet: f32), channels
last, fused SGD, the step in one CUDA graph; plain and through torch.compile, with LRN as average pooling of squares, which it fuses.

    torch_nets.py [--net alexnet|googlenet|lenet] [--batch 256] [--steps 50] [--plain]
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


def conv(inputs, outputs, kernel, **more):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **more), nn.ReLU())


class Inception(nn.Module):
    def __init__(self, inputs, one, three_from, three, five_from, five, after_pool):
        super().__init__()
        self.ways = nn.ModuleList([
            conv(inputs, one, 1),
            nn.Sequential(conv(inputs, three_from, 1), conv(three_from, three, 3, padding=1)),
            nn.Sequential(conv(inputs, five_from, 1), conv(five_from, five, 5, padding=2)),
            nn.Sequential(nn.MaxPool2d(3, 1, padding=1), conv(inputs, after_pool, 1))])

    def forward(self, x):
        return torch.cat([way(x) for way in self.ways], 1)


class Side(nn.Module):
    """A classifier beside the net, as in training."""

    def __init__(self, inputs):
        super().__init__()
        self.all = nn.Sequential(nn.AvgPool2d(5, 3, ceil_mode=True), conv(inputs, 128, 1), nn.Flatten(), nn.Linear(2048, 1024),
                                 nn.ReLU(), nn.Dropout(0.7), nn.Linear(1024, 1000))

    def forward(self, x):
        return self.all(x)


class GoogLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(conv(3, 64, 7, stride=2, padding=3), pool(), Lrn(), conv(64, 64, 1), conv(64, 192, 3, padding=1),
                               Lrn(), pool(), Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64),
                               pool(), Inception(480, 192, 96, 208, 16, 48, 64))
        self.b = nn.Sequential(Inception(512, 160, 112, 224, 24, 64, 64), Inception(512, 128, 128, 256, 24, 64, 64),
                               Inception(512, 112, 144, 288, 32, 64, 64))
        self.c = nn.Sequential(Inception(528, 256, 160, 320, 32, 128, 128), pool(), Inception(832, 256, 160, 320, 32, 128, 128),
                               Inception(832, 384, 192, 384, 48, 128, 128), nn.AvgPool2d(7), nn.Flatten(), nn.Dropout(0.4),
                               nn.Linear(1024, 1000))
        self.first, self.second = Side(512), Side(528)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        return self.c(b), self.first(a), self.second(b)


def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


# The net, the shape of an image, and whether it runs in bf16.
NETS = {"alexnet": (alexnet, (3, 227, 227), True), "googlenet": (GoogLeNet, (3, 224, 224), True), "lenet": (lenet, (1, 28, 28), False)}


def loss_of_all(scores, labels):
    if not isinstance(scores, tuple):
        return F.cross_entropy(scores, labels)
    return sum(weight * F.cross_entropy(s, labels) for weight, s in zip((1, 0.3, 0.3), scores))


def measure(name, batch, steps, compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    make, shape, narrow = NETS[name]
    net = make().cuda().to(memory_format=torch.channels_last)
    solver = torch.optim.SGD(net.parameters(), 1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    images = torch.randn(batch, *shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.full((batch,), 7, device="cuda")

    def loss_of(x):
        with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
            return loss_of_all(net(x), labels)

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
    print(f"PyTorch {torch.__version__} {form}, {name}, batch {batch}: {seconds * 1e3:.2f} ms, {batch / seconds:.0f} images/s, "
          f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", choices=NETS, default="alexnet")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--plain", action="store_true", help="without torch.compile alone")
    args = parser.parse_args()
    for compiled in (False,) if args.plain else (False, True):
        measure(args.net, args.batch, args.steps, compiled)


if __name__ == "__main__":
    main()
