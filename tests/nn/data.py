#!/usr/bin/env python3
"""Data layers and `dmath data` against files made here: images, lists, CIFAR, LMDB and LevelDB, means, damaged records.

  data.py TOOL

Images are encoded by images.py. Works in the current folder.
"""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy as np

from images import jpeg, jpeg_pixels, png, resize

TOOL = sys.argv[1]
random = np.random.default_rng(5)


def run(*args, fails=None):
    r = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    if fails is None:
        assert r.returncode == 0, f"{args}: {r.returncode}\n{r.stdout}{r.stderr}"
    else:
        assert r.returncode == 1 and re.search(fails, r.stderr), f"{args}: {r.returncode} and not {fails}\n{r.stdout}{r.stderr}"
    return r.stdout


def extract(layer, batches=1, phase="TEST", workers=2, more=(), fails=None):
    pathlib.Path("net.prototxt").write_text(layer)
    out = run("extract", "-m", "net.prototxt", "-b", "x,y", "-n", batches, "--phase", phase, "-w", workers, *more, fails=fails)
    return (np.load("x.npy"), np.load("y.npy"), out) if fails is None else None


def planes(pixels):
    """H x W x 3 of red, green, blue, or H x W: channels first, blue first."""
    pixels = np.asarray(pixels)
    return pixels[None].astype(float) if pixels.ndim == 2 else pixels[:, :, ::-1].transpose(2, 0, 1).astype(float)


def to_gray(p):
    return np.floor(0.114 * p[0] + 0.587 * p[1] + 0.299 * p[2] + 0.5)[None] if len(p) == 3 else p


def have(what, *args):
    """Does this build have the library? Its absence is a clear error."""
    r = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    if r.returncode and "was built without" in r.stderr:
        print(f"skipped: {what}: {r.stderr.strip()}")
        return False
    return True


# ---- images of all kinds, listed in a file
def make_images():
    """(name, expected planes) of each image; the file `list` names them."""
    h, w = 11, 9
    rgb, gray = random.integers(0, 256, (h, w, 3)), random.integers(0, 256, (h, w))
    palette, index = random.integers(0, 256, (13, 3)), random.integers(0, 13, (h, w))
    wide = random.integers(0, 65536, (h, w, 3))
    bits = random.integers(0, 4, (h, w))
    alpha = random.integers(0, 256, (h, w, 4))
    all = [("rgb.png", png(rgb), planes(rgb)), ("gray.png", png(gray), planes(gray)),
           ("palette.png", png(index, palette=palette), planes(palette[index])), ("wide.png", png(wide, depth=16), planes(wide >> 8)),
           ("bits.png", png(bits, depth=2), planes(bits * 85)), ("alpha image.png", png(alpha), planes(alpha[:, :, :3]))]
    ycc = np.concatenate([random.integers(60, 200, (2, 3, 1)), random.integers(100, 150, (2, 3, 2))], -1)
    luma = random.integers(0, 256, (3, 2))
    all += [("ycc.jpg", jpeg(ycc), jpeg_pixels(ycc).transpose(2, 0, 1)), ("luma.jpg", jpeg(luma), jpeg_pixels(luma)[None])]
    for name, data, _ in all:
        pathlib.Path(name).write_bytes(data)
    return [(name, p) for name, _, p in all]


IMAGE = ("layer {{ name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param {{ source: 'list' root_folder: './' batch_size: {n} {own} }} "
         "transform_param {{ {transform} }} }}\n")


