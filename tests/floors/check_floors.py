#!/usr/bin/env python3
"""Which folder of src/ may include which, and what CUDA sources must not reach.

  check_floors.py ROOT            check the sources below ROOT/src
  check_floors.py ROOT --graph    print who includes whom, with the number of includes; ! marks what goes upwards
  check_floors.py --self-test     try the rules on small trees

A folder may include itself and the folders before it in FLOORS.
"""
import collections
import pathlib
import re
import sys
import tempfile

# From the ground up.
FLOORS = ["base", "layout", "io", "memory", "device", "kernels", "expr", "plan", "ops", "comm", "exec", "worker", "master",
          "api", "launch"]
# CUDA sources are C++, in which this header is another one, or none.
BARRED = "stdatomic.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def includes(path):
    return INCLUDE.findall(path.read_text(errors="replace"))


def sources(root):
    return sorted(p for p in (root / "src").rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh", ".inc", ".def"))


def resolve(root, path, header):
    """The file of this project that `header` names in `path`, or None."""
    for folder in (path.parent, root / "src", root / "include"):
        if (folder / header).is_file():
            return (folder / header).resolve()
    return None


def floor_of(root, path):
    parts = path.resolve().relative_to((root / "src").resolve()).parts
    return parts[0] if len(parts) > 1 else None


def edges(root):
    """(folder, header's folder, header, file), an include of another folder each."""
    src = (root / "src").resolve()
    for path in sources(root):
        for _, header in includes(path):
            target = resolve(root, path, header)
            if target and src in target.parents:
                here, there = floor_of(root, path), floor_of(root, target)
                if here != there:
                    yield here, there, str(target.relative_to(src)), str(path.relative_to(root))


def upwards(here, there):
    return FLOORS.index(there) > FLOORS.index(here)


def violations(root):
    """{(folder, header): [files]}"""
    found = collections.defaultdict(list)
    for here, there, header, path in edges(root):
        if upwards(here, there):
            found[here, header].append(path)
    return found


def unknown_folders(root):
    return sorted({f for f in (floor_of(root, p) for p in sources(root)) if f and f not in FLOORS})


def check_floors(root):
    return [f"src/{here}/ is below {header} and may not include it: {', '.join(files)}"
            for (here, header), files in sorted(violations(root).items())]


def chain_to_barred(root, start):
    """The way of includes from a CUDA source to the barred header, or None."""
    way, ready = {start: [start]}, [start]
    while ready:
        path = ready.pop(0)
        for _, header in includes(path):
            if header == BARRED:
                return [str(p.relative_to(root)) for p in way[path]] + [BARRED]
            target = resolve(root, path, header)
            if target and target not in way:
                way[target] = way[path] + [target]
                ready.append(target)
    return None


def check_cuda(root):
    problems = []
    for path in sources(root):
        chain = chain_to_barred(root, path.resolve()) if path.suffix == ".cu" else None
        if chain:
            problems.append("a CUDA source reaches " + " -> ".join(chain))
    return problems


def check(root):
    strange = [f"src/{f}/ has no place in FLOORS (tests/floors/check_floors.py)" for f in unknown_folders(root)]
    return strange or check_floors(root) + check_cuda(root)


def graph(root):
    count = collections.Counter((here, there) for here, there, _, _ in edges(root))
    for here in FLOORS:
        row = sorted((FLOORS.index(there), there, n) for (h, there), n in count.items() if h == here)
        if row:
            print(f"{here:8}", *(f"{'!' if upwards(here, there) else ''}{there}:{n}" for _, there, n in row))


def self_test():
    def problems(files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return "\n".join(check(root))

    tree = {"src/base/base.h": "", "src/plan/plan.h": '#include "base/base.h"\n', "src/exec/e.h": "",
            "src/exec/e.c": '#include "exec/e.h"\n#include "plan/plan.h"\n#include <dmath/types.h>\n'}
    up = {**tree, "src/plan/p.c": ' # include "exec/e.h"\n'}
    cuda = {**tree, "src/base/base.h": "#include <stdatomic.h>\n", "src/kernels/cuda/a.cu": '#include "b.h"\n',
            "src/kernels/cuda/b.h": '#include "base/base.h"\n'}
    plain = {**cuda, "src/base/base.h": "", "src/exec/e.h": "#include <stdatomic.h>\n"}
    for name, files, expected in (
            ("sound", tree, ""),
            ("upwards", up, "src/plan/ is below exec/e.h"),
            ("two files", {**up, "src/plan/q.c": '#include "../exec/e.h"\n'}, "src/plan/p.c, src/plan/q.c"),
            ("strange", {**tree, "src/attic/a.c": ""}, "src/attic/ has no place"),
            ("cuda", cuda, "src/kernels/cuda/a.cu -> src/kernels/cuda/b.h -> src/base/base.h -> stdatomic.h"),
            ("not cuda", plain, "")):
        got = problems(files)
        if (expected not in got) or (bool(expected) != bool(got)):
            sys.exit(f"self-test, {name}: expected '{expected}', got '{got}'")
    print("self-test: 6 trees right")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments or arguments[0].startswith("-") or arguments[1:] not in ([], ["--graph"]):
        sys.exit(__doc__)
    root = pathlib.Path(arguments[0]).resolve()
    if arguments[1:] == ["--graph"]:
        return graph(root)
    found = check(root)
    print("\n".join(found) or f"{len(sources(root))} sources, no include goes upwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
