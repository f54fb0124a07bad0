#!/usr/bin/env bash
# Long random runs of the op tests: every op, in process and over both transports and a mixture, with new seeds until
# the time is over.   soak.sh [MINUTES [SEED [BUILD]]]    Prints every command; stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h | --help) sed -n '2,3s/^# //p' "$0" && exit 0 ;; esac
minutes=${1:-30} seed=${2:-1} build=${3:-build/release}
tests=(test_add test_axpby test_copy test_permute test_fill test_gemm test_multiply test_sum test_unary test_array
       test_read test_write test_load test_save test_program test_apply
       test_replicas)
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh
end=$(($(date +%s) + minutes * 60)) runs=0
run() { # description, command...
    local what=$1
    shift
    echo "$what: DMATH_TEST_SEED=$seed $*"
    DMATH_TEST_SEED=$seed timeout 600 "$@" >soak.log 2>&1 || {
        tail -40 soak.log
        echo "soak: FAILED with seed $seed after $runs runs (soak.log)"
        exit 1
    }
    runs=$((runs + 1))
}
while [ "$(date +%s)" -lt $end ]; do
    for t in "${tests[@]}"; do
        p=$build/tests/$t
        [ -x "$p" ] || continue
        [ "$(date +%s)" -lt $end ] || break
        run "in process" env DMATH_TEST_CASES="${DMATH_TEST_CASES:-2}" "$p"
        for setting in DMATH_TRANSPORT=direct DMATH_TRANSPORT=mpi DMATH_PRETEND_HOSTS=2 DMATH_PRETEND_HOSTS=3; do
            run "${setting#DMATH_}" env $setting DMATH_TEST_LAUNCHED=1 mpirun -n $((3 + seed % 6)) "$p"
        done
    done
    last=$seed seed=$((seed + 1))
done
rm -f soak.log
echo "soak: $runs runs without a failure, last seed ${last:-none}"