def check_images(images):
    for k, (name, p) in enumerate(images):
        pathlib.Path("list").write_text(f"{name} {k}\n")
        for colour in (True, False):
            x, y, _ = extract(IMAGE.format(n=1, own="" if colour else "is_color: false", transform=""))
            expected = (np.repeat(p, 3, 0) if len(p) == 1 else p) if colour else to_gray(p)
            tolerance = 1 if name.endswith("jpg") and len(p) == 3 else 0
            assert x.shape[1:] == expected.shape and abs(x[0] - expected).max() <= tolerance, (name, colour, abs(x[0] - expected).max())
            assert y[0] == k
    # other sizes, several images, mean, scale
    pathlib.Path("list").write_text("".join(f"{name} {k}\n" for k, (name, _) in enumerate(images)))
    x, y, _ = extract(IMAGE.format(n=3, own="new_height: 7 new_width: 13", transform="mean_value: [1, 2, 3] scale: 0.25"), batches=3)
    for i in range(9):
        p = images[i % 8][1]
        p = np.repeat(p, 3, 0) if len(p) == 1 else p
        expected = (resize(p.transpose(1, 2, 0), 7, 13).transpose(2, 0, 1) - np.array([1, 2, 3])[:, None, None]) * 0.25
        assert abs(x[i] - expected).max() <= 0.51 * 0.25 + (0.25 if "jpg" in images[i % 8][0] else 0), (i, abs(x[i] - expected).max())
        assert y[i] == i % 8
    print("images: read, resized, transformed")


def check_inks():
    """JPEGs of cyan, magenta, yellow and black: plain, inverted as Adobe's marker says, and that as Y, Cb, Cr and black."""
    inks = random.integers(0, 256, (2, 3, 4))
    near = np.concatenate([random.integers(60, 200, (2, 3, 1)), random.integers(100, 150, (2, 3, 2)), random.integers(0, 256, (2, 3, 1))], -1)
    bgr = jpeg_pixels(near[:, :, :3])[::8, ::8]
    for data, inverted in ((jpeg(inks), 255 - inks), (jpeg(inks, adobe=0), inks),
                           (jpeg(near, adobe=2), np.concatenate([255 - bgr[:, :, ::-1], near[:, :, 3:]], -1))):
        pathlib.Path("inks.jpg").write_bytes(data)
        pathlib.Path("list").write_text("inks.jpg 1\n")
        light = (inverted[:, :, :3] + 1) / 256 * inverted[:, :, 3:]
        expected = np.repeat(np.repeat(light[:, :, ::-1], 8, 0), 8, 1).transpose(2, 0, 1)
        for colour, planes_of in ((True, lambda p: p), (False, to_gray)):
            x, _, _ = extract(IMAGE.format(n=1, own="" if colour else "is_color: false", transform=""))
            off = abs(x[0] - planes_of(expected)).max()
            assert x.shape[1:] == planes_of(expected).shape and off <= 2.1, (colour, off)
    print("images: four inks")


def check_shuffle():
    own = "new_height: 4 new_width: 4 shuffle: true"
    runs = [extract(IMAGE.format(n=4, own=own, transform=""), batches=6, workers=w) for w in (1, 3)]
    assert (runs[0][0] == runs[1][0]).all() and (runs[0][1] == runs[1][1]).all()
    rounds = runs[0][1].reshape(3, 8)
    assert all(sorted(r) == list(range(8)) for r in rounds), rounds
    assert len({tuple(r) for r in rounds}) == 3 and tuple(range(8)) not in {tuple(r) for r in rounds}, rounds
    print("shuffling: every record once a round, rounds differ, workers do not")


