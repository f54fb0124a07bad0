#!/usr/bin/env python3
"""Images a second of whole training steps (`dmath train`), of one build or of several in turns.

    steps.py TOOL... [--nets alexnet256,alexnet1024] [--caffe REPOSITORY] [--workers 1,4] [--ranks] [--fed RECORDS]
                     [--rounds 2] [--seconds 4] [--type bf16] [--options=WORDS] [--folder FOLDER]

TOOL: the program `dmath` of each build. A net is a name and a batch. alexnet is bench/networks/alexnet.prototxt, lenet that of
examples/lenet, googlenet that of Caffe's repository, a folder or a git directory. Images are made up (DummyData), or, with --fed, come from an LMDB of so many
records of 3 x 256 x 256 random bytes (lenet: 1 x 28 x 28), cropped and mirrored at random. --workers: threads of the process; with --ranks
processes of mpirun, with one more as rank 0. Each run trains for about --seconds; its figure is the median over the last iterations shown, that of
a build the median over the rounds. --options: more words for `dmath train`, as "--slices 0 --lean". Works in a temporary folder, or in --folder,
whose databases are used again.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]
import caffe_nets  # noqa: E402
import reading  # noqa: E402

SHAPES = {"alexnet": (3, 227, 227), "googlenet": (3, 224, 224), "lenet": (1, 28, 28)}
OURS = {"alexnet": HERE / "alexnet.prototxt", "lenet": HERE.parent.parent / "examples/lenet/lenet_train_test.prototxt"}
CAFFES = {"googlenet": "models/bvlc_googlenet/train_val.prototxt"}
RATES = {"alexnet": 0.0001, "googlenet": 0.001, "lenet": 0.01}
WINDOW = 10  # losses are shown, and times taken, every so many iterations


def layers_of(name, caffe):
    """The net's training layers, but for those that give data."""
    text = OURS[name].read_text() if name in OURS else caffe[CAFFES[name]]
    data = re.compile(r'type:\s*"(Data|DummyData)"')
    return "".join(t for layer, t in caffe_nets.blocks(text) if not (layer and (data.search(t) or re.search(r"phase:\s*TEST", t))))


def source(name, batch, fed):
    shape, head = SHAPES[name], "name: 'data' top: 'data' top: 'label'"
    if fed:
        crop = f"crop_size: {shape[1]} mirror: true mean_value: [104, 117, 123]" if name != "lenet" else "scale: 0.00390625"
        return (f"layer {{ {head} type: 'Data' data_param {{ source: '{fed}' backend: LMDB batch_size: {batch} }} "
                f"transform_param {{ {crop} }} }}\n")
    dims = " ".join(f"dim: {n}" for n in (batch, *shape))
    return (f"layer {{ {head} type: 'DummyData' dummy_data_param {{ shape {{ {dims} }} shape {{ dim: {batch} }} "
            f"data_filler {{ type: 'gaussian' std: 1 }} data_filler {{ type: 'constant' value: 7 }} }} }}\n")


def write_idx(path, header, body):
    path.write_bytes(bytes((0, 0, 8, len(header))) + b"".join(n.to_bytes(4, "big") for n in header) + body)


def make_database(tool, name, records):
    folder = pathlib.Path(f"db-{'small' if name == 'lenet' else 'large'}")
    if folder.exists():
        return folder
    if name == "lenet":
        write_idx(pathlib.Path("images"), (records, 28, 28), os.urandom(records * 28 * 28))
        write_idx(pathlib.Path("labels"), (records,), bytes(i % 10 for i in range(records)))
        reading.run(tool, "data", "convert", "images", "labels", folder)
        return folder
    pathlib.Path("png").mkdir()
    with open("list", "w") as f:
        for i in range(records):
            pathlib.Path(f"png/{i}.png").write_bytes(reading.png(os.urandom(reading.SIDE * reading.SIDE * 3)))
            f.write(f"png/{i}.png {i % 10}\n")
    reading.run(tool, "data", "convert", "--from=images", "list", folder)
    shutil.rmtree("png")
    return folder


def train(tool, solver, workers, o):
    """Iterations a second: the median of the later half of the times shown; and the text, if it failed."""
    def once(iterations):
        words = [tool, "train", "--solver", solver, "--type", o.type, "--max-iter", iterations, *o.options.split()]
        words = ["mpirun", "--oversubscribe", "-n", workers + 1, *words] if o.ranks else [*words, "-w", workers]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
        rates = [float(r) for r in re.findall(r"\(([0-9.e+]+) iter/s", done.stdout)][1:]
        if done.returncode != 0 or not rates:
            sys.exit(f"steps: {' '.join(str(w) for w in words)}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return statistics.median(rates[len(rates) // 2:])
    first = once(2 * WINDOW + 1)
    return once(max(3, int(first * o.seconds / WINDOW)) * WINDOW + 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tools", nargs="+", type=pathlib.Path)
    for name, value in (("nets", "alexnet256,alexnet1024"), ("workers", "1"), ("type", "bf16"), ("options", "--slices 0 --lean")):
        p.add_argument(f"--{name}", default=value)
    p.add_argument("--caffe", type=pathlib.Path)
    p.add_argument("--folder", type=pathlib.Path)
    p.add_argument("--ranks", action="store_true")
    p.add_argument("--fed", type=int, default=0)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=4)
    o = p.parse_args()
    tools = [t.absolute() for t in o.tools]
    nets = [re.fullmatch(r"([a-z]+)(\d+)", n) for n in o.nets.split(",")]
    unknown = [n for n, m in zip(o.nets.split(","), nets) if not m or m[1] not in SHAPES]
    if unknown or (not o.caffe and any(m[1] in CAFFES for m in nets)):
        p.error(f"{unknown[0]}: no such net" if unknown else "googlenet wants --caffe")
    caffe = caffe_nets.files_of(o.caffe.absolute()) if o.caffe else {}
    with contextlib.nullcontext(o.folder) if o.folder else tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        for m in nets:
            name, batch = m[1], int(m[2])
            fed = make_database(tools[0], name, o.fed) if o.fed else None
            pathlib.Path("net.prototxt").write_text(source(name, batch, fed) + layers_of(name, caffe))
            pathlib.Path("solver.prototxt").write_text(f"net: 'net.prototxt' base_lr: {RATES[name]} momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' "
                                                       f"display: {WINDOW} snapshot_after_train: false\n")
            for workers in (int(w) for w in o.workers.split(",")):
                rates = [[] for _ in tools]
                for _ in range(o.rounds):
                    for k, tool in enumerate(tools):
                        rates[k].append(train(tool, "solver.prototxt", workers, o))
                middle = [statistics.median(r) for r in rates]
                figures = "; ".join(f"{1e3 / r:.4g} ms, {batch * r:.4g} images/s ({batch * min(all_):.4g} to {batch * max(all_):.4g})"
                                    for r, all_ in zip(middle, rates))
                beside = "" if len(tools) == 1 else f"; time beside the first: {', '.join(f'{middle[0] / r:.3f}' for r in middle[1:])}"
                print(f"{m[0]}, {workers} {'ranks' if o.ranks else 'workers'}, {o.type}, {'fed' if fed else 'made up'}: {figures}{beside}", flush=True)


if __name__ == "__main__":
    main()
