#!/usr/bin/env bash
# Builds and runs the tests.
#
#   scripts/test.sh                   all tests of preset dev, then some under sanitizers (preset asan, label brief)
#   scripts/test.sh ARGUMENT...       preset dev alone, with arguments for ctest (scripts/test.sh -R pca)
#   scripts/test.sh --full [...]      each program of the ops in each way, alone (tests/README.md): takes an hour
#
#   DMATH_TEST_PRESET   that preset of CMakePresets.json alone: dev, release, asan, tsan
#   DMATH_CUDA          OFF (default): CPU workers and emulated GPUs; ON: a build with CUDA. build/<preset> keeps it
#   DMATH_TEST_LIMIT_S  each preset's tests end after so many seconds (default 1500; 7200 with --full)
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/mpi-env.sh
source scripts/mpi-env.sh

product=PAIRWISE limit_s=${DMATH_TEST_LIMIT_S:-1500}
if [[ ${1:-} == --full ]]; then
    product=FULL limit_s=${DMATH_TEST_LIMIT_S:-7200}
    shift
fi
phases=()
# phase NAME COMMAND...: its time is printed at the end.
phase() {
    local name=$1 begin=$SECONDS status=0
    shift
    echo "== $name"
    "$@" || status=$?
    phases+=("$name: $((SECONDS - begin)) s$([[ $status -eq 0 ]] || echo ", status $status")")
    return "$status"
}
configure() { # PRESET
    local options=()
    if [[ ! -e build/$1/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        options+=(-G Ninja)
    fi
    cmake --preset "$1" -DDMATH_TESTS=ON -DDMATH_CUDA="${DMATH_CUDA:-OFF}" -DDMATH_TEST_PRODUCT="$product" "${options[@]}"
}
build() { # PRESET [TARGET...]
    configure "$1" && cmake --build "build/$1" --parallel "$(nproc)" ${2:+--target "${@:2}"}
}
run() { # PRESET TESTS_A_CORE [ARGUMENT...]: INT, on which ctest ends its tests; KILL if that is not enough
    timeout --signal=INT --kill-after=30 "$limit_s" \
        ctest --preset "$1" --output-on-failure --parallel $(($2 * $(nproc))) "${@:3}"
}

# beside NAME COMMAND...: begins, with what the tests leave of the machine; join waits for it and shows what it said.
beside() {
    name_beside=$1 said=$(mktemp)
    shift
    set -m # a process group of its own, which can be ended
    (renice -n 19 -p "$BASHPID" >/dev/null && "$@") >"$said" 2>&1 </dev/null &
    set +m
    pid_beside=$!
    trap 'rm -f "$said"; kill -- -"$pid_beside" 2>/dev/null || :' EXIT
}
finish() {
    local status=0
    wait "$pid_beside" || status=$?
    cat "$said"
    return "$status"
}
join() { phase "$name_beside, after it ran beside" finish; }

preset=${DMATH_TEST_PRESET:-dev} status=0 brief=false
[[ $# -gt 0 || -n ${DMATH_TEST_PRESET:-} ]] || brief=true
phase "install" scripts/install-deps.sh --test
phase "build $preset" build "$preset"
if [[ $# -gt 0 ]]; then
    phase "tests of $preset" run "$preset" 1 "$@" || status=$?
else
    # Workers wait for one another a good part of the time, so two tests a core; tests that do little else, four.
    phase "tests of $preset" run "$preset" 2 -LE waits || status=$?
    if $brief; then
        beside "build asan" build asan tests_brief
    fi
    phase "tests of $preset that wait" run "$preset" 4 -L waits || status=$?
fi
if $brief; then
    join || status=$?
    phase "tests of asan" run asan 2 -L brief || status=$?
fi
echo "== phases, ${SECONDS} s in all"
printf '   %s\n' "${phases[@]}"
exit "$status"
