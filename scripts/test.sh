#!/usr/bin/env bash
# Builds and runs the tests; arguments go to ctest (scripts/test.sh -R pca).
#
#   DMATH_TEST_PRESET   which preset of CMakePresets.json: dev (default), release, asan, tsan
#   DMATH_CUDA          OFF (default): CPU workers and emulated GPUs; ON: a build with CUDA. build/<preset> keeps it
#   DMATH_TEST_LIMIT_S  the whole run ends after so many seconds (default 1500)
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/mpi-env.sh
scripts/install-deps.sh --test

preset=${DMATH_TEST_PRESET:-dev}
options=()
if [[ ! -e build/$preset/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    options+=(-G Ninja)
fi
cmake --preset "$preset" -DDMATH_TESTS=ON -DDMATH_CUDA="${DMATH_CUDA:-OFF}" "${options[@]}"
cmake --build "build/$preset" --parallel "$(nproc)"
# INT, on which ctest ends its tests; KILL if that is not enough.
exec timeout --signal=INT --kill-after=30 "${DMATH_TEST_LIMIT_S:-1500}" \
    ctest --preset "$preset" --output-on-failure --parallel "$(nproc)" "$@"
