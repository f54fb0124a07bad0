#!/usr/bin/env bash
# Builds the compiled benchmarks: bench/peers/build.sh OUT [BUILD]   (BUILD: dmath's build folder, default build/release)
#
#   OUT/dmath_gemm, OUT/dmath_reduce    dmath's own side of the comparison
#   OUT/nccl_allreduce  where CUDA's headers and NCCL are
#   OUT/cublasxt        where CUDA's headers and cuBLAS are
#   OUT/cublasmp_gemm   where nvcc, mpicc, NCCL's header and cuBLASMp are; OUT/lib then has cuBLASMp's library
#
# cuBLASMp and NVSHMEM are wheels of PyPI (nvidia-cublasmp-cu13, nvidia-nvshmem-cu13): WHEELS names a folder that has
# them; otherwise pip fetches them. NVSHMEM is for linking alone, PyTorch has it too. What cannot be built is skipped with
# a line saying why; the status is 1 only if something failed that has all it needs.
set -uo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$(realpath -m "${1:?usage: build.sh OUT [BUILD]}")
build=$(realpath -m "${2:-$top/build/release}")
cuda=${CUDA_HOME:-/usr/local/cuda}
wheels=${WHEELS:-$out/wheels}
arch=${CUDA_ARCH:-90}
status=0
mkdir -p "$out/lib"
skip() { echo "build: $1: skipped: $2"; }
built() { # NAME COMMAND...
    local name=$1
    shift
    if timeout 600 "$@" >"$out/$name.log" 2>&1; then
        echo "build: $name: built"
    else
        echo "build: $name: FAILED ($out/$name.log)"
        tail -n 5 "$out/$name.log"
        status=1
    fi
}

if [ -e "$build/libdmath.so" ]; then
    built dmath_gemm "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -I"$top/include" "$here/dmath_gemm.c" \
        -o "$out/dmath_gemm" -L"$build" -ldmath -lm -Wl,-rpath,"$build"
    built dmath_reduce "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -I"$top/include" "$here/../bench_reduce.c" \
        -o "$out/dmath_reduce" -L"$build" -ldmath -lm -Wl,-rpath,"$build"
else
    skip dmath_gemm "no libdmath.so in $build"
    skip dmath_reduce "no libdmath.so in $build"
fi

# NCCL's headers and library: CUDA's or the system's.
if [ -e "$cuda/include/nccl.h" ] || [ -e /usr/include/nccl.h ]; then
    built nccl_allreduce "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -I"$cuda/include" "$here/nccl_allreduce.c" \
        -o "$out/nccl_allreduce" -L"$cuda/lib64" -lnccl -lcudart -lm -Wl,-rpath,"$cuda/lib64"
else
    skip nccl_allreduce "no nccl.h"
fi

if [ -e "$cuda/include/cublasXt.h" ]; then
    built cublasxt "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -I"$cuda/include" "$here/cublasxt.c" -o "$out/cublasxt" \
        -L"$cuda/lib64" -lcublas -lcudart -lpthread -lm -Wl,-rpath,"$cuda/lib64"
else
    skip cublasxt "no cublasXt.h in $cuda/include"
fi

# cuBLASMp: 0.7, whose overlap takes its memory from NVSHMEM; later versions have another interface.
cublasmp() {
    local wheel tree=$out/tree
    [ -x "$cuda/bin/nvcc" ] || { skip cublasmp_gemm "no nvcc in $cuda/bin" && return 0; }
    command -v mpicc >/dev/null || { skip cublasmp_gemm "no mpicc" && return 0; }
    [ -e "$cuda/include/nccl.h" ] || [ -e /usr/include/nccl.h ] || { skip cublasmp_gemm "no nccl.h" && return 0; }
    mkdir -p "$wheels"
    for wheel in nvidia-cublasmp-cu13==0.7.0.125 nvidia-nvshmem-cu13==3.4.5; do
        local name=${wheel%%==*}
        if ! compgen -G "$wheels/${name//-/_}-*.whl" >/dev/null &&
            ! timeout 120 python3 -m pip download -q --no-deps -d "$wheels" "$wheel" >"$out/wheels.log" 2>&1; then
            skip cublasmp_gemm "no wheel of $name in $wheels, and pip cannot fetch it"
            return
        fi
        timeout 120 python3 -m zipfile -e "$(compgen -G "$wheels/${name//-/_}-*.whl" | head -n 1)" "$tree"
    done
    cp "$tree/nvidia/cublasmp/cu13/lib/libcublasmp.so.0" "$out/lib/" || { status=1 && return 0; }
    local -a compile link
    read -ra compile <<<"$(mpicc -showme:compile)"
    read -ra link <<<"$(mpicc -showme:link)"
    local i
    for i in "${!link[@]}"; do # nvcc hands options of the linker on only with a word before them
        case ${link[$i]} in -Wl,*) link[i]="-Xlinker=${link[$i]#-Wl,}" ;; -pthread) link[i]=-lpthread ;; esac
    done
    for i in "${!compile[@]}"; do
        case ${compile[$i]} in -pthread) compile[i]=-Xcompiler=-pthread ;; esac
    done
    # shellcheck disable=SC2016  # $ORIGIN is the loader's
    built cublasmp_gemm "$cuda/bin/nvcc" -std=c++17 -O2 -gencode "arch=compute_$arch,code=sm_$arch" \
        -I"$tree/nvidia/cublasmp/cu13/include" "${compile[@]}" "$here/cublasmp_gemm.cu" -o "$out/cublasmp_gemm" \
        -Xlinker="$out/lib/libcublasmp.so.0" -Xlinker="$tree/nvidia/nvshmem/lib/libnvshmem_host.so.3" -lcublas -lnccl \
        "${link[@]}" \
        -Xlinker=-rpath -Xlinker='$ORIGIN/lib' -Xlinker=--unresolved-symbols=ignore-in-shared-libs
}
cublasmp
exit $status
