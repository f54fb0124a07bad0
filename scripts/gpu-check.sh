#!/usr/bin/env bash
# Builds, tests and measures dmath on a host with GPUs, in bounded time, and leaves everything in one folder.
#
#   scripts/gpu-check.sh [--results DIR] [--binaries DIR] [--minutes N] [--gpus N] [--jobs N] [--cases X]
#                        [--no-tests] [--no-bench] [--sanitizer] [--peers] [--only PATTERN] [--sizes LIST]
#                        [--dtypes LIST] [--device NAME]
#
#   --results DIR    folder for logs and results (default: gpu-results)
#   --binaries DIR   uses programs that were built elsewhere and builds nothing. DIR is a build folder (programs in DIR,
#                    DIR/tests and DIR/bench), or has them all side by side; libraries in DIR/lib and DIR are found
#                    first. (--prebuilt is the same)
#   --minutes N      time limit for everything (default 25); each test and measurement has its own, smaller limit
#   --gpus N         number of GPUs to use (default: all)
#   --jobs N         op tests at once (default 3): they mostly wait for CUDA to start, but every process has a context
#                    on every GPU that it uses, and fourteen at once do not fit
#   --cases X        fraction of the usual number of random cases in op tests (default 0.1)
#   --sanitizer      runs under compute-sanitizer too: memcheck of the kernels and of all ops at small sizes, with
#                    separate allocations; racecheck and synccheck of the kernels
#   --peers          measures PyTorch, JAX, cuBLASMp and cuBLASXt beside dmath (bench/peers), if they are installed
#   --only PATTERN   runs only the tests and measurements whose name matches this extended regular expression; the
#                    names are those of summary.txt: test_gemm-near, ranks-auto, memcheck-test_gemm, bench-products
#   --sizes, --dtypes  of the products (default 4096,8192,16384 and bf16,f32; emulated: 256,512)
#   --device NAME    cuda, or emulated: GPUs made of threads, in a build without CUDA (in build/emulated), to try this
#                    script
#
# A failure does not stop the rest. DIR/summary.txt has a line for each test or measurement that ran, DIR/not-run.txt a
# line for each that the total time limit prevented or cut off. Exit status: 0 all succeeded; 1 one failed; 2 invalid
# options; 3 none failed, but some were not run; 77 no GPU.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

help() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
usage() {
    help >&2
    exit 2
}
# option NAME VALUE PATTERN: what NAME was given is of that form, or the script ends
option() {
    [[ $2 =~ ^($3)$ ]] || { echo "gpu-check: --$1 cannot be '$2' (--help)" >&2 && exit 2; }
}
results=gpu-results prebuilt='' minutes=25 gpus='' sizes='' dtypes=bf16,f32 jobs=3 cases=0.1 only=
tests=1 bench=1 sanitizer=0 peers=0 device=cuda
while [ $# -gt 0 ]; do
    case $1 in
    --binaries)
        [ $# -ge 2 ] || usage
        prebuilt=$2
        shift 2
        ;;
    --results | --prebuilt | --minutes | --gpus | --jobs | --cases | --only | --sizes | --dtypes | --device)
        [ $# -ge 2 ] || usage
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    --no-tests) tests=0 && shift ;;
    --no-bench) bench=0 && shift ;;
    --sanitizer) sanitizer=1 && shift ;;
    --peers) peers=1 && shift ;;
    -h | --help) help && exit 0 ;;
    *) usage ;;
    esac
done
option minutes "$minutes" '[1-9][0-9]{0,3}'
option gpus "$gpus" '([1-9][0-9]?)?'
option jobs "$jobs" '[1-9][0-9]?'
option cases "$cases" '[0-9]*\.?[0-9]+'
option device "$device" 'cuda|emulated'
[[ x =~ $only ]]
if [ $? -eq 2 ]; then
    echo "gpu-check: --only '$only' is not a regular expression" >&2
    exit 2
fi
[ "$device" = cuda ] || option gpus "$gpus" '([1-9]|[1-5][0-9]|6[0-4])?'
if [ "$device" = cuda ]; then
    folder=gpu sizes=${sizes:-4096,8192,16384}
    bench_transport=(--ring --large) bench_transport_ranks=(--ring --max 64M)
else
    folder=emulated sizes=${sizes:-256,512}
    bench_transport=("--ring=64K,1M" --max 1M) bench_transport_ranks=("${bench_transport[@]}")
