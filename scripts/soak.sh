#!/usr/bin/env bash
# Random runs of the op tests until the time is over: new seeds; in process and under mpirun; worker counts, transports,
# CPUs and emulated GPUs, memory as in a release and with red zones, forced algorithms, and options of GPUs.
#
#   scripts/soak.sh [--minutes N] [--seed S] [--filter R] [--build DIR]
#   scripts/soak.sh --sessions N [--seed S] [--build DIR]
#   scripts/soak.sh --commands N [--build DIR]
#
#   --minutes N    when no new run begins any more (default 30); a run that is under way then is cut off
#   --seed S       of the choices and of the tests (default: the time); the same seed gives the same runs
#   --filter R     programs whose name matches this extended regular expression (test_ops --list), one by one
#   --build DIR    which build (default build/dev)
#   --sessions N   instead: N sessions one after the other in a process, with random workers, options and commands, on CPUs
#                  and on emulated GPUs; descriptors, threads, mappings and memory must be flat (tests/robust/test_flat.c)
#
#   --commands N   instead: N mixed commands in one session of three workers, on CPUs and then on emulated GPUs; the same must be
#                  flat, after each tenth of them. 10 million take hours on two cores
#
# Each run has a limit and a folder of its own. A run that fails is printed as a command line that repeats it (under mpirun
# after `. scripts/mpi-env.sh`), with its log in soak-failures/; after five failures the script ends. Status: 0, 1 if a
# run failed, 2 wrong usage.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
help() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

minutes=30 seed=$(date +%s) filter='' sessions=0 commands=0 build=$top/build/dev
while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --seed | --filter | --build | --sessions | --commands)
        [ $# -ge 2 ] || { help >&2 && exit 2; }
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    -h | --help) help && exit 0 ;;
    *) help >&2 && exit 2 ;;
    esac
done
[[ $minutes =~ ^[1-9][0-9]{0,3}$ && $seed =~ ^[0-9]{1,15}$ && $sessions =~ ^[0-9]{1,6}$ && $commands =~ ^[0-9]{1,9}$ ]] || { help >&2 && exit 2; }
program=$(realpath -m "$build")/tests/test_ops
[ "$sessions$commands" = 00 ] || program=$(realpath -m "$build")/tests/test_flat
[ -x "$program" ] || { echo "soak: there is no $program: build it, or name another build with --build" >&2 && exit 2; }
for name in ${!DMATH_@}; do # only what is chosen here
    unset "$name"
done
if [ "$sessions" -gt 0 ] || [ "$commands" -gt 0 ]; then
    failed=0
    for device in cpu emulated; do
        export DMATH_DEVICE=$device DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1
        if [ "$sessions" -gt 0 ]; then
            echo "$sessions sessions, device $device, seed $seed"
            DMATH_TEST_FLAT=$(((sessions + 19) / 20)) DMATH_TEST_SEED=$seed "$program" test_sessions || failed=1
        fi
        if [ "$commands" -gt 0 ]; then
            echo "$commands commands, device $device"
            DMATH_TEST_COMMANDS=$commands "$program" test_commands || failed=1
        fi
    done
    exit $failed
