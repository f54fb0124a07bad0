#!/usr/bin/env bash
# Netlib's testers of BLAS, level 3, on libdmath_blas with every call on the workers: Fortran's, then those of CBLAS.
#
#   netlib.sh LIBRARY TYPE [FOLDER]
#
# TYPE: s, d, c or z. FOLDER: of the testers, as Debian's package libblas-test has them. Status 77: they are not there.
set -euo pipefail
library=$1 type=$2
folder=${3:-$(dirname "$(compgen -G '/usr/lib/*/blas/xblat3d' || echo none/none)")}
if [[ ! -x $folder/xblat3$type ]]; then
    echo "no testers: install libblas-test"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export DMATH_BLAS_THRESHOLD=0 DMATH_WORKERS=${DMATH_WORKERS:-3}
case $type in s | d) calls=6 ;; *) calls=9 ;; esac

check() { # check FILE PATTERN COUNT: so many lines match
    local count
    count=$(grep -c "$2" "$1" || true)
    if [[ $count -ne $3 ]]; then
        cat "$1"
        echo "$count of $3 lines say: $2"
        exit 1
    fi
}

LD_PRELOAD=$library "$folder/xblat3$type" <"$folder/${type}blat3.in" 2>err
check "${type}blat3.out" 'PASSED THE COMPUTATIONAL TESTS' "$calls"
check "${type}blat3.out" 'PASSED THE TESTS OF ERROR-EXITS' "$calls"
check err . 0

# The testers of CBLAS need a name that only Netlib's library has; small and wrong calls go there too.
netlib=$(compgen -G '/usr/lib/*/blas/libblas.so.3' || true)
if [[ -n $netlib ]]; then
    LD_LIBRARY_PATH=$(dirname "$netlib") DMATH_BLAS_LIBRARY=$netlib LD_PRELOAD=$library \
        "$folder/x${type}cblat3" <"$folder/${type}in3" >out 2>&1
    check out 'PASSED THE .*-MAJOR *COMPUTATIONAL TESTS' $((2 * calls))
    check out 'PASSED THE TESTS OF ERROR-EXITS' "$calls"
fi
