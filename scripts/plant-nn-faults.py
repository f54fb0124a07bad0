#!/usr/bin/env python3
"""Plants the faults of a table, one at a time, and says which tests see them.

  scripts/plant-nn-faults.py [TABLE] [--only REGEX] [--folder FOLDER] [--cmake OPTION ...]
  scripts/plant-nn-faults.py [TABLE] --check

TABLE is scripts/nn-faults.txt, which says how it is written. The sources are copied to FOLDER (build/faults), built there by the
preset dev without CUDA, and stay there for the next time: nothing is changed here. For each fault the file is changed, the tests
that the table names are built and run, and must fail. --check only says whether each fault can still be planted: whether the
file has the piece once.

Ends with 1 where a fault is not seen, or cannot be planted.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELDS = ("rule", "file", "from", "to", "test")


def read_table(path):
    """[{rule, edits: [(file, from, to)], tests: [...], line}]"""
    faults, one, edit = [], None, {}
    for number, line in enumerate([*pathlib.Path(path).read_text().splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            if one and (edit or not one["edits"] or not one["tests"]):
                sys.exit(f"{path}:{one['line']}: a fault needs rule, file, from, to and test")
            faults += [one] if one else []
            one = None
            continue
        key, _, value = line.partition(": ")
        if key not in FIELDS or not value.strip() or (key == "rule") != (one is None):
            sys.exit(f"{path}:{number}: a line must begin with one of {', '.join(FIELDS)}, a block with rule")
        value = value.strip()
        if key == "rule":
            one = {"rule": value, "edits": [], "tests": [], "line": number}
        elif key == "test":
            one["tests"] += value.split()
        else:
            edit[key] = value
            if len(edit) == 3:
                one["edits"].append((edit["file"], edit["from"], edit["to"]))
                edit = {}
    return faults


def planted(root, edits):
    """The changed texts of the files; a string that says why not."""
    texts = {}
    for name, old, new in edits:
        path = root / name
        if not path.exists():
            return f"there is no file {name}"
        text = texts.get(path, path.read_text())
        if text.count(old) != 1:
            return f"{name} has '{old}' {text.count(old)} times, not once"
        texts[path] = text.replace(old, new)
    return texts


def copy_sources(to):
    """Makes `to` the same as the working tree here; files that are equal keep their times."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    names = {n for n in listed.stdout.split("\0") if n and (ROOT / n).is_file()}
    for path in [p for p in to.rglob("*") if p.is_file() and "build" not in p.relative_to(to).parts[:1]]:
        if str(path.relative_to(to)) not in names:
            path.unlink()
    for name in names:
        old, new = to / name, ROOT / name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new, old)


class Tree:
    """The copy, and how it is built and tested."""

    def __init__(self, folder, options):
        self.source = folder / "source"
        self.build = self.source / "build/dev"
        self.source.mkdir(parents=True, exist_ok=True)
        copy_sources(self.source)
        tools = ["-G", "Ninja"] if shutil.which("ninja") else []
        tools += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.run(["cmake", "--preset", "dev", "-DDMATH_TESTS=ON", "-DDMATH_CUDA=OFF", *tools, *options], check=True)
        help_text = self.run(["cmake", "--build", str(self.build), "--target", "help"]).stdout
        self.targets = set(re.findall(r"[\w-]+", help_text))

    def run(self, command, check=False):
        r = subprocess.run(["bash", "-c", 'source scripts/mpi-env.sh; exec "$@"', "-", *command], cwd=self.source, capture_output=True,
                           text=True)
        if check and r.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{r.stdout[-3000:]}{r.stderr[-3000:]}")
        return r

    def make(self, tests):
        """Programs of the same name; scripts run the tool."""
        targets = sorted({t if t in self.targets else "dmath_tool" for t in tests})
        return self.run(["cmake", "--build", str(self.build), "-j", "2", "--target", *targets])

    def passes(self, test):
        r = self.run(["ctest", "--test-dir", str(self.build), "-R", f"^{test}$", "--no-tests=error", "--timeout", "300"])
        return r.returncode == 0


def try_fault(tree, fault):
    """ "seen", or what else there is to say."""
    texts = planted(tree.source, fault["edits"])
    if isinstance(texts, str):
        return f"CANNOT BE PLANTED: {texts}"
    before = {path: path.read_bytes() for path in texts}
    try:
        for path, text in texts.items():
            path.write_text(text)
        made = tree.make(fault["tests"])
        if made.returncode != 0:
            return "DOES NOT BUILD\n" + made.stdout[-1500:]
        blind = [t for t in fault["tests"] if tree.passes(t)]
        return f"NOT SEEN by {', '.join(blind)}" if blind else "seen"
    finally:
        for path, old in before.items():
            path.write_bytes(old)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", default=ROOT / "scripts/nn-faults.txt")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="faults whose rule, file or test has this")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/faults")
    parser.add_argument("--cmake", nargs="*", default=[], help="options of cmake, such as --cmake=-DNAME=VALUE")
    a = parser.parse_args()
    faults = read_table(a.table)
    if a.check:
        bad = [f"{a.table}:{f['line']}: {why}" for f in faults if isinstance(why := planted(ROOT, f["edits"]), str)]
        print("\n".join([*bad, f"{len(faults)} faults, {len(bad)} cannot be planted"]))
        return not bad
    faults = [f for f in faults if re.search(a.only, " ".join([f["rule"], *(e[0] for e in f["edits"]), *f["tests"]]))]
    tests = sorted({t for f in faults for t in f["tests"]})
    tree = Tree(a.folder.resolve(), a.cmake)
    made = tree.make(tests)
    if made.returncode != 0:
        sys.exit(made.stdout[-3000:])
    failing = [t for t in tests if not tree.passes(t)]
    if failing:
        sys.exit(f"these fail without any fault: {', '.join(failing)}")
    seen = 0
    for f in faults:
        said = try_fault(tree, f)
        seen += said == "seen"
        first, *rest = said.splitlines()
        print("\n".join([f"{first:<10} {f['rule']}  ({' '.join(f['tests'])})", *rest]), flush=True)
    print(f"{len(faults)} faults, {seen} seen, {len(faults) - seen} not")
    return seen == len(faults)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