def check_damage(images):
    whole = pathlib.Path("rgb.png").read_bytes()
    pathlib.Path("cut.png").write_bytes(whole[:len(whole) // 2])
    pathlib.Path("bad.jpg").write_bytes(pathlib.Path("ycc.jpg").read_bytes()[:-30])
    pathlib.Path("list").write_text("rgb.png 0\ncut.png 1\nrgb.png 2\nbad.jpg 3\nmissing.png 4\nrgb.png 5\n")
    net = IMAGE.format(n=6, own="new_height: 4 new_width: 4", transform="")
    extract(net, fails=r"list:2: \./cut\.png: is a damaged PNG")
    for batches in (1, 2):
        pathlib.Path("solver.prototxt").write_text("")
        x, y, out = extract(net, batches=batches, more=["--damaged", "skip"])
        assert list(y[:6]) == [0, 2, 2, 5, 5, 5], y
        named = [line[len("layer 'd': skipped "):].split(" is ")[0].split(" cannot ")[0] for line in out.splitlines() if "skipped" in line]
        assert named[:3] == [f"{k} damaged records so far: list:{line}: ./{file}:" for k, line, file in (
            (1, 2, "cut.png"), (2, 4, "bad.jpg"), (3, 5, "missing.png"))] and len(named) == 3 * batches, out
    # more than there is room for: all are counted
    pathlib.Path("list").write_text("rgb.png 0\n" + f"{'no' * 40}.png 1\nrgb.png 0\n" * 40)
    _, _, out = extract(net.replace("batch_size: 6", "batch_size: 81"), more=["--damaged", "skip"])
    named = [line for line in out.splitlines() if "skipped" in line]
    assert 10 < len(named) < 30 and re.search(r"skipped 40 damaged records so far: no room to name the last (\d+)", named[-1])[1] == str(41 - len(named)), out
    pathlib.Path("list").write_text("cut.png 1\n")
    extract(net, more=["--damaged", "skip"], fails="cut.png: is a damaged PNG")
    pathlib.Path("list").write_text("rgb.png 0\nrgb.png\n")
    extract(net, fails="list:2: a line must have")
    # the first ones too, whatever is wrong with them: the first that makes sense says which shape all have
    pathlib.Path("tiny.png").write_bytes(png(np.zeros((3, 3, 3), int)))
    for first, said in (("missing.png", "cannot be read"), ("cut.png", "is a damaged PNG"), ("tiny.png", "crops 4, but a record is 3 x 3")):
        pathlib.Path("list").write_text(f"{first} 7\n{first} 7\nrgb.png 1\nalpha image.png 2\n")
        net = IMAGE.format(n=4, own="", transform="crop_size: 4")
        x, y, out = extract(net, more=["--damaged", "skip"])
        assert list(y) == [1, 1, 1, 2] and x.shape == (4, 3, 4, 4) and said in out, (first, y, out)
        extract(net, fails=said)
    # where no record fits, the first one says why
    pathlib.Path("list").write_text("rgb.png 0\nrgb.png 1\nmissing.png 2\n")
    for transform, said in (("mean_value: [1, 2]", "ERR_SHAPE: .*has a mean of another shape than its records"), ("crop_size: 40", "crops 40, but a record is")):
        extract(IMAGE.format(n=2, own="", transform=transform), more=["--damaged", "skip"], fails=said + ".*; nor does one of the 2 records behind it fit")
    print("damaged images: named, or counted and skipped")


# ---- databases
DATA = ("layer {{ name: 'd' type: 'Data' top: 'x' top: 'y' data_param {{ source: '{db}' backend: {backend} batch_size: {n} {own} }} "
        "transform_param {{ {transform} }} }}\n")


def check_databases():
    shutil.rmtree("cifar_lmdb", ignore_errors=True)
    images, labels = random.integers(0, 256, (2, 5, 3, 32, 32)).astype(np.uint8), random.integers(0, 10, (2, 5)).astype(np.uint8)
    for k in range(2):
        pathlib.Path(f"batch{k}.bin").write_bytes(b"".join(bytes([labels[k, i]]) + images[k, i].tobytes() for i in range(5)))
    assert "10 records" in run("data", "convert", "--from=cifar10", "batch0.bin", "batch1.bin", "cifar_lmdb")
    expected, truth = images.reshape(10, 3, 32, 32).astype(float), labels.reshape(-1)  # red stays first, as in Caffe's databases
    forms = [("cifar_lmdb", "LMDB")]
    shutil.rmtree("cifar_level", ignore_errors=True)
    if have("LevelDB", "data", "convert", "--from=lmdb", "--leveldb", "cifar_lmdb", "cifar_level"):
        forms.append(("cifar_level", "LEVELDB"))
    for db, backend in forms:
        x, y, _ = extract(DATA.format(db=db, backend=backend, n=4, own="", transform=""), batches=5)
        order = np.arange(20) % 10
        assert (x == expected[order]).all() and (y == truth[order]).all()
        out = run("data", "show", db, "-n", 3)
        assert "10 records, 0 damaged" in out and out.count("3 x 32 x 32 bytes") == 3, out
    out = run("data", "mean", "cifar_lmdb", "mean.binaryproto")
    means = [float(v) for v in re.findall(r"mean_value: (\S+)", out)]
    assert np.allclose(means, expected.mean((0, 2, 3)), atol=1e-5), (means, expected.mean((0, 2, 3)))
    for db, backend in forms:
        net = DATA.format(db=db, backend=backend, n=10, own="", transform="mean_file: 'mean.binaryproto' scale: 2 crop_size: 20")
        x, _, _ = extract(net)
        centred = (expected - expected.mean(0)) * 2
        assert abs(x - centred[:, :, 6:26, 6:26]).max() < 1e-3
    # a mean in doubles, as programs with nets of doubles write it: BlobProto.double_data
    varint = lambda v: bytes([v]) if v < 128 else bytes([v & 127 | 128]) + varint(v >> 7)
    doubles = expected.mean(0).astype("<f8").tobytes()
    shape = b"\x08\x01\x10\x03\x18\x20\x20\x20"  # num 1, channels 3, height and width 32
    pathlib.Path("doubles.binaryproto").write_bytes(shape + b"\x42" + varint(len(doubles)) + doubles)
    net = DATA.format(db="cifar_lmdb", backend="LMDB", n=10, own="", transform="mean_file: 'doubles.binaryproto'")
    x, _, _ = extract(net)
    assert abs(x - (expected - expected.mean(0))).max() < 1e-4
    # colours that are asked of records which have no others
    for field in ("force_gray", "force_color"):
        _, _, out = extract(DATA.format(db="cifar_lmdb", backend="LMDB", n=10, own="", transform=f"{field}: true"))
        assert f"{field} of layer 'd' has no effect: the records are not encoded images" in out, out
    extract(DATA.format(db="cifar_lmdb", backend="LMDB", n=10, own="force_encoded_color: true", transform="force_gray: true"),
            fails="net.prototxt:1: layer 'd' has force_encoded_color, and force_gray in transform_param")
    # a lock file is mapped, and on a full disk the first byte of a mapped file ends the program
    assert not pathlib.Path("cifar_lmdb/lock.mdb").exists()
    # to an HDF5 file and back: the same records
    for path in ("cifar.h5", "cifar_back"):
        shutil.rmtree(path, ignore_errors=True)
        pathlib.Path(path).unlink(missing_ok=True)
    if have("HDF5", "data", "convert", "--from=lmdb", "cifar_lmdb", "cifar.h5"):
        out = run("data", "show", "cifar.h5", "-n", 3)
        assert "10 records, 0 damaged" in out and out.count("3 x 32 x 32 numbers") == 3, out
        assert "20 records" in run("data", "convert", "--from=hdf5", "cifar.h5", "cifar.h5", "cifar_back")
        x, y, _ = extract(DATA.format(db="cifar_back", backend="LMDB", n=4, own="", transform=""), batches=5)
        assert (x == expected[order]).all() and (y == truth[order]).all()
        pathlib.Path("rows").write_text("cifar.h5\n")
        x, y, _ = extract("layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: 'rows' batch_size: 4 } }\n"
                          "layer { name: 'p' type: 'Power' bottom: 'data' top: 'x' }\nlayer { name: 'q' type: 'Power' bottom: 'label' top: 'y' }\n",
                          batches=5)
        assert (x == expected[order]).all() and (y == truth[order]).all()
        run("data", "convert", "--from=lmdb", "cifar_lmdb", "cifar.h5", fails="cifar.h5: the file is there already")
    # a LevelDB that is not there: nothing is made in its place; labels that the table has no column for
    extract(DATA.format(db="no_such_lmdb", backend="LMDB", n=4, own="", transform=""), fails="no_such_lmdb: is no LMDB: there is no file data.mdb|was built without")
    extract(DATA.format(db="no_such_level", backend="LEVELDB", n=4, own="", transform=""), fails="no_such_level: is no LevelDB|was built without")
    assert not pathlib.Path("no_such_level").exists()
    shutil.rmtree("odd_lmdb", ignore_errors=True)
    pathlib.Path("probe.list").write_text("probe.png -3\nprobe.png 1000\nprobe.png 999\n")
    if have("PNG", "data", "convert", "--from=images", "probe.list", "odd_lmdb"):
        assert "of each label: 999: 1 below 0 or above 999: 2\n" in run("data", "show", "odd_lmdb")
    # from a random record on, and shuffled
    x, y, _ = extract(DATA.format(db="cifar_lmdb", backend="LMDB", n=4, own="rand_skip: 9", transform=""), batches=5)
    first = next(k for k in range(10) if (x[0] == expected[k]).all())
    assert (x == expected[(first + np.arange(20)) % 10]).all()
    x, y, _ = extract(DATA.format(db="cifar_lmdb", backend="LMDB", n=5, own="", transform=""), batches=4, phase="TRAIN", more=["--shuffle"])
    for half in range(2):
        found = [next(k for k in range(10) if (one == expected[k]).all()) for one in x[10 * half:10 * half + 10]]
        assert sorted(found) == list(range(10)) and found != list(range(10)), found
    run("data", "convert", "--from=cifar10", "batch0.bin", "cifar_lmdb", fails="the folder cannot be made")
    for form, option, name in (("cifar10", "--gray", "gray"), ("cifar10", "--resize=4x4", "height and width"), ("cifar100", "--root=x", "root"),
                               ("cifar10", "--damaged=skip", "skip_damaged"), ("lmdb", "--resize=4x4", "height and width")):
        run("data", "convert", f"--from={form}", option, "batch0.bin", "other_lmdb", fails=f"from is {form}, which has no use for {name}")
    pathlib.Path("short.bin").write_bytes(b"x" * 100)
    run("data", "convert", "--from=cifar10", "short.bin", "other_lmdb", fails="short.bin: has 100 bytes")
    assert not pathlib.Path("other_lmdb").exists()
    print("databases:", ", ".join(b for _, b in forms), "from CIFAR, mean, crop, random access")


def check_folder(images):
    """A folder for each class; and lists, brought to one size."""
    for path in ("classes", "classes_lmdb", "gray_lmdb", *pathlib.Path().glob("probe_*")):
        pathlib.Path(path).is_file() and pathlib.Path(path).unlink()
        shutil.rmtree(path, ignore_errors=True)
    for k, (name, _) in enumerate(images):
        folder = pathlib.Path("classes") / f"class{k % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, folder / name)
    run("data", "convert", "--from=images", "--resize=5x6", "classes", "classes_lmdb")
    x, y, _ = extract(DATA.format(db="classes_lmdb", backend="LMDB", n=8, own="", transform=""))
    names = sorted((k % 3, name, k) for k, (name, _) in enumerate(images))
    for i, (label, name, k) in enumerate(names):
        p = images[k][1]
        p = np.repeat(p, 3, 0) if len(p) == 1 else p
        expected = resize(p.transpose(1, 2, 0), 5, 6).transpose(2, 0, 1)
        assert y[i] == label and abs(x[i] - expected).max() <= 0.51 + ("jpg" in name), (name, abs(x[i] - expected).max())
    run("data", "convert", "--from=images", "--root=x/", "classes", "left", fails="classes is a folder: root is put before the paths of a list")
    # an error leaves nothing, and what was there before as it was
    pathlib.Path("classes/class2/zz.jpg").write_text("no image")
    for database, more in (("left", ()), ("left", ("--leveldb",)), ("left.h5", ())):
        if have("a kind of database", "data", "convert", "--from=lmdb", *more, "classes_lmdb", f"probe_{len(more)}_{database}"):
            run("data", "convert", "--from=images", "--resize=5x6", *more, "classes", database, fails="zz.jpg: is")
            assert not list(pathlib.Path().glob("left*")), list(pathlib.Path().glob("left*"))
    run("data", "convert", "--from=images", "--resize=5x6", "classes", "classes_lmdb", fails="classes_lmdb: is there already")
    assert run("data", "show", "classes_lmdb") and pathlib.Path("classes_lmdb.list").exists()
    # or what cannot be read is left out, and told
    with open("classes_lmdb.list") as f:
        lines = [f"classes{line}" for line in f]
    pathlib.Path("some.list").write_text("".join(lines[:2] + ["classes/class2/zz.jpg 2\n", "classes/none.png 0\n"] + lines[2:]))
    for path in ("some_lmdb", "again_lmdb", "rest_lmdb"):
        shutil.rmtree(path, ignore_errors=True)
    r = subprocess.run([TOOL, "data", "convert", "--from=images", "--resize=5x6", "--damaged", "skip", "some.list", "some_lmdb"], capture_output=True, text=True)
    assert r.returncode == 0 and r.stdout == f"some_lmdb: {len(lines)} records, 2 damaged ones left out\n", (r.stdout, r.stderr)
    said = r.stderr.splitlines()
    assert len(said) == 2 and said[0].startswith("skipped: some.list:3: classes/class2/zz.jpg: is") and said[1].startswith("skipped: some.list:4: "), said
    assert run("data", "convert", "--from=lmdb", "--damaged", "skip", "some_lmdb", "again_lmdb") == f"again_lmdb: {len(lines)} records\n"
    both = [extract(DATA.format(db=db, backend="LMDB", n=8, own="", transform="")) for db in ("classes_lmdb", "again_lmdb")]
    assert (both[0][0] == both[1][0]).all() and (both[0][1] == both[1][1]).all()
    # files as they are; that records have several shapes is told
    for path in ("kept_lmdb", "plain_lmdb", "same_lmdb"):
        shutil.rmtree(path, ignore_errors=True)
    for path, more in (("kept_lmdb", ["--encoded"]), ("plain_lmdb", [])):
        r = subprocess.run([TOOL, "data", "convert", "--from=images", *more, "--damaged", "skip", "some.list", path], capture_output=True, text=True)
        assert r.returncode == 0 and r.stdout == f"{path}: {len(lines)} records, 2 damaged ones left out\n", (r.stdout, r.stderr)
        assert len(re.findall(r"^record (\d+) is 3 x .*, record 0 3 x .*: nets need crop_size", r.stderr, re.M)) == 1, r.stderr
    assert all((" encoded" in line) == (path == "kept_lmdb") for path in ("kept_lmdb", "plain_lmdb") for line in run("data", "show", path).splitlines()[:-1])
    data = pathlib.Path("kept_lmdb/data.mdb").read_bytes()
    assert all(pathlib.Path(line.rsplit(" ", 1)[0]).read_bytes()[:1000] in data for line in lines)
    both = [extract(DATA.format(db=db, backend="LMDB", n=8, own="", transform="crop_size: 2 force_color: true")) for db in ("kept_lmdb", "plain_lmdb")]
    assert (both[0][0] == both[1][0]).all() and (both[0][1] == both[1][1]).all()
    for more in (["--gray", "some.list", "other_lmdb"], ["--resize=5x6", "some.list", "other_lmdb"], ["some.list", "other.h5"]):
        run("data", "convert", "--from=images", "--encoded", *more, fails="encoded keeps the files of images as they are")
    run("data", "convert", "--from=lmdb", "--encoded", "kept_lmdb", "other_lmdb", fails="from is lmdb, which has no use for encoded")
    assert "record" not in run("data", "convert", "--from=images", "--resize=5x6", "--damaged", "skip", "some.list", "same_lmdb").replace("records", "")
    pathlib.Path("none.list").write_text("classes/none.png 0\n")
    run("data", "convert", "--from=images", "--damaged", "skip", "none.list", "rest_lmdb", fails="there are no records")
    run("data", "convert", "--from=images", "--resize=5x6", "--damaged", "refuse", "some.list", "rest_lmdb", fails="some.list:3: classes/class2/zz.jpg: is")
    print("a folder of classes becomes a database")


# ---- windows
def place(box, image, crop, pad, square, mirrored):
    """What Caffe makes of a window: H x W x 3 of an image of blue, green, red, rule by rule as its layer has them."""
    def away(v):  # C's round
        return int(np.floor(abs(v) + 0.5) * np.sign(v))

    x1, y1, x2, y2 = box
    rows, cols = image.shape[:2]
    height = width = crop
    pad_x = pad_y = 0
    if pad or square:
        scale = crop / (crop - 2 * pad)
        half_h, half_w = (y2 - y1 + 1) / 2, (x2 - x1 + 1) / 2
        cx, cy = x1 + half_w, y1 + half_h
        if square:
            half_h = half_w = max(half_h, half_w)
        x1, x2, y1, y2 = away(cx - half_w * scale), away(cx + half_w * scale), away(cy - half_h * scale), away(cy + half_h * scale)
        whole_w, whole_h = x2 - x1 + 1, y2 - y1 + 1
        out_l, out_t, out_r, out_b = max(0, -x1), max(0, -y1), max(0, x2 - cols + 1), max(0, y2 - rows + 1)
        x1, x2, y1, y2 = x1 + out_l, x2 - out_r, y1 + out_t, y2 - out_b
        width, height = away((x2 - x1 + 1) * (crop / whole_w)), away((y2 - y1 + 1) * (crop / whole_h))
        pad_x, pad_y = away((out_r if mirrored else out_l) * (crop / whole_w)), away(out_t * (crop / whole_h))
        width, height = min(width, crop - pad_x), min(height, crop - pad_y)
    part = resize(image[y1:y2 + 1, x1:x2 + 1], height, width)
    out, inside = np.zeros((crop, crop, 3)), np.zeros((crop, crop), bool)
    out[pad_y:pad_y + height, pad_x:pad_x + width] = part[:, ::-1] if mirrored else part
    inside[pad_y:pad_y + height, pad_x:pad_x + width] = True
    return out, inside


def check_windows():
    shots = [random.integers(0, 256, (20, 26, 3)), random.integers(0, 256, (15, 18, 3))]
    boxes = [[(0, 0.1, (2, 3, 9, 12)), (2, 0.9, (0, 0, 7, 5)), (1, 0.5, (10, 4, 25, 19)), (3, 0.4, (3, 3, 8, 8))],
             [(4, 1.0, (5, 2, 17, 14)), (0, 0.0, (0, 0, 17, 14))]]
    with open("windows", "w") as f:
        for k, shot in enumerate(shots):
            pathlib.Path(f"shot{k}.png").write_bytes(png(shot))
            f.write(f"# {k}\nshot{k}.png\n3\n{shot.shape[0]}\n{shot.shape[1]}\n{len(boxes[k])}\n")
            for label, overlap, box in boxes[k]:
                f.write(f"{label} {overlap} {' '.join(map(str, box))}\n")
    net = ("layer {{ name: 'd' type: 'WindowData' top: 'x' top: 'y' window_data_param {{ source: 'windows' root_folder: './' batch_size: 8 "
           "fg_threshold: 0.5 bg_threshold: 0.3 fg_fraction: 0.25 {own} }} transform_param {{ crop_size: 9 mirror: true mean_value: [7, 8, 9] scale: 0.5 }} }}\n")
    for own, pad, square in (("", 0, False), ("context_pad: 2", 2, False), ("crop_mode: 'square'", 0, True), ("crop_mode: 'square' context_pad: 1", 1, True)):
        x, y, _ = extract(net.format(own=own), batches=6, phase="TRAIN")
        seen, turned = set(), 0
        for i in range(48):
            foreground, found = i % 8 >= 6, []
            for k, shot in enumerate(shots):
                for n, (label, overlap, box) in enumerate(boxes[k]):
                    if not (overlap >= 0.5 if foreground else overlap < 0.3):
                        continue
                    for mirrored in (False, True):
                        want, inside = place(box, shot[:, :, ::-1].astype(float), 9, pad, square, mirrored)
                        want = np.where(inside[:, :, None], (want - [7, 8, 9]) * 0.5, 0).transpose(2, 0, 1)
                        if abs(x[i] - want).max() <= 0.26:
                            found.append((k, n, mirrored))
                            assert y[i] == (label if foreground else 0)
            assert len(found) == 1, (own, i, found)
            seen.add(found[0][:2])
            turned += found[0][2]
        assert len(seen) == 5 and 8 < turned < 40, (seen, turned)
    pathlib.Path("windows").write_text("# 0\nshot0.png\n3\n20\n26\n1\n1 0.9 5 5 4 9\n")
    extract(net.format(own=""), fails="windows:7: a window has")
    pathlib.Path("windows").write_text("# 0\nshot0.png\n3\n20\n26\n2\n1 0.9 5 5 99 9\n0 0 1 1 2 2\n")
    extract(net.format(own=""), fails="windows:2: a window lies outside")
    print("windows: warped, with context, square, mirrored")


def check_classify():
    """A net that adds up each channel; its weights are a fillers'."""
    pathlib.Path("net.prototxt").write_text(
        "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [2, 3, 4, 4] } } }\n"
        "layer { name: 'mean' type: 'Pooling' bottom: 'data' top: 'mean' pooling_param { pool: AVE global_pooling: true } }\n"
        "layer { name: 'turned' type: 'Power' bottom: 'mean' top: 'mean' power_param { scale: -1 } include { phase: TRAIN stage: 'turned' min_level: 2 } }\n"
        "layer { name: 'p' type: 'Softmax' bottom: 'mean' top: 'p' }\n")
    run("net", "convert", "net.prototxt", "w.caffemodel")
    pathlib.Path("names").write_text("blue\ngreen\nred\n")
    for k, colour in enumerate(([0, 0, 255], [0, 255, 0], [255, 0, 0])):
        pathlib.Path(f"colour{k}.png").write_bytes(png(np.tile(np.array(colour), (6, 6, 1))))
    out = run("classify", "-m", "net.prototxt", "-W", "w.caffemodel", "--labels", "names", "--top", 2, "--scale", "0.01", "--mean", "10,20,30",
              "colour0.png", "colour1.png", "colour2.png")
    blocks = [re.findall(r"^  (\S+)  (\d)  (\w+)$", b, flags=re.M) for b in re.split(r"^colour\d.png\n", out, flags=re.M)[1:]]
    assert [b[0][2] for b in blocks] == ["blue", "green", "red"] and all(len(b) == 2 for b in blocks), out
    for k in range(3):
        v = (255 * np.eye(3)[k] - np.array([10, 20, 30])) * 0.01
        p = np.exp(v) / np.exp(v).sum()
        assert abs(float(blocks[k][0][0]) - p.max()) < 1e-4, (out, p)
    rows = [json.loads(line) for line in
            run("classify", "-m", "net.prototxt", "-W", "w.caffemodel", "--labels", "names", "--top", 2, "--scale", "0.01", "--mean", "10,20,30",
                "colour0.png", "colour1.png", "colour2.png", "--json").splitlines()]
    assert [(r["image"], r["rank"]) for r in rows] == [(f"colour{k}.png", i) for k in range(3) for i in (1, 2)], rows
    assert [(f"{r['value']:.4f}", str(r["class"]), r["label"]) for r in rows] == [line for b in blocks for line in b], rows
    for state, best in ((["--stage", "turned", "--level", "2"], "red"), (["--phase", "TRAIN", "--stage", "turned", "--level", "2"], "blue"),
                        (["--phase", "TRAIN", "--stage", "turned"], "red"), (["--phase", "TRAIN", "--level", "2"], "red")):
        out = run("classify", "-m", "net.prototxt", "-W", "w.caffemodel", "--labels", "names", "--top", 1, "colour2.png", *state)
        assert out.split()[-1] == best, (state, out)
    print("classify: three colours, states of a net")


if __name__ == "__main__":
    pathlib.Path("list").write_text("probe.png 0\n")
    pathlib.Path("probe.png").write_bytes(png(np.zeros((2, 2), int)))
    pathlib.Path("probe.jpg").write_bytes(jpeg(np.full((1, 1), 99)))
    check_databases()
    decoders = True
    for name in ("probe.png", "probe.jpg"):
        pathlib.Path("list").write_text(f"{name} 0\n")
        pathlib.Path("net.prototxt").write_text(IMAGE.format(n=1, own="", transform=""))
        decoders = have(name, "extract", "-m", "net.prototxt", "-b", "x") and decoders
    if decoders:
        images = make_images()
        check_images(images)
        check_inks()
        pathlib.Path("list").write_text("".join(f"{name} {k}\n" for k, (name, _) in enumerate(images)))
        check_shuffle()
        check_damage(images)
        check_folder(images)
        check_windows()
        check_classify()
