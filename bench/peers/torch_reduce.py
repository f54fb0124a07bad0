#!/usr/bin/env python3
"""NCCL's all-reduce of f32 through PyTorch, one process a GPU, calls in a row: what bench_reduce does. Lines of JSON.

  torch_reduce.py --gpus 2 0.0625 1 16 64     MiB of the result
"""

import argparse
import json
import os
import socket
import statistics
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast belongs to the host: see torch_gemm.py

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ROW, SAMPLES = 20, 20


def work(rank, size, port, sizes):
    torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("nccl", rank=rank, world_size=size, device_id=torch.device("cuda", rank))
    for mib in sizes:
        x = torch.zeros(int(mib * (1 << 18)), dtype=torch.float32, device=f"cuda:{rank}")
        for way in ("calls", "graph"):
            run = lambda: [dist.all_reduce(x) for _ in range(ROW)]  # noqa: E731
            run()
            torch.cuda.synchronize()
            if way == "graph":
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    run()
                run = graph.replay
            took = []
            for sample in range(-3, SAMPLES):
                dist.barrier()
                torch.cuda.synchronize()
                begin = time.perf_counter()
                run()
                torch.cuda.synchronize()
                if sample >= 0:
                    took.append((time.perf_counter() - begin) * 1e3 / ROW)
            if rank == 0:
                print(json.dumps({"peer": "nccl", "through": f"torch {torch.__version__}, {way}", "case": "all_reduce",
                                  "dtype": "f32", "n": mib, "gpus": size, "ms_median": round(statistics.median(took), 5),
                                  "ms_min": round(min(took), 5), "samples": SAMPLES}), flush=True)
    dist.barrier()
    os._exit(0)  # all lines are out; with collectives in graphs, taking the process group down hangs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("mib", type=float, nargs="+")
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, args=(options.gpus, port, options.mib), nprocs=options.gpus)


if __name__ == "__main__":
    main()