fi
if ! mkdir -p "$results" || [ ! -w "$results" ]; then
    echo "gpu-check: cannot write in --results $results" >&2
    exit 2
fi
results=$(cd "$results" && pwd)
summary=$results/summary.txt
: >"$summary"
: >"$results/not-run.txt"
: >"$results/asked.txt"
# shellcheck source=scripts/mpi-env.sh
. "$top/scripts/mpi-env.sh"
export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
# NVLink multicast belongs to the host, not to the process: one that dies with it may leave the links unusable.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1

failed() { grep -c '^FAILED' "$summary"; }
skipped() { grep -c . "$results/not-run.txt"; }
deadline=$((minutes * 60))
left() { echo $((deadline - SECONDS)); }
note() { printf '%-10s %6s  %s\n' "$1" "$2" "$3" | tee -a "$summary"; }
# matches NAME: is a part of this name asked for? wanted: so, and remembered; or is it one that others rest on?
matches() { [[ -z $only || $1 =~ $only ]]; }
wanted() {
    if matches "$1"; then
        echo "$1" >>"$results/asked.txt"
    else
        [[ $1 =~ ^(configure|build|build-bench|peers-build|memcheck-sees-overrun)$ ]]
    fi
}
# part NAME SECONDS COMMAND...: a bounded command with a log of its own; 77 means skipped, as for CTest. Counts are of
# the summary's lines, so that parts may run side by side.
part() {
    local name=$1 limit=$2 begin=$SECONDS clipped=0 rc
    shift 2
    wanted "$name" || return 0
    if [ "$(left)" -lt 20 ]; then
        echo "$name" >>"$results/not-run.txt"
        return 0
    fi
    [ "$limit" -lt "$(left)" ] || { clipped=1 && limit=$(left); }
    timeout -k 10 "$limit" "$@" >"$results/$name.log" 2>&1 </dev/null
    rc=$?
    # 124 is the time's; 137, if it took as long, what had to be killed then
    if [ $clipped = 1 ] && [[ $rc =~ ^(124|137)$ ]] && [ $((SECONDS - begin)) -ge "$limit" ]; then
        echo "$name (cut off after $((SECONDS - begin)) s)" >>"$results/not-run.txt"
        return $rc
    fi
    case $rc in
    0) note ok "$((SECONDS - begin)) s" "$name" ;;
    77) note skipped "$((SECONDS - begin)) s" "$name" ;;
    *)
        note FAILED "$((SECONDS - begin)) s" "$name: status $rc$([ $rc -ne 124 ] || echo ', the time was over')"
        tail -n 12 "$results/$name.log" | cut -c1-200 | sed 's/^/    /' | tee -a "$summary"
        ;;
    esac
    return $rc
}

# ---- the machine
facts() {
    date -u
    uname -a
    (. /etc/os-release && echo "$PRETTY_NAME")
    echo "cores $(nproc), $(grep MemTotal /proc/meminfo)"
    nvidia-smi
    nvidia-smi topo -m
    nvidia-smi --query-gpu=index,name,memory.total,driver_version,clocks.sm,clocks.max.sm,power.limit --format=csv
    nvcc --version | tail -n 2
    "${CC:-cc}" --version | head -n 1
    cmake --version | head -n 1
    mpirun --version | head -n 1
    ompi_info --parsable --all 2>/dev/null | grep mpi_built_with_cuda_support:value
    python3 -c 'import torch; print("torch", torch.__version__, "nccl", torch.cuda.nccl.version())'
    python3 -c 'import jax; print("jax", jax.__version__)'
    git -C "$top" rev-parse HEAD
    true
}
facts >"$results/machine.txt" 2>&1
here=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
names=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort -u | tr '\n' ';')
if [ "$device" = emulated ]; then
    export DMATH_EMULATED_GPUS=${DMATH_EMULATED_GPUS:-${gpus:-2}}
    here=$DMATH_EMULATED_GPUS names=emulated
fi
gpus=${gpus:-$here}
note facts - "$here GPUs: $names"
if [ "$here" -eq 0 ] || [ "$gpus" -lt 1 ] || [ "$gpus" -gt "$here" ]; then
    note skipped - "everything: no GPU here, or fewer than asked for"
    exit 77
fi

# ---- the programs
build=${prebuilt:-$top/build/$folder}
if [ -n "$prebuilt" ] && [ ! -d "$prebuilt" ]; then
    echo "gpu-check: --binaries $prebuilt is no folder" >&2
    exit 2
