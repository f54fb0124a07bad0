#!/usr/bin/env python3
"""Sums gcov's counts by folder: coverage.py <build folder> [--files | --errors]. With --files a line for each file, the least
covered first. With --errors the lines of src/ and nn/ that make an error and have never run.

A source may be compiled more than once; a line or a branch counts as covered where any of its objects has run it. The branches of
an assert are left out: no test can make it fail. A process that a signal or _exit ends has no part in the counts."""

import collections
import json
import os
import re
import subprocess
import sys


def reports(build):
    counted = []
    for folder, _, files in os.walk(build):
        counted += [os.path.abspath(os.path.join(folder, f)) for f in files if f.endswith(".gcda")]
    for at in range(0, len(counted), 50):
        text = subprocess.run(["gcov", "--stdout", "--json-format", "--branch-probabilities"] + counted[at : at + 50],
                              capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


texts = {}


def text_of(name, line):
    if name not in texts:
        with open(name, encoding="utf-8") as source:
            texts[name] = source.read().splitlines()
    return texts[name][line - 1] if line <= len(texts[name]) else ""


def print_errors(lines):
    makes = re.compile(r"\b(dmi_fail|nn_layer_fail|nn_fail_at|nn_wire_refuse)\(|\bDM_ERR_")
    for folder in "src/", "nn/":
        errors = sorted(key for key in lines if key[0].startswith(folder) and makes.search(text_of(*key)))
        for key in errors:
            if lines[key] == 0:
                print(f"{key[0]}:{key[1]}: {text_of(*key).strip()}")
        print(f"{folder}: {sum(lines[key] > 0 for key in errors)} of {len(errors)} lines that make an error have run")


def main():
    build, top = sys.argv[1], os.getcwd()
    lines, branches = collections.defaultdict(int), collections.defaultdict(int)
    for report in reports(build):
        for source in report["files"]:
            name = os.path.relpath(os.path.join(report["current_working_directory"], source["file"]), top)
            if not name.startswith(("src/", "nn/")):
                continue
            for line in source["lines"]:
                lines[name, line["line_number"]] += line["count"]
                if "assert(" in text_of(name, line["line_number"]):
                    continue
                for i, branch in enumerate(line["branches"]):
                    branches[name, line["line_number"], i] += branch["count"]
    if "--errors" in sys.argv:
        print_errors(lines)
        return
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for table, at in ((branches, 0), (lines, 2)):
        for key, count in table.items():
            top = key[0].split("/")[0] + ", all"
            for row in {key[0] if "--files" in sys.argv else os.path.dirname(key[0]), top, "total"}:
                rows[row][at] += count > 0
                rows[row][at + 1] += 1
    if not rows:
        sys.exit("no counts in " + build)
    order = (lambda r: (r == "total", rows[r][0] / max(rows[r][1], 1))) if "--files" in sys.argv else (lambda r: (r == "total", r))
    print(f"{'':40} {'branches':>22} {'lines':>22}")
    for row in sorted(rows, key=order):
        covered, all_of, run, of = rows[row]
        print(f"{row:40} {covered:7} of {all_of:6} {100 * covered / max(all_of, 1):4.0f}% {run:7} of {of:6} {100 * run / max(of, 1):4.0f}%")


main()
