#!/bin/bash
# Fuzzes what reads foreign bytes: scripts/fuzz.sh [seconds for each target] [seed] [target...]. Needs clang 14 or newer.
# The targets journal and frames need the whole library with sanitizers, so they are built, in build/fuzz-library, and run only if
# named.
# Prints the seed. What it finds lies in build/fuzz/found; repeat one with build/fuzz/tests/fuzz/fuzz_NAME FILE.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
seed=${2:-$(($(date +%s) % 1000000000))}
shift $(($# > 2 ? 2 : $#))
targets=${*:-npy manifest config expr text wire}
# configure FOLDER OPTION...
configure() {
    CC=${CC:-clang} cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O2 -g" -DDMATH_FUZZ=ON -DDMATH_TESTS=OFF -DDMATH_EXAMPLES=OFF \
        -DDMATH_CUDA=OFF "${@:2}" >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
    mkdir -p "$1/found"
}
mkdir -p build
echo "seed $seed, $seconds s for each of: $targets"
bad=0
for target in $targets; do
    build=build/fuzz options=() run=() longest=4096
    case $target in
    npy | frames | journal) longest=1024 ;; # longer ones say nothing new, and take longer
    manifest) longest=1400 ;;
    esac
    if [ "$target" = journal ] || [ "$target" = frames ]; then
        build=build/fuzz-library options=(-DDMATH_SANITIZE=address,undefined)
        run=(-detect_leaks=0 -entropic=0 -reload=0) # leaks: at the end, not behind each input, for its session or worker goes on
    fi
    if [ "$target" = frames ]; then
        run+=(-close_fd_mask=2) # each refusal is an error with a line in the log; what is found is still reported
    fi
    configure $build "${options[@]}"
    ninja -C $build "fuzz_$target" >$build.log 2>&1 || { cat $build.log; exit 1; }
    corpus=$build/corpus/$target # of earlier runs too
    mkdir -p "$corpus"
    if [ "$target" = journal ] && ! DMATH_FUZZ_EVERY=1 $build/tests/fuzz/fuzz_journal -runs=0 -detect_leaks=0 tests/fuzz/seeds/journal >$build/seeds.log 2>&1; then
        echo "$target: its seeds fail where all calls are made"
        tail -40 $build/seeds.log
        bad=1
    fi
    # Short stacks of allocations and a small quarantine: an input allocates little, and both cost as much as the parsing.
    if ASAN_OPTIONS=detect_leaks=1:malloc_context_size=4:quarantine_size_mb=8:thread_local_quarantine_size_kb=64 $build/tests/fuzz/fuzz_"$target" -seed="$seed" -max_total_time="$seconds" -max_len="$longest" \
        -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 "${run[@]}" -dict=tests/fuzz/"$target".dict \
        -artifact_prefix=$build/found/"$target"- "$corpus" tests/fuzz/seeds/"$target" >$build/"$target".log 2>&1; then
        echo "$target: $(grep -o 'number_of_executed_units: .*' $build/"$target".log), $(grep -o 'cov: [0-9]*' $build/"$target".log | tail -1)"
    else
        echo "$target: found something"
        tail -40 $build/"$target".log
        bad=1
    fi
done
exit $bad
