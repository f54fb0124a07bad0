#!/usr/bin/env bash
# Op programs as ranks under mpirun, built with ThreadSanitizer. It sees the threads of each rank (communication, compute,
# MPI's), not what passes between ranks.
#
#   scripts/tsan-ranks.sh [--build DIR] [--ranks N] [--cases FACTOR] [PROGRAM...]
#
#   --build DIR      which build (default build/tsan: cmake --preset tsan && cmake --build --preset tsan --target test_ops)
#   --ranks N        ranks, one of them the master (default 4)
#   --cases FACTOR   of the random cases (default 0.05)
#   PROGRAM          of test_ops --list, without test_ (default: copy gemm sum map program)
#
# Each program runs with every transport of one host. What Open MPI, which is not built for ThreadSanitizer, does among itself is
# left out (scripts/suppressions/tsan-ranks.supp). Reports are in tsan-ranks.log.*, one file a process. Status: 0, 1 if
# there is a report, or a program fails or does not pass its tests, 2 wrong usage.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
help() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

build=$top/build/tsan ranks=4 cases=0.05
while [ $# -gt 0 ]; do
    case $1 in
    --build | --ranks | --cases)
        [ $# -ge 2 ] || { help >&2 && exit 2; }
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    -h | --help) help && exit 0 ;;
    -*) help >&2 && exit 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- copy gemm sum map program
program=$(realpath -m "$build")/tests/test_ops
[ -x "$program" ] || { echo "tsan-ranks: there is no $program" >&2 && exit 2; }
# shellcheck source=scripts/mpi-env.sh
. "$top/scripts/mpi-env.sh"
log=$PWD/tsan-ranks.log
rm -f "$log".*
export DMATH_TEST_LAUNCHED=1 DMATH_TEST_CASES=$cases DMATH_TEST_LISTS=0.05
suppressions=$top/scripts/suppressions/tsan-ranks.supp
export TSAN_OPTIONS="suppressions=$suppressions:halt_on_error=0:exitcode=0:log_path=$log"

status=0
for transport in auto direct mpi; do
    for name in "$@"; do
        DMATH_TRANSPORT=$transport timeout 600 mpirun -n "$ranks" "$program" "$name" > tsan-ranks.out 2>&1
        result=$?
        passed=$(grep -c '^\[       OK' tsan-ranks.out)
        echo "$name, $ranks ranks, transport $transport: status $result, $passed tests passed"
        [ $result -eq 0 ] && [ "$passed" -gt 0 ] || { tail -n 20 tsan-ranks.out && status=1; }
    done
done
reports=$(cat "$log".* 2> /dev/null | grep -c 'WARNING: ThreadSanitizer\|^==[0-9]*==')
echo "$reports reports"
[ "$reports" -eq 0 ] || { cat "$log".* | grep '^SUMMARY\|^==[0-9]*==' | sort | uniq -c | sort -rn && status=1; }
exit $status
