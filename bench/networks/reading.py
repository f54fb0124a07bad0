#!/usr/bin/env python3
"""Who reads: images a second of a net with a Data layer, read by the program's process or by each rank itself (`dmath train --read`).

    reading.py TOOL [--ranks 2,3] [--batch 256] [--records 512] [--rounds 5] [--iterations 10] [--hosts N]

Makes an LMDB of records of 3 x 256 x 256 random bytes, of which windows of 227 x 227 are taken, mirrored at random. Behind the data
layer the net has only a pooling over the whole window and an inner product, so that loading is what is measured. --ranks: of mpirun,
with rank 0, which computes nothing. --hosts: as if they were on so many hosts (option pretend_hosts), with messages between them. The two
ways alternate; each figure is the median of the rounds, the ratio the median of the ratios. CPU seconds are what a busy host disturbs
least. Works in a temporary folder.
"""
import argparse
import os
import pathlib
import re
import resource
import statistics
import struct
import subprocess
import tempfile
import zlib

SIDE = 256


def png(pixels):
    rows = b"".join(b"\0" + pixels[y * SIDE * 3:(y + 1) * SIDE * 3] for y in range(SIDE))
    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def run(*command):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert r.returncode == 0, f"{command}\n{r.stdout}{r.stderr}"
    return r.stdout


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool", type=pathlib.Path)
    p.add_argument("--ranks", default="2,3")
    p.add_argument("--mpirun", default="mpirun")
    for name, value in (("batch", 256), ("records", 512), ("rounds", 5), ("iterations", 10), ("hosts", 0)):
        p.add_argument(f"--{name}", type=int, default=value)
    o = p.parse_args()
    tool = o.tool.absolute()
    os.environ["DMATH_PRETEND_HOSTS"] = str(o.hosts)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("list", "w") as f:
            for i in range(o.records):
                pathlib.Path(f"{i}.png").write_bytes(png(os.urandom(SIDE * SIDE * 3)))
                f.write(f"{i}.png {i % 10}\n")
        run(tool, "data", "convert", "--from=images", "list", "db")
        pathlib.Path("net.prototxt").write_text(f"""
layer {{ name: 'd' type: 'Data' top: 'x' top: 'y' data_param {{ source: 'db' backend: LMDB batch_size: {o.batch} }}
  transform_param {{ crop_size: 227 mirror: true mean_value: [104, 117, 123] }} }}
layer {{ name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param {{ pool: AVE kernel_size: 227 }} }}
layer {{ name: 'ip' type: 'InnerProduct' bottom: 'p' top: 'ip' inner_product_param {{ num_output: 10 }} }}
layer {{ name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'l' }}
""")
        pathlib.Path("solver.prototxt").write_text(f"net: 'net.prototxt' base_lr: 0.0001 lr_policy: 'fixed' display: {o.iterations} "
                                                   f"max_iter: {2 * o.iterations + 1} snapshot_after_train: false\n")

        def measure(ranks, who):
            """Images a second in the last `iterations`, when all is under way; CPU seconds of all ranks in the whole run."""
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            out = run(o.mpirun, "-n", ranks, tool, "train", "--solver", "solver.prototxt", "--shuffle", "--read", who)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return float(re.findall(r"\(([\d.e+]+) iter/s", out)[-1]) * o.batch, cpu

        print(f"batch {o.batch}, {o.records} records of 3 x {SIDE} x {SIDE}, {os.cpu_count()} cores, {2 * o.iterations + 1} batches, {o.rounds} rounds")
        for ranks in map(int, o.ranks.split(",")):
            pairs = [[measure(ranks, who) for who in ("master", "workers")] for _ in range(o.rounds)]
            for i, name in enumerate(("images/s", "CPU seconds")):
                by = [statistics.median(pair[k][i] for pair in pairs) for k in range(2)]
                ratio = statistics.median(pair[1][i] / pair[0][i] for pair in pairs)
                print(f"{ranks - 1} worker{'s' if ranks > 2 else ''}, {name}: by the program's process {by[0]:.3g}, by the workers {by[1]:.3g}, "
                      f"ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