fi
mkdir -p "$build" && build=$(cd "$build" && pwd)
if [ -n "$prebuilt" ]; then
    export LD_LIBRARY_PATH=$build/lib:$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
    options=(-DCMAKE_BUILD_TYPE=Release -DDMATH_CUDA="$([ "$device" = cuda ] && echo ON || echo OFF)")
    command -v ninja >/dev/null && options+=(-G Ninja)
    if ! pkg-config --exists cmocka; then
        options+=(-DDMATH_TESTS=OFF)
        note skipped - "the tests are not built: cmocka is not installed (--binaries brings them)"
    fi
    part configure 120 cmake -S "$top" -B "$build" "${options[@]}" &&
        part build 900 cmake --build "$build" --parallel "$(nproc)" &&
        part build-bench 300 cmake --build "$build" --target benchmarks --parallel "$(nproc)"
fi
# program NAME: its path, or nothing where it was not built
program() {
    local at
    for at in "$build/tests/$1" "$build/bench/$1" "$build/$1"; do
        if [ -f "$at" ] && [ -x "$at" ]; then
            echo "$at"
            return
        fi
    done
}
# programs FOLDER PATTERN: the names of the sources there, of those that are built
programs() {
    local source name
    for source in "$top/$1"/$2.c; do
        name=$(basename "$source" .c)
        [ -z "$(program "$name")" ] || echo "$name"
    done
}
tool=$(program dmath)
if [ -z "$tool" ]; then
    note FAILED - "no dmath in $build: there is nothing to run"
    exit 1
fi

