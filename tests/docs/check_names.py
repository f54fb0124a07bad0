#!/usr/bin/env python3
"""Documents name only calls and types that the public headers have.

  check_names.py ROOT    every dm_name that stands in code in ROOT/README.md and ROOT/docs/*.md

And a table does not say "missing" of functions that they have. Patterns as dm_net_* count as no names. Two documents are left out: one makes operations up, one is about the inside.
"""
import pathlib
import re
import sys


def names_in_code(text):
    """(line, name) of each dm_name in `code` and in ``` blocks; dm_net_* and dm_<name> are patterns, not names."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        for code in [line] if fenced else re.findall(r"`([^`]+)`", line):
            for m in re.finditer(r"\b(dm_[a-z0-9_]+)(?![a-z0-9_*<])", code):
                if not m[1].endswith("_"):
                    yield number, m[1]


def said_missing(text):
    """(line, name) of each function in a row of a table that is nothing but names, and is missing."""
    for number, line in enumerate(text.split("\n"), 1):
        m = re.fullmatch(r"\| ((?:`\w+`[, ]*)+)\| missing\b.*", line)
        for name in re.findall(r"`(\w+)`", m[1]) if m else []:
            yield number, name


def main(root):
    headers = "".join(p.read_text() for d in ("include", "blas") for p in sorted((root / d).rglob("*.h")))
    known = set(re.findall(r"\bdm_[a-z0-9_]+", headers))
    rows = re.findall(r"^DMI_EW(?:_WITHIN)?\((\w+)|^DMI_REDUCTION\((\w+)", "".join(
        (root / "src/kernels" / p).read_text() for p in ("ewise/ewise.def", "reduce/reduce.def")), re.MULTILINE)
    known |= {"dm_" + (a or b) for a, b in rows} | {"dm_mean"}
    wrong = 0
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        if path.name in ("add-an-op.md", "architecture.md"):
            continue
        for number, name in names_in_code(path.read_text()):
            if name not in known:
                print(f"{path.relative_to(root)}:{number}: no public header has {name}")
                wrong += 1
        for number, name in said_missing(path.read_text()):
            if "dm_" + name in known:
                print(f"{path.relative_to(root)}:{number}: {name} is not missing: there is dm_{name}")
                wrong += 1
    print(f"{wrong} names are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
