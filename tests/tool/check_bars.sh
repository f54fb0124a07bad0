#!/usr/bin/env bash
# check_bars.sh DMATH [PRODUCT]: commands that last show a bar on a terminal, and nothing elsewhere. PRODUCT: the example.
set -eu
tool=$1
matrix() { printf '\x93NUMPY\x01\x00v\x00'; printf "%-117s\n" "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"; head -c 32 /dev/zero; }

# bar TEXT COMMAND...: COMMAND shows a bar with TEXT on a terminal, and without one nothing.
bar() {
    local text=$1
    shift
    rm -rf made.*
    script -qec "$* >out.txt" bar.txt >/dev/null
    grep -q "% $text" bar.txt || { echo "no bar that says $text: $*" && exit 1; }
    rm -rf made.*
    "$@" >again.txt 2>bar.txt
    [ ! -s bar.txt ] || { echo "a bar where there is no terminal: $*" && exit 1; }
}

rm -rf made.* in.npy
matrix >in.npy
bar product "$tool" gemm in.npy in.npy -o made.npy
bar made.npy "$tool" map x+1 x=in.npy -o made.npy
printf '\0\0\10\3\0\0\0\1\0\0\0\2\0\0\0\2abcd' >images
printf '\0\0\10\1\0\0\0\1\3' >labels
rm -rf made.*
if "$tool" data convert images labels made.h5 >/dev/null 2>&1; then # a build with HDF5
    bar made.h5 "$tool" data convert images labels made.h5
fi
if [ $# -gt 1 ]; then
    DMATH_JOURNAL=calls.txt DMATH_WORKERS=2 "$2" >/dev/null
    bar calls.txt "$tool" replay calls.txt
fi