# ---- tests: the kernels and what is below them, the ops with workers that own GPUs, in process and as ranks
limit_each=240
mapfile -t kernel_tests < <(programs tests/cuda 'test_*')
mapfile -t gpu_tests < <(programs tests/gpu 'test_*')
mapfile -t op_tests < <(programs tests/ops 'test_*')
# op_test TEST NAME SETTING... [-- LAUNCHER...]. GPUs may be shared, for some tests want a number of workers.
op_test() {
    wanted "$1-$2" || return 0
    local test=$1 name=$2 settings=(DMATH_DEVICE="$device" DMATH_SHARE_GPU=1 DMATH_TEST_CASES="$cases" DMATH_FILE_CHUNK=64K
        DMATH_PACE_BYTES=1)
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1") && shift
    done
    [ $# -eq 0 ] || shift
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    mkdir -p "$test-$name" # tests write files where they are run
    (cd "$test-$name" && part "$test-$name" "$limit_each" env "${settings[@]}" "$@" "$(program "$test")") &
}
# Does MPI say that it takes device memory? Whether that is true is then for the tests to find out.
transports=(auto mpi)
asked=0
for t in "${op_tests[@]}"; do
    if matches "$t-ranks-cuda_mpi" || matches "$t-ranks-mixed"; then
        asked=$tests
    fi
done
if [ $asked = 0 ]; then
    : # no part needs to know
elif command -v mpirun >/dev/null &&
    timeout 60 mpirun -n 3 "$tool" bench transport -O "device=$device,share_gpu=1" -t cuda_mpi --max 1 --repeats 1 \
        >"$results/cuda-mpi.log" 2>&1 </dev/null; then
    transports+=(cuda_mpi mixed)
elif command -v mpirun >/dev/null; then
    note facts - "no cuda_mpi: $(grep -m1 -o 'ERR_.*' "$results/cuda-mpi.log" || echo "see cuda-mpi.log")"
    grep -q 'does not say' "$results/cuda-mpi.log" || note FAILED - "cuda_mpi: MPI says that it takes device memory, and does not"
fi
if [ $tests = 1 ]; then
    [ -n "$only" ] || [ $((bench + peers)) = 0 ] || deadline=$((minutes * 60 * 6 / 10)) # the rest is for what follows
    mkdir -p "$results/work" && cd "$results/work" || exit 1          # tests write files where they are run
    for t in "${kernel_tests[@]}" "${gpu_tests[@]}"; do
        part "$t" "$limit_each" "$(program "$t")"
    done
    for t in "${op_tests[@]}"; do
        op_test "$t" near DMATH_TEST_WORKERS="$gpus"
    done
    # Other ways of the same: blocks that go by a kernel, steps as graphs, red zones. Two workers at least.
    two=$((gpus > 1 ? gpus : 2))
    for t in "${op_tests[@]}"; do
        [[ $t =~ ^test_(copy|permute|sum|gemm|gemm_forced|program|replicas)$ ]] || continue
        op_test "$t" push DMATH_TEST_WORKERS=$two DMATH_PUSH_KERNEL=64M
        op_test "$t" capture DMATH_TEST_WORKERS=$two DMATH_CAPTURE=1 DMATH_PUSH_KERNEL=1K
        op_test "$t" debug DMATH_TEST_WORKERS=$two DMATH_POOL_DEBUG=1 DMATH_PACE_BYTES=0
    done
    for t in "${op_tests[@]}"; do
        [ "$gpus" -lt 2 ] || op_test "$t" far DMATH_TEST_WORKERS="$gpus" DMATH_PRETEND_HOSTS=2
        for transport in "${transports[@]}"; do
            command -v mpirun >/dev/null || continue
            setting=DMATH_TRANSPORT=$transport
            [ "$transport" != mixed ] || setting=DMATH_PRETEND_HOSTS=2 # as it goes inside, and between, two hosts
            op_test "$t" "ranks-$transport" DMATH_TEST_LAUNCHED=1 "$setting" -- mpirun -n $((gpus + 1))
        done
    done
    # Forms of the product, forced with ranks; the fused one has to serve where every worker has a Hopper GPU.
    fused=0
    if [[ $device != cuda || $names =~ ^[^\;]*H[12]00[^\;]*\;?$ ]]; then
        fused=1
    fi
    for algorithm in cyclic contract panels fused; do
        if [ -n "$(program test_gemm_forced)" ] && command -v mpirun >/dev/null; then
            op_test test_gemm_forced "ranks-$algorithm" DMATH_TEST_LAUNCHED=1 DMATH_GEMM_ALGORITHM=$algorithm \
                DMATH_TEST_FUSED=$fused -- mpirun -n $((gpus + 1))
        fi
    done
    wait
    cd "$top" || exit 1
    deadline=$((minutes * 60))
fi

# ---- compute-sanitizer
# checked NAME TOOL [SETTING...] -- COMMAND...: status 9 where it has something to say. Several run side by side.
checked() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    check_one "$@" &
}
check_one() {
    local name=$1 which=$2 settings=()
    shift 2
    while [ "$1" != -- ]; do
        settings+=("$1") && shift
    done
    shift
    part "$which-$name" 240 env "${settings[@]}" compute-sanitizer --tool "$which" --error-exitcode 9 --print-limit 20 "$@"
}
# A kernel that writes behind its output must be told, or the rest says nothing.
sees_overrun() {
    env DMATH_WATCHDOG_S=0 compute-sanitizer --tool memcheck --error-exitcode 9 "$(program test_gpu_pool)" overrun \
        "device=$device,share_gpu=1,workers=2"
    [ $? -eq 9 ]
}
if [ $sanitizer = 1 ] && [ "$device" != cuda ]; then
    note skipped - "compute-sanitizer: it needs GPUs"
elif [ $sanitizer = 1 ] && ! command -v compute-sanitizer >/dev/null; then
    note skipped - "compute-sanitizer is not installed"
elif [ $sanitizer = 1 ]; then
    mkdir -p "$results/work" && cd "$results/work" || exit 1
    export -f sees_overrun program
    export build device
    [ -z "$(program test_gpu_pool)" ] || part memcheck-sees-overrun 120 bash -c sees_overrun
    for t in "${kernel_tests[@]}" test_gpu_push; do
        [ -n "$(program "$t")" ] || continue
        for which in memcheck racecheck synccheck; do
            checked "$t" $which DMATH_TEST_CASES=0.02 -- "$(program "$t")"
        done
    done
    for t in "${op_tests[@]}"; do
        mkdir -p "$t-checked" # tests write files where they are run
        cd "$t-checked" || exit 1
        checked "$t" memcheck DMATH_DEVICE="$device" DMATH_TEST_WORKERS="$gpus" DMATH_SHARE_GPU=1 DMATH_POOL_OWN=1 \
            DMATH_PUSH_KERNEL=1K DMATH_TEST_CASES=0.003 DMATH_FILE_CHUNK=64K DMATH_WATCHDOG_S=0 -- "$(program "$t")"
        cd ..
    done
    kernels=$(program bench_cuda_kernels) fused=$(program bench_cuda_fused)
    for which in memcheck racecheck synccheck; do
        [ -z "$kernels" ] || checked bench_cuda_kernels $which -- "$kernels" 0.004
        if [ -n "$fused" ] && [ $which = racecheck ]; then # CUDA 13.0: an error of the tool's own
            note skipped - "racecheck-bench_cuda_fused: it reports cuBLAS, and does not end on our kernel alone"
        elif [ -n "$fused" ]; then
            checked bench_cuda_fused $which -- "$fused" check 390 -1024
        fi
    done
    wait
    cd "$top" || exit 1