fi
mapfile -t programs < <("$program" --list | grep -E -- "$filter")
[ ${#programs[@]} -gt 0 ] || { echo "soak: no program matches '$filter' (test_ops --list)" >&2 && exit 2; }
# shellcheck source=scripts/mpi-env.sh
. "$top/scripts/mpi-env.sh"
limit_s=300 most_failures=5
deadline=$((SECONDS + minutes * 60))
failures=$top/soak-failures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# random N: sets `picked` to 0 .. N-1, the same for the same seed. pick WORD...: sets `picked` to one of them.
state=$((10#$seed))
random() {
    state=$(((state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff))
    picked=$(((state >> 33) % $1))
}
pick() {
    random $#
    picked=${*:picked+1:1}
}
chance() { # PERCENT
    random 100
    [ "$picked" -lt "$1" ]
}
add() { settings+=("$@"); }
# add_one NAME VALUE...: one of the values; - leaves the default.
add_one() {
    local name=$1
    shift
    pick "$@"
    [ "$picked" = - ] || add "$name=$picked"
}

choose_gpus() {
    random "$workers"
    add DMATH_DEVICE=emulated DMATH_SHARE_GPU=1 DMATH_EMULATED_GPUS=$((picked + 1)) DMATH_FILE_CHUNK=8K DMATH_GEMM_TRANSPOSE=20
    add_one DMATH_EMULATED_DELAY_US 0 20 100
    add_one DMATH_PACE_BYTES 0 1
    add_one DMATH_PUSH_KERNEL - - 1K 64M
    add_one DMATH_CAPTURE - - 1
    [ $launched = 1 ] || add_one DMATH_POOL_OWN - - - 1
    add_one DMATH_TEST_CASES 0.03 0.1
    add_one DMATH_TEST_LISTS 0.05 0.1
}

# What to run, into settings, ranks and chosen.
choose() {
    settings=(DMATH_TEST_SEED="$seed$runs") launched=0 ranks=0
    chance 60 && launched=1
    random 8
    workers=$((picked + 1))
    if [ $launched = 1 ]; then
        ranks=$((workers + 1))
        add DMATH_TEST_LAUNCHED=1 DMATH_REPLICA_LIMIT=1M DMATH_SLAB=1M
    else
        add DMATH_TEST_WORKERS=$workers
    fi
    random 20
    add DMATH_TEST_WINDOW="$picked"
    device=cpu
    if chance 40; then
        device=emulated
        choose_gpus
    else
        add_one DMATH_TEST_CASES 0.3 1
        add_one DMATH_TEST_LISTS 0.2 1
    fi
    pick auto auto mpi hosts2 hosts3
    case $picked in
    mpi)
        [ $device$launched = emulated1 ] && messages=(cuda_mpi mpi) || messages=(mpi)
        add_one DMATH_TRANSPORT "${messages[@]}"
        ;;
    hosts*) add DMATH_PRETEND_HOSTS="${picked#hosts}" ;;
    esac
    add_one DMATH_POOL_DEBUG 0 0 1
    add_one DMATH_REDUCE_ALGORITHM - - direct scatter
    add_one DMATH_REDUCE_CHUNK - 256
    random ${#programs[@]}
    chosen=("${programs[picked]}")
    if [ -z "$filter" ] && [ $launched = 1 ] && chance 50; then
        chosen=(--all)
    elif [ "${chosen[0]}" = test_gemm_forced ]; then
        add_one DMATH_GEMM_ALGORITHM cyclic two_block ring stationary contract panels fused
    fi
}

runs=0 failed=0 cut=0
while [ $SECONDS -lt $deadline ] && [ $failed -lt $most_failures ]; do
    choose
    command=(env "${settings[@]}")
    [ $launched = 0 ] || command+=(mpirun -n "$ranks")
    command+=("$program" "${chosen[@]}")
    left=$((deadline - SECONDS)) begin=$SECONDS
    limit=$((left < limit_s ? left : limit_s))
    rm -rf "$work/run" && mkdir "$work/run"
    (cd "$work/run" && timeout -k 10 $limit "${command[@]}") >"$work/log" 2>&1 </dev/null
    rc=$?
    runs=$((runs + 1))
    if [[ $rc =~ ^(124|137)$ ]] && [ $limit -lt $limit_s ]; then
        cut=1
    elif [ $rc -ne 0 ]; then
        failed=$((failed + 1))
        mkdir -p "$failures" && cp "$work/log" "$failures/$seed-$runs.log"
        echo "FAILED, status $rc, after $((SECONDS - begin)) s: ${command[*]}"
        grep -aE "again:|FAILED|not run|rror|wrong" "$work/log" | head -n 12 | cut -c1-300 | sed 's/^/    /'
        echo "    log: $failures/$seed-$runs.log"
    else
        echo "ok $((SECONDS - begin)) s: ${command[*]:1}"
    fi
done
echo "soak: $runs runs, $failed failed$([ $cut = 0 ] || echo ', the last cut off'), seed $seed, $((SECONDS / 60)) min"
[ $failed = 0 ]
