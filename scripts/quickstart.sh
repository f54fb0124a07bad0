#!/usr/bin/env bash
# From a fresh checkout to a result: installs what is missing, builds, computes the principal components of
# examples/data/digits.npy with four workers, first as threads of one process, then as processes under mpirun, and
# compares both with NumPy. On CPUs; DMATH_CUDA=ON builds for GPUs too (docs/gpu-hosts.md). The build folder,
# build/quickstart, is its own: what is installed is built as README.md says.
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

build=build/quickstart
step "Build ($build)"
options=()
if [[ ! -e $build/CMakeCache.txt ]]; then
    command -v ninja >/dev/null && options+=(-G Ninja)
    # The unit tests are scripts/test.sh's matter.
    pkg-config --exists cmocka || options+=(-DDMATH_TESTS=OFF)
fi
run cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DDMATH_CUDA="${DMATH_CUDA:-OFF}" "${options[@]}"
run cmake --build "$build" --target pca dmath-worker --parallel "$(nproc)"

data=examples/data/digits.npy
pca=$build/examples/pca
out=$build/results
mkdir -p "$out"

step "Four workers in one process"
run env DMATH_WORKERS=4 DMATH_DEVICE=cpu "$pca" "$data" -o "$out/threads"
step "Four workers under mpirun, and rank 0, the master"
run env DMATH_DEVICE=cpu mpirun -n 5 "$pca" "$data" -o "$out/mpirun"
step "Comparison with NumPy"
run "$python" examples/check_pca.py "$data" "$out/threads"
run "$python" examples/check_pca.py "$data" "$out/mpirun"

step "Done"
echo "The digits, projected on their first two components: $PWD/$out/threads/pca.svg"
