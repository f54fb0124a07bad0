#!/usr/bin/env python3
"""Products of distributed matrices in JAX: one process, all GPUs, jit with the layouts of the case.

Lines and cases: peer.py.

  jax_gemm.py --sizes 4096,16384 --dtypes bf16 --gpus 4
  jax_gemm.py --cpu --gpus 2 --sizes 128 --dtypes f32
"""

import faulthandler
import math
import os
import time

import peer


def more_options(parser):
    parser.add_argument("--windowed", action="store_true",
                        help="XLA's collective matmul: products and transfers in turns, beside one another")


def prepare(o):
    """What XLA reads before it starts."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    if o.cpu:
        flags.append(f"--xla_force_host_platform_device_count={o.gpus or 2}")
        os.environ["JAX_PLATFORMS"] = "cpu"
    else:
        flags.append("--xla_gpu_enable_latency_hiding_scheduler=true")
        if o.windowed:
            flags.append("--xla_gpu_threshold_for_windowed_einsum_mib=0")
    os.environ["XLA_FLAGS"] = " ".join(flags)
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.85")
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # as in torch_gemm.py


def times(call, samples):
    """Batched and single times, in ms."""
    def timed(count):
        begin = time.perf_counter()
        for _ in range(count):
            result = call()
        result.block_until_ready()
        return (time.perf_counter() - begin) * 1e3

    for _ in range(3):
        timed(1)
    estimate = timed(2) / 2
    batch = peer.batch_for(estimate)
    return [timed(batch) / batch for _ in range(samples)], \
        [timed(1) for _ in range(samples if estimate < 50 else 3)]


class Cases:
    def __init__(self, o):
        import jax
        self.jax = jax
        jax.config.update("jax_enable_x64", True)
        devices = jax.devices()
        self.gpus = o.gpus or len(devices)
        if self.gpus > len(devices):
            raise SystemExit(f"jax_gemm: {self.gpus} GPUs are asked for, {len(devices)} are here")
        self.mesh = jax.sharding.Mesh(devices[:self.gpus], ("x",))
        self.name = "jax windowed" if o.windowed else "jax"
        self.samples = o.samples

    def layout(self, word):
        spec = self.jax.sharding.PartitionSpec
        return self.jax.sharding.NamedSharding(self.mesh, spec(None, "x") if word == "cols" else spec("x", None))

    def random(self, dtype, n, layout, seed):
        make = self.jax.jit(lambda key: self.jax.random.normal(key, (n, n), dtype="float32").astype(dtype),
                            out_shardings=layout)
        return make(self.jax.random.key(seed))

    def report(self, case, dtype, n, call, error, tolerance):
        batched, alone = times(call, self.samples)
        peer.emit_times(self.name, case, dtype, n, self.gpus, batched, alone, bool(error <= tolerance), error)

    def gemm(self, case, dtype, n):
        import jax.numpy as jnp
        import numpy as np
        kind = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f64": jnp.float64}.get(dtype, jnp.float32)
        precision = {"tf32": "tensorfloat32", "f32": "highest", "f64": "highest"}.get(dtype)
        transposed = case.startswith("rowsT")
        la, lb, lc = (self.layout(word) for word in case.split("/"))
        a, b = self.random(kind, n, la, 1), self.random(kind, n, lb, 2)
        product = self.jax.jit(lambda x, y: jnp.matmul(x.T if transposed else x, y, precision=precision),
                               in_shardings=(la, lb), out_shardings=lc)
        c = product(a, b)
        places = np.linspace(0, n - 1, num=min(32, n)).astype(int)
        rows = np.asarray(a[:, places].T if transposed else a[places, :]).astype(np.float64)
        wanted = rows @ np.asarray(b[:, places]).astype(np.float64)
        got = np.asarray(c[places, :])[:, places].astype(np.float64)
        del c
        error = float(np.abs(got - wanted).max()) / math.sqrt(n)
        self.report(case, dtype, n, lambda: product(a, b), error, peer.TOLERANCE[dtype])

    def remap(self, n):
        import jax.numpy as jnp
        rows, cols = self.layout("rows"), self.layout("cols")
        x = self.jax.jit(lambda: jnp.arange(n * n, dtype=jnp.float32).reshape(n, n), out_shardings=rows)()
        move = self.jax.jit(lambda v: v, in_shardings=rows, out_shardings=cols)
        wrong = float(jnp.sum(move(x) != self.jax.device_put(x, cols)))
        self.report("remap", "f32", n, lambda: move(x), wrong, 0)

    def chain(self):
        """Every operation is a call of a compiled function, as in a program whose operations are not known ahead."""
        import jax.numpy as jnp
        edge, rows = peer.CHAIN_EDGE, self.layout("rows")
        x, y = (self.jax.device_put(jnp.full((edge * self.gpus, edge), v, dtype=jnp.float32), rows) for v in (1, 2))
        add = self.jax.jit(lambda v, w: v + w, in_shardings=(rows, rows), out_shardings=rows)

        def call():
            z = x
            for _ in range(peer.CHAIN):
                z = add(z, y)
            return z

        error = float(jnp.abs(call() - (1 + 2 * peer.CHAIN)).max())
        self.report("chain100", "f32", edge, call, error, 0)

    def run(self, case, dtype, n):
        try:
            if n % self.gpus:
                raise ValueError("n is no multiple of the number of GPUs")
            if case == "remap":
                self.remap(n)
            elif case == "chain100":
                self.chain()
            else:
                self.gemm(case, dtype, n)
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as e:  # XLA's errors are RuntimeErrors
            peer.emit_failure(self.name, case, dtype, n, self.gpus, e)


def main():
    o = peer.parse(__doc__.splitlines()[0], more=more_options)
    faulthandler.dump_traceback_later(o.limit, exit=True)
    prepare(o)
    cases = Cases(o)
    for case, dtype, n in peer.plan(o):
        cases.run(case, dtype, n)


if __name__ == "__main__":
    main()
