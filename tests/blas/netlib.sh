#!/usr/bin/env bash
# Netlib's testers of BLAS on libdmath_blas with every call on the workers: Fortran's of levels 1 to 3, and those of CBLAS.
#
#   netlib.sh LIBRARY TYPE [WHICH [FOLDER]]
#
# TYPE: s, d, c or z. WHICH: fortran, c, or all (default). FOLDER: of the testers, as Debian's package libblas-test has them. Status 77:
# they are not there.
set -euo pipefail
library=$1 type=$2 which=${3:-all}
folder=${4:-$(dirname "$(compgen -G '/usr/lib/*/blas/xblat3d' || echo none/none)")}
if [[ ! -x $folder/xblat3$type ]]; then
    echo "no testers: install libblas-test"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export DMATH_BLAS_THRESHOLD=0 DMATH_WORKERS=${DMATH_WORKERS:-3}
case $type in
s | d) one=13 two=16 three=6 ;; # routines of each level
*) one=10 two=17 three=9 ;;
esac
passed=()

check() { # check FILE PATTERN COUNT: so many lines match
    local count
    count=$(grep -c "$2" "$1" || true)
    if [[ $count -ne $3 ]]; then
        cat "$1"
        echo "$count of $3 lines say: $2"
        exit 1
    fi
}
run() { # run PROGRAM INPUT OUTPUT: nothing on stderr, but for gfortran's note on floating-point exceptions
    LD_PRELOAD=${DMATH_TEST_PRELOAD:+$DMATH_TEST_PRELOAD:}$library "$folder/$1" <"$2" >"$3" 2>err || {
        cat "$3" err
        echo "$1 ends with an error"
        exit 1
    }
    sed -i '/^Note: .* IEEE_/d' err
    check err . 0
    passed+=("$1")
}

if [[ $which != c ]]; then
    run "xblat1$type" /dev/null out
    check out 'PASS' "$one"
    check out 'FAIL' 0
    for level in 2 3; do
        [[ $level -eq 2 ]] && calls=$two || calls=$three
        run "xblat$level$type" "$folder/${type}blat$level.in" out
        check "${type}blat$level.out" 'PASSED THE COMPUTATIONAL TESTS' "$calls"
        check "${type}blat$level.out" 'PASSED THE TESTS OF ERROR-EXITS' "$calls"
    done
fi
[[ $which != fortran ]] || {
    echo "passed: ${passed[*]}"
    exit 0
}
run "x${type}cblat1" /dev/null out
check out 'PASS' 10
check out 'FAIL' 0

# The other testers of CBLAS need a name that only Netlib's library has; wrong calls go there too.
netlib=$(compgen -G '/usr/lib/*/blas/libblas.so.3' || true)
if [[ -n $netlib ]]; then
    export LD_LIBRARY_PATH DMATH_BLAS_LIBRARY=$netlib
    LD_LIBRARY_PATH=$(dirname "$netlib")
    for level in 2 3; do
        [[ $level -eq 2 ]] && calls=$two || calls=$three
        run "x${type}cblat$level" "$folder/${type}in$level" out
        check out 'PASSED THE .*COMPUTATIONAL TESTS' $((2 * calls)) # by columns and by rows
        check out 'PASSED THE TESTS OF ERROR-EXITS' "$calls"
    done
fi
echo "passed: ${passed[*]}"
