"""The cases of torch_gemm.py: for each the operands of this rank, the ways to compute it, and the check of a result."""

import math

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Shard

import peer

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32, "f32": torch.float32,
         "f64": torch.float64}
SAMPLED = 16  # rows, and columns, whose crossings are checked on every rank


class Form:
    """call() computes, error(result) is the largest error of its sampled entries; None: there is nothing to check."""

    def __init__(self, call, error, tolerance):
        self.call, self.error, self.tolerance = call, error, tolerance


def random(g, rows, cols, dtype, seed):
    source = torch.Generator(device=g.device).manual_seed(1000 * seed + g.rank)
    return torch.randn(rows, cols, generator=source, device=g.device, dtype=torch.float32).to(dtype)


def picked(g, extent):
    """The same places on every rank, spread over the extent."""
    count = min(SAMPLED, extent)
    return (torch.arange(count, device=g.device) * extent // count + extent // count // 2).clamp(max=extent - 1)


def gathered(g, part, dim):
    """The parts of all ranks side by side, in f64."""
    part = part.double().contiguous()
    parts = [torch.empty_like(part) for _ in range(g.size)]
    dist.all_gather(parts, part)
    return torch.cat(parts, dim)


def local(x):
    return x.to_local() if isinstance(x, DTensor) else x


def whole(x, out):
    """The parts of all ranks, one below the other."""
    dist.all_gather_into_tensor(out, x)
    return out


def rows_rows(g, dtype, n, k):
    """A, B and C by rows: B travels."""
    a, b = random(g, k, n, dtype, 1), random(g, k, n, dtype, 2)
    full, c = torch.empty(n, n, dtype=dtype, device=g.device), torch.empty(k, n, dtype=dtype, device=g.device)
    i, j = picked(g, k), picked(g, n)
    reference = a[i].double() @ gathered(g, b[:, j], 0)
    dist.all_gather_into_tensor(full, b)
    da, db = (DTensor.from_local(x, g.mesh, [Shard(0)]) for x in (a, b))

    bt, at = b.t().contiguous(), a.t().contiguous()

    def fused():  # only a left operand is gathered: C' = B' A', of operands that are held transposed
        return torch.ops.symm_mem.fused_all_gather_matmul(bt, [at], 1, g.name, return_A=False)[1][0].t()

    return reference, lambda x: x[i][:, j], {
        "local": lambda: torch.mm(a, full, out=c),
        "torch gather+mm": lambda: torch.mm(a, whole(b, full), out=c),
        "torch fused": fused,
        "torch DTensor": lambda: (da @ db).redistribute(g.mesh, [Shard(0)]),
    }


def rows_cols(g, dtype, n, k):
    """A by rows, B and C by columns: A travels, and every block of it gives whole results."""
    a, b = random(g, k, n, dtype, 1), random(g, n, k, dtype, 2)
    full, c = torch.empty(n, n, dtype=dtype, device=g.device), torch.empty(n, k, dtype=dtype, device=g.device)
    i, j = picked(g, k), picked(g, k)
    reference = gathered(g, a[i], 0) @ b[:, j].double()
    everywhere = torch.cat([i + r * k for r in range(g.size)])
    dist.all_gather_into_tensor(full, a)
    da, db = DTensor.from_local(a, g.mesh, [Shard(0)]), DTensor.from_local(b, g.mesh, [Shard(1)])
    return reference, lambda x: x[everywhere][:, j], {
        "local": lambda: torch.mm(full, b, out=c),
        "torch gather+mm": lambda: torch.mm(whole(a, full), b, out=c),
        "torch fused": lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, g.name,
                                                                            return_A=False)[1][0],
        "torch DTensor": lambda: (da @ db).redistribute(g.mesh, [Shard(1)]),
    }


