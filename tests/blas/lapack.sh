#!/usr/bin/env bash
# Netlib's testers of LAPACK on libdmath_blas with every call of BLAS on the workers, beside the same without it.
#
#   lapack.sh LIBRARY [TEST...]
#
# TEST: a type and a file of the testers' (d:svd, z:zec), or a type and lin or rfp: equations (d:lin), or a type and one path of
# lin by its name in the file (d:DGE), or d:paths: each of them, one after the other. Default: what takes
# less than half a minute; d:lin with DMATH_BLAS_THRESHOLD=2000 takes a minute. LAPACK is Netlib's, which calls BLAS by its names alone. From Debian's packages liblapack-test and liblapack3;
# status 77: they are not there. Status 1: a test fails that does not fail without the library, or one was not run.
#
#   DMATH_BLAS_THRESHOLD   default 0
#   LIMIT_S                each program ends after so many seconds (default 300)
set -euo pipefail
library=$(realpath "$1")
shift
folder=$(dirname "$(compgen -G '/usr/lib/*/lapack/xeigtstd' || echo none/none)")
if [[ ! -x $folder/xeigtstd || ! -e $folder/liblapack.so.3 ]]; then
    echo "no testers: install liblapack-test and liblapack3"
    exit 77
fi
if [[ $# -eq 0 ]]; then
    for t in s d c z; do
        set -- "$@" "$t:glm" "$t:gqr" "$t:gsv" "$t:lse" "$t:csd" "$t:${t}sb"
    done
fi
export DMATH_BLAS_THRESHOLD=${DMATH_BLAS_THRESHOLD:-0} DMATH_WORKERS=${DMATH_WORKERS:-2}
export LD_LIBRARY_PATH=$folder OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# summary FILE: tests run, failed, and lines that report an error
summary() {
    awk '
        /passed the (threshold|tests)|PASSED THE/ { gsub(/[(]/, " "); for (i = 2; i <= NF; i++) if ($i == "tests") run += $(i - 1) }
        /failed to pass the threshold/ { for (i = 2; i < NF; i++) if ($i == "out") { failed += $(i - 1); run += $(i + 2) } }
        /error (messages|code)|FAILED|did not|INFO=/ { errors++ }
        END { printf "%d run, %d fail, %d errors", run, failed, errors }' "$1"
}
# path_of FILE PATH: the file with that path alone
path_of() {
    awk -v path="$2" '!/^[A-Z][A-Z0-9][A-Z0-9]( |$)/ || $1 == path' "$1"
}
tests=()
for test in "$@"; do
    case $test in
    *:paths) mapfile -t -O "${#tests[@]}" tests < <(awk -v t="${test%%:*}" '/^[A-Z][A-Z0-9][A-Z0-9]( |$)/ { print t ":" $1 }' \
        "$folder/${test%%:*}test.in") ;;
    *) tests+=("$test") ;;
    esac
done
status=0
for test in "${tests[@]}"; do
    type=${test%%:*} name=${test#*:}
    case $name in
    [A-Z]*) program=xlintst$type input=$work/$name.in; path_of "$folder/${type}test.in" "$name" >"$input" ;;
    lin) program=xlintst$type input=$folder/${type}test.in ;;
    rfp) program=xlintstrf$type input=$folder/${type}test_rfp.in ;;
    *) program=xeigtst$type input=$folder/$name.in ;;
    esac
    (cd "$work" && "$folder/$program" <"$input" >plain 2>&1) || true
    begin=$SECONDS ended=""
    (cd "$work" && LD_PRELOAD=$library timeout "${LIMIT_S:-300}" "$folder/$program" <"$input" >ours 2>&1) ||
        ended="; ended with status $?"
    plain=$(summary "$work/plain") ours=$(summary "$work/ours")
    grep -q 'libdmath_blas' "$work/ours" && ended+="; $(grep -m1 'libdmath_blas' "$work/ours")"
    verdict=same
    if [[ $plain != "$ours" || -n $ended ]]; then
        verdict="OTHER than without: $plain$ended" status=1
    fi
    echo "$test: $ours, $((SECONDS - begin)) s, $verdict"
done
exit "$status"
