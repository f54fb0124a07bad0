#!/usr/bin/env bash
# Installs a build into an empty prefix, moves the prefix, and builds a small program of a user's against it: with
# find_package, shared and static, and with pkg-config. Runs each with two workers.
#
#   run.sh CMAKE BUILD_FOLDER C_COMPILER [VALUE_OF_FSANITIZE]
set -euo pipefail
cmake=$1 build=$2 cc=$3 sanitize=${4:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DMATH_WORKERS=2

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
prefix=$work/prefix
libdir=$(dirname "$(find "$prefix" -name libdmath.so)")
for file in "$libdir/libdmath.a" "$libdir/pkgconfig/dmath.pc" "$prefix/include/dmath/dmath.h" \
    "$prefix/include/dmath/check.h" "$prefix/bin/dmath-worker" "$prefix/share/doc/dmath/README.md" \
    "$prefix/share/man/man1/dmath-bench-gemm.1" \
    "$prefix/share/doc/dmath/docs/architecture.md" "$prefix/share/doc/dmath/examples/data/digits.npy"; do
    test -e "$file" || { echo "not installed: $file"; exit 1; }
done

echo "-- the library shows public names only, and has its soname"
names=$(nm -D --defined-only "$libdir/libdmath.so" | awk '{print $3}')
foreign=$(grep -v '^dm_' <<<"$names" | grep -Ev '^(_init|_fini|__bss_start|_edata|_end|__(a|l|t|ub)san.*)$' || true)
test -z "$foreign" || { echo "not public, but visible: $foreign"; exit 1; }
grep -qx dm_init <<<"$names" || { echo "dm_init is not visible"; exit 1; }
nets=$(nm -D --defined-only "$libdir/libdmath_nn.so" | awk '{print $3}')
grep -qx dm_net_open <<<"$nets" || { echo "dm_net_open is not visible"; exit 1; }
if grep -q '^nn_' <<<"$nets"; then echo "libdmath_nn.so shows names of its inside"; exit 1; fi
names+=$'\n'$nets
for header in "$prefix"/include/dmath/*.h; do
    for name in $(grep -Ev '^(typedef|static|template|#|/\*| \*)' "$header" | grep -oE '\bdm_[a-z0-9_]+\(' | tr -d '('); do
        grep -qx "$name" <<<"$names" || { echo "$name is in $(basename "$header") but not in the library"; exit 1; }
    done
done
readelf -d "$libdir/libdmath.so" | grep -q 'SONAME.*libdmath\.so\.0\]' || { echo "wrong soname"; exit 1; }

stand_in=$libdir/dmath-blas/libblas.so.3
if [[ -e $libdir/libdmath_blas.so ]]; then
    echo "-- as libblas.so.3 it finds the library beside its folder"
    ldd "$stand_in" | grep -q "libdmath.so.0 => $libdir/" || { ldd "$stand_in"; exit 1; }
fi

check() { # check NAME PROGRAM: it prints the right number
    local output
    output=$("$2") || { echo "$1: fails with status $?"; exit 1; }
    echo "$1: $output"
    test "$output" = "2 workers: 42" || { echo "expected: 2 workers: 42"; exit 1; }
}

flags=${sanitize:+-fsanitize=$sanitize}
echo "-- find_package"
"$cmake" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags" >/dev/null
"$cmake" --build "$work/build" >/dev/null
check "find_package, shared" "$work/build/user"
check "find_package, static" "$work/build/user_static"

echo "-- pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2086,SC2046
"$cc" $flags "$here/user.c" $(pkg-config --cflags --libs dmath) -Wl,-rpath,"$libdir" -o "$work/user"
check "pkg-config" "$work/user"

echo "-- the installed examples"
"$cmake" -S "$prefix/share/doc/dmath/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" >/dev/null
"$cmake" --build "$work/examples" >/dev/null
product=$("$work/examples/product")
echo "product: $product"
grep -q '^2 workers, column sums ' <<<"$product" || { echo "expected: 2 workers, column sums ..."; exit 1; }
"$work/examples/pca" "$prefix/share/doc/dmath/examples/data/digits.npy" -o "$work/pca" >/dev/null

echo "-- installed programs run from where they are"
worker=$("$prefix/bin/dmath-worker" 2>&1 || true)
grep -q "start it beside a master" <<<"$worker" || { echo "dmath-worker says: $worker"; exit 1; }

if command -v c++ >/dev/null; then
    echo "-- the header is C++ too"
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I"$prefix/include" - \
        <<<'#include <dmath/check.h>'
fi