def contraction(g, dtype, n, k, transposed):
    """K is spread: every rank has a product as large as C, and C by rows is their sum."""
    stored = random(g, k, n, dtype, 1) if transposed else random(g, n, k, dtype, 1)
    a, b = stored.t() if transposed else stored, random(g, k, n, dtype, 2)
    part = torch.empty(n, n, dtype=dtype, device=g.device)
    c = torch.empty(k, n, dtype=dtype, device=g.device)
    i, j = picked(g, k), picked(g, n)
    everywhere = torch.cat([i + r * k for r in range(g.size)])
    mine = slice(g.rank * len(i), (g.rank + 1) * len(i))
    reference = (gathered(g, a[everywhere], 1) @ gathered(g, b[:, j], 0))[mine]
    da, db = DTensor.from_local(stored, g.mesh, [Shard(0 if transposed else 1)]), \
        DTensor.from_local(b, g.mesh, [Shard(0)])

    def scattered():
        dist.reduce_scatter_tensor(c, torch.mm(a, b, out=part))
        return c

    def by_dtensor():
        return ((da.t() if transposed else da) @ db).redistribute(g.mesh, [Shard(0)])

    return reference, lambda x: x[i][:, j], {
        "local": lambda: torch.mm(a, b, out=part),
        "torch mm+scatter": scattered,
        "torch fused": lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, g.name),
        "torch DTensor": by_dtensor,
    }


def gemm_forms(g, case, dtype, n):
    make = {"rows/rows/rows": rows_rows, "rows/cols/cols": rows_cols,
            "cols/rows/rows": lambda *x: contraction(*x, False),
            "rowsT/rows/rows": lambda *x: contraction(*x, True)}[case]
    if not g.cpu:
        try:  # not needed, or not there, in some versions
            from torch.distributed import _symmetric_memory
            _symmetric_memory.enable_symm_mem_for_group(g.name)
        except (ImportError, AttributeError):
            pass
    reference, sample, calls = make(g, TYPES[dtype], n, n // g.size)
    # The local product of a contraction is a part of the sum: there is nothing to compare it with.
    summed = case in ("cols/rows/rows", "rowsT/rows/rows")

    def error(result):
        return (sample(local(result)).double() - reference).abs().max().item() / math.sqrt(n)

    return [("local (torch)" if name == "local" else name,
             Form(call, None if name == "local" and summed else error, peer.TOLERANCE[dtype]))
            for name, call in calls.items()]


def place_number(rows, cols):
    """A number that tells most places apart, and is exact in f32."""
    return ((rows[:, None] * 131071 + cols[None, :] * 8191) % 1048573).float()


def remap_forms(g, n):
    """Rows to columns: every rank sends every other a block."""
    k = n // g.size
    at, all_places = torch.arange(k, device=g.device) + g.rank * k, torch.arange(n, device=g.device)
    x, wanted = place_number(at, all_places), place_number(all_places, at)
    packed, out = torch.empty(g.size, k, k, device=g.device), torch.empty(n, k, device=g.device)
    dx = DTensor.from_local(x, g.mesh, [Shard(0)])

    def exchange():
        packed.copy_(x.view(k, g.size, k).transpose(0, 1))
        dist.all_to_all_single(out.view(g.size, k, k), packed)
        return out

    def error(result):
        return float((local(result) != wanted).sum().item())

    return [("torch all_to_all", Form(exchange, error, 0)),
            ("torch DTensor", Form(lambda: dx.redistribute(g.mesh, [Shard(1)]), error, 0))]


def chain_forms(g):
    """Small operations that depend on one another: what each costs beside its arithmetic."""
    edge = peer.CHAIN_EDGE
    x, y = torch.ones(edge, edge, device=g.device), torch.full((edge, edge), 2.0, device=g.device)
    dx, dy = (DTensor.from_local(v, g.mesh, [Shard(0)]) for v in (x, y))

    def chain(first, second):
        for _ in range(peer.CHAIN):
            first = first + second
        return first

    def error(result):
        return (local(result) - (1 + 2 * peer.CHAIN)).abs().max().item()

    return [("torch eager", Form(lambda: chain(x, y), error, 0)),
            ("torch DTensor", Form(lambda: chain(dx, dy), error, 0))]


def forms_of(g, case, dtype, n):
    """(name, Form) for every way to compute the case."""
    if case == "remap":
        return remap_forms(g, n)
    if case == "chain100":
        return chain_forms(g)
    return gemm_forms(g, case, dtype, n)
