#!/bin/bash
# docs/add-an-op.md says that an elementwise function is a row of ewise.def and a line of ewise.h: adds both to copies of the
# two files, and compiles what reads them. A row alone, or a line alone, must not pass.
#   check_guide.sh ROOT COMPILER FLAG...
set -u
root=$1 compiler=$2 failed=0
shift 2
rm -rf guide && mkdir -p guide/kernels/ewise guide/dmath
row='DMI_EW(guide_row, BINARY, FLOAT, COLD, FN(fmax)(A, B) + LIT(1))'
line='#define DM_EWISE_2_MAP(X2) X2(guide_row)'
sources=(src/kernels/ewise/ewise_rows.c src/kernels/ewise/ewise_f64_cpu.c src/ops/ewise.c tools/dmath_bench_op_ewise.c)

compiles() { # all of the sources, with the copies before the real ones
    local source
    for source in "${sources[@]}"; do
        "$compiler" -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Iguide "$@" "$root/$source" 2>>guide/said.txt || return 1
    done
}
copies() { # is there the row, is there the line?
    cp "$root/src/kernels/ewise/ewise.def" guide/kernels/ewise/
    cp "$root/include/dmath/ewise.h" guide/dmath/
    [ "$1" = 0 ] || echo "$row" >>guide/kernels/ewise/ewise.def
    [ "$2" = 0 ] || sed -i "s/#define DM_EWISE_2_MAP(X2) /$line/; s/X2(guide_row) *\\\\/X2(guide_row) \\\\/" guide/dmath/ewise.h
    grep -q "guide_row" guide/dmath/ewise.h || [ "$2" = 0 ]
}
copies 1 1 && compiles "$@" || { echo "a row and a line do not compile:"; cat guide/said.txt; failed=1; }
copies 0 1 && compiles "$@" && { echo "a line without a row compiles"; failed=1; }
exit $failed
