#!/usr/bin/env python3
"""Plants faults in a copy of the sources, one at a time, and says which tests see them.

  scripts/plant-faults.py [TABLE ...] [--only REGEX] [--count N [--seed S]] [--minutes M] [--folder FOLDER] [--cmake=OPTION ...]
  scripts/plant-faults.py [TABLE ...] --check | --list

The files that git knows are copied to FOLDER (build/faults), as they are in the working tree, and built there by the preset dev without
CUDA; the copy stays for the next time. All tests that the chosen faults name must pass once. Then, for each fault: the edit, a build of
what its tests run, the tests, and the edit taken out. With ccache a fault takes some seconds on two cores, in a table (*.def) a minute
or two.

A TABLE (default: all of tests/faults/*.txt) has a block of lines for each fault, and an empty line behind it:

  rule: what is right                       or   fault: what is wrong
  file: the file that is changed
  from: a piece of it, in one line, which it has once
  to:   what stands there instead; file, from and to may come again
  test: tests (names of CTest), one of which must fail; such a line may come again

--check only says whether each fault can still be planted. Prints a line a fault; a test that runs into its limit of time has failed.
Status: 0 all were seen; 1 some were not, or cannot be planted; 2 wrong usage, or tests that fail without a fault.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST, EDIT = ("rule", "fault"), ("file", "from", "to")


class Fault:
    def __init__(self, place, key, words):
        self.place, self.words = place, f"not so: {words}" if key == "rule" else words
        self.edits, self.tests = [], []  # [(file, from, to)]; [[test, ...], ...]: one of each list must fail

    def all_tests(self):
        return [t for any_of in self.tests for t in any_of]


def read_table(path):
    faults, one, edit = [], None, {}
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            if one and (edit or not one.edits or not one.tests):
                sys.exit(f"{one.place}: a fault needs rule or fault, file, from, to and test")
            faults += [one] if one else []
            one = None
            continue
        key, _, value = (part.strip() for part in line.partition(":"))
        if key not in (*FIRST, *EDIT, "test") or not (value or key == "to") or (key in FIRST) != (one is None):
            sys.exit(f"{path}:{number}: a line begins with {', '.join(FIRST + EDIT)} or test, and a block with rule or fault")
        if key in FIRST:
            one = Fault(f"{path.name}:{number}", key, value)
        elif key == "test":
            one.tests.append(value.split())
        else:
            edit[key] = value
            if len(edit) == len(EDIT):
                one.edits.append(tuple(edit[k] for k in EDIT))
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
    """The copy, how it is built, and its tests."""

    def __init__(self, folder, options):
        self.source = folder / "source"
        self.build = self.source / "build/dev"
        self.source.mkdir(parents=True, exist_ok=True)
        copy_sources(self.source)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("DMATH_")}
        self.environment.update(CCACHE_BASEDIR=str(self.source), CCACHE_NOHASHDIR="1")
        self.ninja = shutil.which("ninja") is not None
        tools = ["-G", "Ninja"] if self.ninja else []
        tools += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.run(["cmake", "--preset", "dev", "-DDMATH_TESTS=ON", "-DDMATH_CUDA=OFF", *tools, *options], check=True)
        self.run(["cmake", "--build", str(self.build), "--parallel", str(os.cpu_count())], check=True)  # CTest knows no command before
        self.targets = set(re.findall(r"[\w-]+", self.run(["cmake", "--build", str(self.build), "--target", "help"]).stdout))
        listed = self.run(["ctest", "--test-dir", str(self.build), "--show-only=json-v1"], check=True)
        self.test = {t["name"]: t for t in json.loads(listed.stdout)["tests"]}

    def run(self, command, check=False):
        done = subprocess.run(["bash", "-c", 'source scripts/mpi-env.sh; exec "$@"', "-", *command], cwd=self.source,
                              env=self.environment, capture_output=True, text=True)
        if check and done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def targets_of(self, test):
        """What a test needs: the programs and libraries of the build that its command names."""
        command = self.test[test]["command"]
        files = [os.path.basename(os.path.realpath(part)) for part in command if str(self.build) in part]
        names = {{"dmath": "dmath_tool"}.get(f, re.sub(r"^lib|\.so.*$", "", f)) for f in files}
        targets = names & self.targets
        if "dmath" in names and self.ninja:  # which takes the word for the file of that name, the tool
            targets.add("libdmath.so")
        return targets

    def make(self, tests):
        targets = sorted({t for test in tests for t in self.targets_of(test)})
        return self.run(["cmake", "--build", str(self.build), "--parallel", str(os.cpu_count()), "--target", *targets])

    def passes(self, test):
        command = ["ctest", "--test-dir", str(self.build), "-R", f"^{test}$", "--no-tests=error", "--timeout", "300"]
        return self.run(command).returncode == 0


def try_fault(tree, fault):
    """ "seen", and by what; or what else there is to say."""
    texts = planted(tree.source, fault.edits)
    if isinstance(texts, str):
        return f"CANNOT BE PLANTED: {texts}"
    before = {path: path.read_bytes() for path in texts}
    try:
        for path, text in texts.items():
            path.write_text(text)
        made = tree.make(fault.all_tests())
        if made.returncode != 0:
            return "DOES NOT BUILD\n" + made.stdout[-1500:]
        found, begin = [], time.monotonic()
        for any_of in fault.tests:
            found.append(next((t for t in any_of if not tree.passes(t)), None))
            if found[-1] is None:
                return f"NOT SEEN by {', '.join(any_of)}"
        return f"seen by {', '.join(found)}, {time.monotonic() - begin:.1f} s"
    finally:
        for path, old in before.items():
            path.write_bytes(old)


def plant(faults, a):
    tests = sorted({t for f in faults for t in f.all_tests()})
    tree = Tree(a.folder.resolve(), a.cmake)
    strange = [t for t in tests if t not in tree.test]
    if strange:
        print(f"there are no tests {', '.join(strange)}", file=sys.stderr)
        return 2
    failing = [t for t in tests if not tree.passes(t)]
    if failing:
        print(f"these fail without any fault: {', '.join(failing)}", file=sys.stderr)
        return 2
    print(f"{len(faults)} faults, {len(tests)} tests", flush=True)
    end, tried, seen = time.monotonic() + 60 * a.minutes, 0, 0
    for f in faults:
        if time.monotonic() > end:
            print(f"the time is over before {f.place}")
            break
        said = try_fault(tree, f)
        tried, seen = tried + 1, seen + said.startswith("seen")
        first, *rest = said.splitlines()
        print("\n".join([f"{f.place:<17} {f.words}: {first}", *rest]), flush=True)
    print(f"{tried} planted, {seen} seen, {tried - seen} not")
    return 0 if seen == len(faults) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="*", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="faults whose place (TABLE:LINE), words, files or tests have this")
    parser.add_argument("--count", type=int, default=0, help="so many of them, at random")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of --count")
    parser.add_argument("--minutes", type=float, default=120, help="when no new fault is tried any more")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/faults")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="--cmake=-DNAME=VALUE")
    parser.add_argument("--check", action="store_true", help="say only whether each can be planted")
    parser.add_argument("--list", action="store_true", help="say only which they are")
    a = parser.parse_args()
    faults = [f for t in a.table or sorted((ROOT / "tests/faults").glob("*.txt")) for f in read_table(t)]
    faults = [f for f in faults if re.search(a.only, " ".join([f.place, f.words, *(e[0] for e in f.edits), *f.all_tests()]))]
    if a.count:
        faults = sorted(random.Random(a.seed).sample(faults, min(a.count, len(faults))), key=lambda f: f.place)
    if a.list:
        print("\n".join(f"{f.place}: {f.words} ({' '.join(f.all_tests())})" for f in faults))
        return 0
    if a.check:
        bad = [f"{f.place}: {why}" for f in faults if isinstance(why := planted(ROOT, f.edits), str)]
        print("\n".join([*bad, f"{len(faults)} faults, {len(bad)} cannot be planted"]))
        return 1 if bad else 0
    if not faults:
        parser.error("no fault is chosen")
    return plant(faults, a)


if __name__ == "__main__":
    sys.exit(main())
