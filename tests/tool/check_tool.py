"""dmath's command line against NumPy, and its JSON against a JSON parser.

    check_tool.py FOLDER COMMAND...      COMMAND starts the tool, for instance `mpirun -n 4 dmath`
"""

import itertools
import json
import os
import subprocess
import sys

import numpy as np

folder, command = sys.argv[1], sys.argv[2:]
launched = len(command) > 1


def run(*arguments):
    result = subprocess.run([*command, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=100)
    if result.returncode != 0:
        sys.exit(f"dmath {arguments}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def check_gemm(case, trans_a, trans_b, beta, types, dtype, layout):
    random = np.random.default_rng(case)
    m, n, k = random.integers(1, 60, 3)
    shapes = (k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n), (m, n)
    a, b, c = (random.uniform(-1, 1, shape).astype(t) for shape, t in zip(shapes, (*types, types[0])))
    for name, matrix in zip("abc", (a, b, c)):
        np.save(os.path.join(folder, f"{name}.npy"), matrix)
    options = ["--layout", layout, "--alpha", "0.5", "--json"]
    options += ["--trans-a"] * trans_a + ["--trans-b"] * trans_b
    options += ["--beta", beta] if beta else []
    options += ["--dtype", {"float32": "f32", "float64": "f64"}[dtype]] if dtype else []
    said = json.loads(run("gemm", "a.npy", "b.npy", "-o", "c.npy", *options))
    got = np.load(os.path.join(folder, "c.npy"))
    a, b, old = (x.astype(dtype).astype("f8") if dtype else x.astype("f8") for x in (a, b, c))
    want = 0.5 * (a.T if trans_a else a) @ (b.T if trans_b else b) + (beta * old if beta else 0)
    kind = np.dtype(dtype or (types[0] if beta else np.result_type(*types)))
    error = np.abs(got - want).max()
    if got.dtype != kind or got.shape != want.shape or not error <= 8 * k * np.finfo(kind).eps:
        sys.exit(f"case {case}: {got.dtype} {got.shape}, {error} off {kind} {want.shape}\n{said}")
    if (said["m"], said["n"], said["k"]) != (m, n, k):
        sys.exit(f"case {case}: {said}")


def check_map(layout):
    random = np.random.default_rng(7)
    x, y = random.normal(size=(31, 8)), random.integers(-9, 9, (31, 1)).astype("i4")
    for name, values in {"x": x, "y": y}.items():
        np.save(os.path.join(folder, f"{name}.npy"), values)
    said = json.loads(run("map", "z = where((y % 3 == 0) & (x < a), abs(x) // 0.25 - y, -x ** 2)", "x=x.npy", "y=y.npy",
                          "a=0.75", "-o", "z.npy", "--layout", layout, "--json"))
    got, want = np.load(os.path.join(folder, "z.npy")), np.where((y % 3 == 0) & (x < 0.75), np.abs(x) // 0.25 - y, -x ** 2)
    if got.dtype != want.dtype or not np.array_equal(got, want) or said["elements"] != 31 * 8:
        sys.exit(f"map, {layout}: {got.dtype} {got}, not {want}\n{said}")
    run("map", "where(x < 0, a, where(x < 1, b, c))", "x=x.npy", "a=nan", "b=-inf", "c=Infinity", "-o", "z.npy", "--layout", layout)
    got, want = np.load(os.path.join(folder, "z.npy")), np.where(x < 0, np.nan, np.where(x < 1, -np.inf, np.inf))
    if got.dtype != want.dtype or not np.array_equal(got, want, equal_nan=True):
        sys.exit(f"map with nan and inf, {layout}: {got.dtype} {got}, not {want}")


def check_stat(layout):
    random = np.random.default_rng(11)
    odd = random.normal(size=(30, 7)).astype("f4")
    odd[3, 2], odd[4, 4], odd[29, 0], odd[0, 0] = np.nan, np.inf, -np.inf, np.nan
    arrays = {"odd": odd, "whole": random.integers(-50, 90, (5, 6, 7)).astype("i2"), "z": random.normal(size=13) * (1 + 2j),
              "flags": random.integers(0, 2, 40).astype(bool), "none": np.zeros((0, 3)), "nans": np.full(5, np.nan),
              "one": np.array(2.5), "same": np.full((4, 4), 7, "u1")}
    for name, values in arrays.items():
        np.save(os.path.join(folder, f"{name}.npy"), values)
    lines = run("stat", *[f"{name}.npy" for name in arrays], "--json", "--bins", 8, "--layout", layout).splitlines()
    for (name, values), line in zip(arrays.items(), lines):
        said, real = json.loads(line), np.abs(values) if values.dtype.kind == "c" else values
        real = real.astype("f8").ravel()
        finite = real[np.isfinite(real)]
        want = {"elements": values.size, "nan": int(np.isnan(real).sum()), "inf": int(np.isinf(real).sum()),
                "shape": "x".join(map(str, values.shape)) or "()"}
        close = True
        for key, function in {"min": np.min, "max": np.max, "mean": np.mean, "std": np.std}.items():
            close = close and (said[key] is None if finite.size == 0 else np.isclose(said[key], function(finite), 1e-6, 1e-9))
        if finite.size:
            want["histogram"] = np.histogram(finite, 8)[0].tolist()
        if {key: said.get(key) for key in want} != want or not close:
            sys.exit(f"stat {name}, {layout}: {said}\n{want}")


def check_bench(rows, keys, *arguments):
    lines = [json.loads(line) for line in run("bench", *arguments, "--json").splitlines()]
    if len(lines) != rows:
        sys.exit(f"bench {arguments}: {len(lines)} lines, not {rows}")
    for line in lines:
        if line["command"] != f"bench {arguments[0]}" or not {"version", "workers", "transport", "cores"} <= line.keys():
            sys.exit(f"bench {arguments}: {line}")
    for key in keys:
        if not any(key in line for line in lines):
            sys.exit(f"bench {arguments}: no {key}")


def triples(name):
    return [f"{name}_{part}" for part in ("min", "median", "max")]


cases = itertools.product([0, 1], [0, 1], [0, 2], [("f4", "f4"), ("f8", "f4")], [None, "float32"])
layouts = itertools.cycle(["rows", "cols", "grid", "cyclic:1:4", "replicated", "single:1", "default"])
for case, (trans_a, trans_b, beta, types, dtype) in enumerate(cases):
    if not launched or case % 5 == 0:
        check_gemm(case, trans_a, trans_b, beta, types, dtype, next(layouts))

for layout in ("default", "rows", "cyclic:0:4", "replicated", "single:1"):
    check_map(layout)
    check_stat(layout)
few = ["--repeats", 3, "--warmup", 1]
turns = [] if launched else ["--workers", "2,3"]
times = 1 if launched else 2
check_bench(8 * times, triples("ms") + ["gflops", "ratio", "error"], "gemm", "--sizes", "32,20x30x40", "--dtypes",
            "f64,f16", "--layouts", "rows/cols/rows,grid", *few, *turns)
check_bench(2 * times, triples("ms") + ["gbps", "memcpy_1_gbps", "memcpy_all_gbps"], "remap", "--sizes", "50,64", *few,
            *turns)
check_bench(1 * times, triples("load_ms") + triples("save_ms") + ["load_gbps", "read_gbps", "ratio", "save_ratio", "threads"],
            "file", "--size", "100K", *few, *turns)
check_bench(4 * times, triples("us") + ["processor_percent"], "dispatch", "--count", 2000, "--idle", 0.05, *few, *turns)
check_bench(9 * times, triples("us") + triples("mbps"), "transport", "--max", 1024, *few, *turns)
check_bench((2 if launched else 1) * 3 * times, triples("us") + triples("gbps"), "transport", "--max", 1, "--ring=4K",
            "--transports", "direct,mpi" if launched else "direct", *few, *turns)
