#!/usr/bin/env python3
"""The table of elementwise functions uses the vector code that there is. A row that calls the C library in its place has the
same values, so that no comparison finds it; it is only several times slower.

  check_own.py ROOT    dmi_f32_<name> and dmi_f64_<name> of ROOT/src/kernels/ewise/ewise_*_cpu.h, and OWN(<name>) of ewise.def
"""
import pathlib
import re
import sys


def main(folder):
    headers = "".join(p.read_text() for p in sorted(folder.glob("ewise_*_cpu.h")))
    table = (folder / "ewise.def").read_text()
    rows = table[table.index("*/"):]  # what the comment at its head says is no row
    used = set(re.findall(r"\bOWN\((\w+)\)", rows))
    wrong = []
    for kind in "f32", "f64":
        there = set(re.findall(rf"^DMI_EWISE_FN \w+ dmi_{kind}_(\w+)\(", headers, re.MULTILINE))
        wrong += [f"ewise.def: no row uses OWN({name}), but there is dmi_{kind}_{name}" for name in sorted(there - used)]
        wrong += [f"ewise.def: OWN({name}), but there is no dmi_{kind}_{name}" for name in sorted(used - there)]
    wrong += [f"ewise.def: FN({name}), but there is OWN({name})" for name in sorted(used & set(re.findall(r"\bFN\((\w+)\)", rows)))]
    print("\n".join(wrong) if wrong else f"{len(used)} functions of vector code, all of them used")
    return 1 if wrong or not used else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) / "src/kernels/ewise"))
