#!/usr/bin/env python3
"""Conjugate gradients in PyTorch, an iteration as a CUDA graph, one process a GPU: what bench_loops does.

The matrix is split by rows, the vectors alike. An iteration is all_gather, mv, two all_reduces of one number and vector kernels; the
host looks at the residual after every LOOK iterations. Prints medians of SAMPLES, of a batch of iterations each: an iteration with the
looks and without, its product alone and its vector kernels alone. --eager: without graphs; --cpu: to see that it runs.

  torch_cg.py --side 16384 --gpus 2
"""

import argparse
import os
import socket
import statistics
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast belongs to the host: see torch_gemm.py

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LOOK, TIMES, SAMPLES = 10, 50, 11


class Solver:
    def __init__(self, side, rank, size, device):
        mine, kind = side // size, {"dtype": torch.float64, "device": device}
        self.size = size
        self.a = torch.zeros(mine, side, **kind)
        self.a[torch.arange(mine), torch.arange(mine) + rank * mine] = 2
        self.r, self.p = torch.ones(mine, **kind), torch.ones(mine, **kind)
        self.q, self.x = torch.zeros(mine, **kind), torch.zeros(mine, **kind)
        self.all = torch.ones(side, **kind)
        self.rr, self.pq, self.next = torch.ones((), **kind), torch.ones((), **kind), torch.ones((), **kind)
        self.zero = torch.zeros((), **kind)

    def add_up(self, x, y, out):
        torch.dot(x, y, out=out)
        if self.size > 1:
            dist.all_reduce(out)

    def product(self):
        if self.size > 1:
            dist.all_gather_into_tensor(self.all, self.p)
        torch.mv(self.a, self.all if self.size > 1 else self.p, out=self.q)

    def vectors(self):
        self.add_up(self.p, self.q, self.pq)
        step = torch.where(self.pq > 0, self.rr / self.pq, self.zero)
        self.x.add_(step * self.p)
        self.r.sub_(step * self.q)
        self.add_up(self.r, self.r, self.next)
        self.p.mul_(torch.where(self.rr > 0, self.next / self.rr, self.zero)).add_(self.r)
        self.rr.copy_(self.next)

    def iteration(self):
        self.product()
        self.vectors()


def wait(cpu):
    if not cpu:
        torch.cuda.synchronize()


def recorded(call, eager):
    """The call, `LOOK` times: as one graph."""
    if eager:
        return lambda: [call() for _ in range(LOOK)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LOOK):
            call()
    return graph.replay


def work(rank, size, port, side, cpu, eager):
    torch.set_grad_enabled(False)
    if not cpu:
        torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo" if cpu else "nccl", rank=rank, world_size=size)
    s = Solver(side, rank, size, "cpu" if cpu else f"cuda:{rank}")
    cases = {"iteration, looked at": (recorded(s.iteration, eager), True), "iteration": (recorded(s.iteration, eager), False),
             "product": (recorded(s.product, eager), False), "vector kernels": (recorded(s.vectors, eager), False)}
    took = {name: [] for name in cases}
    for sample in range(-2, SAMPLES):
        for name, (run, looks) in cases.items():
            wait(cpu)
            dist.barrier()
            wait(cpu)
            begin = time.perf_counter()
            for _ in range(TIMES // LOOK):
                run()
                if looks and s.rr.item() < -1:
                    break
            wait(cpu)
            if sample >= 0:
                took[name].append((time.perf_counter() - begin) * 1e3 / TIMES)
    if rank == 0:
        print(f"torch {torch.__version__}, {size} {'processes' if cpu else torch.cuda.get_device_name()}, f64 {side}, "
              f"{'eager' if eager else 'CUDA graph'}, ms an iteration: " +
              "; ".join(f"{name} {statistics.median(ms):.4f} (least {min(ms):.4f})" for name, ms in took.items()), flush=True)
    dist.barrier()
    os._exit(0)  # all lines are out; with collectives in graphs, taking the process group down hangs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=16384)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--eager", action="store_true")
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    arguments = (options.gpus, port, options.side, options.cpu, options.eager or options.cpu)
    mp.spawn(work, args=arguments, nprocs=options.gpus)


if __name__ == "__main__":
    main()
