"""A chain of additions, compiled by PyTorch, beside dmath's programs in turns.

    torch_chain.py BENCH_PROGRAM [--device cuda|cpu] [--side 1024] [--operations 100] [--rounds 5] [--threads 2]

The chain is that of bench_program: y = x/2 + y/2, x = x/2 + y/2, ... On GPUs PyTorch's compiled kernels run in a CUDA
graph. Prints the median time of an operation of each, and how long PyTorch compiled.
"""

import argparse
import os
import statistics
import subprocess
import time

import torch


def chain(x, y, operations):
    for i in range(operations):
        z = 0.5 * x + 0.5 * y
        if i % 2:
            x = z
        else:
            y = z
    return x, y


def prepare(options):
    """What runs the chain once, on x and y in place."""
    shape = (options.side, options.side)
    x = torch.full(shape, 1.0, device=options.device)
    y = torch.full(shape, 2.0, device=options.device)
    compiled = torch.compile(chain, dynamic=False)

    def step():
        a, b = compiled(x, y, options.operations)
        x.copy_(a)
        y.copy_(b)

    step()
    if options.device == "cpu":
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(run, options):
    repeats = 20
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    if options.device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / repeats / options.operations


def dmath_us(options, join):
    env = dict(os.environ, DMATH_DEVICE=options.device, DMATH_PROGRAM_JOIN=join)
    env["DMATH_WORKERS"] = str(options.threads) if options.device == "cpu" else "1"
    command = [options.program, str(options.side), str(options.operations)]
    text = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    line = next(line for line in text.splitlines() if "as a program" in line)
    return float(line.split(": ")[1].split()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--operations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    begin = time.perf_counter()
    run = prepare(options)
    compiled_s = time.perf_counter() - begin
    times = {"dmath": [], "dmath, program_join=0": [], "PyTorch, compiled": []}
    for _ in range(options.rounds):
        times["dmath"].append(dmath_us(options, "1"))
        times["dmath, program_join=0"].append(dmath_us(options, "0"))
        times["PyTorch, compiled"].append(min(measure(run, options) for _ in range(5)))
    print(f"PyTorch {torch.__version__} compiled in {compiled_s:.1f} s")
    for name, values in times.items():
        print(f"{options.operations} additions of {options.side}x{options.side} f32, {options.device}, {name}: "
              f"{statistics.median(values):.2f} us each ({min(values):.2f} to {max(values):.2f})")


main()