fi

# ---- measurements
small=$(tr ',' '\n' <<<"$sizes" | awk '$1 <= 4096' | paste -sd,)
if [ $bench = 1 ]; then
    on=(-O device="$device")
    # The product's bench compares with the host's BLAS, which takes long for what a GPU calls small.
    part bench-gemm 300 "$tool" bench gemm "${on[@]}" -w "$gpus" -s "${small:-1024}" -d "$dtypes" \
        -l rows/rows/rows,rows/cols/cols,cols/rows/rows
    part bench-remap 180 "$tool" bench remap "${on[@]}" -w "$gpus" -s "$sizes"
    part bench-file 180 "$tool" bench file "${on[@]}" -w "$gpus" --folder "$results" \
        --size "$([ "$device" = cuda ] && echo 8G || echo 64M)"
    part bench-dispatch-1024 120 "$tool" bench dispatch "${on[@]}" -w "$gpus" -s 1024 -d f32 --idle 0
    part bench-dispatch 120 "$tool" bench dispatch "${on[@]}" -w "$gpus"
    if [ "$gpus" -ge 2 ]; then
        part bench-transport 240 "$tool" bench transport "${on[@]}" -w "$gpus" --transports all "${bench_transport[@]}"
        if command -v mpirun >/dev/null; then
            part bench-transport-ranks 300 mpirun -n $((gpus + 1)) "$tool" bench transport "${on[@]}" --transports all \
                "${bench_transport_ranks[@]}"
            part bench-gemm-ranks 300 mpirun -n $((gpus + 1)) "$tool" bench gemm "${on[@]}" -s "${small:-1024}" \
                -d "$dtypes" -l rows/rows/rows,rows/cols/cols
        fi
    fi
    [ "$device" != cuda ] || for t in $(programs bench 'bench_cuda_*'); do
        part "$t" 180 "$(program "$t")"
    done
    if [ -n "$(program bench_reduce)" ] && [ "$device" = cuda ]; then
        part bench-reduce 240 env DMATH_DEVICE="$device" DMATH_WORKERS="$gpus" "$(program bench_reduce)" 20 1 16 64 256
    fi
    if [ -n "$(program bench_pacing)" ] && [ "$device" = cuda ]; then
        part bench-pacing 120 "$(program bench_pacing)"
    fi
    if [ -n "$(program bench_products)" ]; then # sizes that the host's BLAS would take too long for
        for type in ${dtypes//,/ }; do
            # shellcheck disable=SC2086  # a word a size
            part "bench-products-$type" 240 env DMATH_DEVICE="$device" DMATH_WORKERS="$gpus" \
                "$(program bench_products)" "$type" 21 ${sizes//,/ }
        done
    fi
fi
if [ $peers = 1 ] && [ "$device" != cuda ]; then
    note skipped - "peers: they need GPUs"
elif [ $peers = 1 ] && matches peers; then
    if [ -d "$build/peers" ]; then
        programs=$build/peers
    else
        programs=$results/peers-bin
        part peers-build 600 "$top/bench/peers/build.sh" "$programs" "$build"
    fi
    part peers "$(left)" python3 "$top/bench/peers/run.py" --results "$results/peers" --bin "$programs" --tool "$tool" \
        --gpus "$gpus" --sizes "$sizes" --dtypes "$dtypes" --minutes $(($(left) / 60))
    [ -e "$results/peers/table.md" ] && cat "$results/peers/table.md" >>"$summary"
fi

failures=$(failed) missing=$(skipped)
if [ -n "$only" ] && [ ! -s "$results/asked.txt" ] && [ "$failures" = 0 ]; then
    echo "gpu-check: no part has '$only' in its name" >&2
    exit 2
fi
word=ok status=0
[ "$missing" = 0 ] || word=incomplete status=3
[ "$failures" = 0 ] || word=failed status=1
note $word "$SECONDS s" "$failures parts failed, $missing not run for lack of time (not-run.txt); results in $results"
exit $status
