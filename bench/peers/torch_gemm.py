#!/usr/bin/env python3
"""Products of distributed matrices in PyTorch, one process a GPU, under torchrun or by itself.

Forms: the local product alone on all GPUs at once; collectives before or behind torch.mm; the fused operations of
torch.ops.symm_mem; DTensor with the result in the layout of the case. Lines and cases: peer.py.

  torch_gemm.py --sizes 4096,16384 --dtypes bf16 --gpus 4
  torch_gemm.py --cpu --gpus 2 --sizes 128 --dtypes f32 --cases rows/rows/rows,remap
"""

import faulthandler
import math
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh

import peer
from torch_cases import forms_of

# NVLink multicast belongs to the host, not to the process: a program that dies while it uses it can leave the links of
# a shared host unusable. Nothing here needs it.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


class Group:
    """The processes, their devices and how time is taken on them."""

    def __init__(self, cpu):
        self.rank, self.size, self.cpu = dist.get_rank(), dist.get_world_size(), cpu
        self.device = torch.device("cpu") if cpu else torch.device("cuda", torch.cuda.current_device())
        self.mesh = init_device_mesh(self.device.type, (self.size,))
        self.name = dist.group.WORLD.group_name

    def synchronize(self):
        if not self.cpu:
            torch.cuda.synchronize()

    def barrier(self):
        self.synchronize()
        dist.barrier()

    def slowest(self, values):
        t = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return t.tolist()

    def on_clock(self, call, count):
        """Milliseconds of `count` calls, by the host's clock."""
        self.barrier()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        self.synchronize()
        return (time.perf_counter() - begin) * 1e3

    def on_device(self, call, count):
        """The same by the device's clock: without what the host needs to hear of the end."""
        if self.cpu:
            return self.on_clock(call, count)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.barrier()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def measure(self, call, samples):
        """Batched and single times, in ms, the slowest rank's of every sample."""
        for _ in range(3):
            call()
        estimate = self.slowest([self.on_device(call, 2) / 2])[0]
        batch = peer.batch_for(estimate)
        batched = [self.on_device(call, batch) / batch for _ in range(samples)]
        alone = [self.on_clock(call, 1) for _ in range(samples if estimate < 50 else 3)]
        return self.slowest(batched), self.slowest(alone)


def run_case(g, o, case, dtype, n):
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    gpus = g.size
    if n % gpus:
        if g.rank == 0:
            peer.emit_failure("torch", case, dtype, n, gpus, "n is no multiple of the number of GPUs")
        return
    try:
        forms = forms_of(g, case, dtype, n)
    except (RuntimeError, MemoryError) as e:
        if g.rank == 0:
            peer.emit_failure("torch", case, dtype, n, gpus, e)
        return
    for name, form in forms:
        # A refusal comes on all ranks alike; one that does not ends in the limit of time.
        try:
            result = form.call()
            g.synchronize()
            error = g.slowest([form.error(result)])[0] if form.error else math.nan
            del result
            batched, alone = g.measure(form.call, o.samples)
        except (RuntimeError, NotImplementedError, AttributeError, AssertionError, ValueError, TypeError) as e:
            if g.rank == 0:
                peer.emit_failure(name, case, dtype, n, gpus, e)
            continue
        if g.rank == 0:
            right = error <= form.tolerance if form.error else None  # a NaN is not right
            peer.emit_times(name, case, dtype, n, gpus, batched, alone, right, error)


def work(rank, size, o, port):
    faulthandler.dump_traceback_later(o.limit, exit=True)
    os.environ.update(WITHOUT_MULTICAST)
    if port:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    local = int(os.environ.get("LOCAL_RANK", rank))
    if o.cpu:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    else:
        torch.cuda.set_device(local)
        dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    g = Group(o.cpu)
    for case, dtype, n in peer.plan(o):
        run_case(g, o, case, dtype, n)
        if not o.cpu:
            torch.cuda.empty_cache()
    g.barrier()
    os._exit(0)  # all lines are out; taking the process group down may hang or abort, which is no result


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    o = peer.parse(__doc__.splitlines()[0])
    if "RANK" in os.environ:  # torchrun's
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), o, 0)
        return
    size = o.gpus or (2 if o.cpu else torch.cuda.device_count())
    if not o.cpu and not 0 < size <= torch.cuda.device_count():
        raise SystemExit(f"torch_gemm: {size} GPUs are asked for, {torch.cuda.device_count()} are here")
    mp.spawn(work, (size, o, free_port()), size)


if __name__ == "__main__":
    main()
