#!/bin/bash
# Branches and lines covered, for each folder of src/ and nn/: scripts/coverage.sh [ctest options], for instance -R 'test_(npy|config)'.
# Without options the whole suite runs, which takes longer than in a build without counters. Counts of earlier runs are dropped.
# FAULTS=1: all points of test_faults, too. TARGETS: builds those alone.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/coverage
# A branch of the source is to count once, not once for each function that it is inlined into. -march=native: pieces of code
# for wide vectors are functions of their own then, and must agree with their callers on how vectors are passed.
flags="-O1 --coverage -fprofile-update=atomic -fno-inline -Dalways_inline=__unused__ -march=native -include $PWD/scripts/coverage.h"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="$flags" -DDMATH_CUDA=OFF -DDMATH_TESTS=ON >/dev/null
if [ -n "${TARGETS:-}" ]; then # those alone
    # shellcheck disable=SC2086 # one word a target
    ninja -C $build $TARGETS
else
    ninja -C $build
fi
find $build -name '*.gcda' -delete
status=0
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh
ctest --test-dir $build --output-on-failure -j "$(nproc)" "$@" || status=$?
if [ -n "${FAULTS:-}" ]; then # every allocation that can fail: some minutes more
    DMATH_TEST_FAULTS=all $build/tests/test_faults || status=$?
fi
python3 scripts/coverage.py $build
exit $status
