#!/usr/bin/env bash
# From a fresh checkout to a result: installs what is missing, builds, computes the principal components of
# examples/data/digits.npy with four workers, first as threads of one process, then as processes under mpirun, and
# compares both with NumPy. Where there are nvcc and a GPU it builds for GPUs, and the workers are the host's GPUs;
# DMATH_CUDA=OFF leaves them out (docs/gpu-hosts.md). The build folder, build/quickstart, is its own: what is installed is
# built as README.md says.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/mpi-env.sh
scripts/install-deps.sh

step() { printf '\n== %s\n' "$*"; }
run() {
    echo "+ $*"
    "$@"
}
python=python3
"$python" -c 'import numpy' >/dev/null 2>&1 || python=/usr/bin/python3

# GPUs: how many the driver shows, and whether there is a compiler for them.
gpus=$({ nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU ' || true)
if [[ -z ${CUDACXX:-} ]] && ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi
have_nvcc=no
if command -v "${CUDACXX:-nvcc}" >/dev/null; then
    have_nvcc=yes
fi
if [[ -n ${DMATH_CUDA:-} ]]; then
    cuda=$DMATH_CUDA
elif ((gpus > 0)) && [[ $have_nvcc == yes ]]; then
    cuda=AUTO
else
    cuda=OFF
fi

build=build/quickstart
step "Build ($build)"
echo "GPUs: $gpus; nvcc: $have_nvcc; so DMATH_CUDA=$cuda"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
options=()
if [[ ! -e $build/CMakeCache.txt ]]; then
    command -v ninja >/dev/null && options+=(-G Ninja)
    # The unit tests are scripts/test.sh's matter.
    pkg-config --exists cmocka || options+=(-DDMATH_TESTS=OFF)
fi
run cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DDMATH_CUDA="$cuda" "${options[@]}" | tee "$log"
setting=(DMATH_DEVICE=cpu DMATH_WORKERS=4)
what="four workers on CPU cores"
if ((gpus > 0)) && grep -q 'CUDA backend: nvcc' "$log"; then
    setting=(DMATH_DEVICE=cuda)
    what="a worker a GPU"
fi
echo "Workers: $what"
run cmake --build "$build" --target pca dmath-worker --parallel "$(nproc)"

data=examples/data/digits.npy
pca=$build/examples/pca
out=$build/results
mkdir -p "$out"

step "In one process: $what"
run env "${setting[@]}" "$pca" "$data" -o "$out/threads" | tee "$log"
workers=$(sed -n 's/.* on \([0-9]*\) workers$/\1/p' "$log")
step "Under mpirun, and rank 0, the master: $what"
run env "${setting[0]}" mpirun -n "$((workers + 1))" "$pca" "$data" -o "$out/mpirun"
step "Comparison with NumPy"
run "$python" examples/check_pca.py "$data" "$out/threads"
run "$python" examples/check_pca.py "$data" "$out/mpirun"

step "Done"
echo "The digits, projected on their first two components: $PWD/$out/threads/pca.svg"
