#!/usr/bin/env bash
# Builds an Open MPI that takes pointers to GPU memory (CUDA-aware) from the distribution's source package.
#
#   scripts/build-openmpi-cuda.sh PREFIX [--tarball FILE] [--suite NAME] [--cuda DIR] [--jobs N] [--minutes N]
#                                        [--work DIR] [--configure-only]
#
#   --tarball FILE    the source (openmpi-X.tar.*); otherwise `apt-get source openmpi` fetches it
#   --suite NAME      fetch that of another release of the distribution (Debian: trixie has 5.0.7)
#   --cuda DIR        CUDA's folder (default: $CUDA_HOME, or nvcc's, or /usr/local/cuda)
#   --minutes N       the most that each of configure, make and make install may take (default 30)
#   --work DIR        where it is built and the logs lie (default: PREFIX.build)
#
# What is left out: Fortran, MPI-IO and the extra launchers, which dmath does not use. The parts that need the driver
# are modules loaded at run time, so that the result runs on hosts without a GPU too.
set -euo pipefail

usage() {
    sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}
die() {
    echo "build-openmpi-cuda: $*" >&2
    exit 1
}

prefix='' tarball='' suite='' cuda=${CUDA_HOME:-} jobs=$(nproc) minutes=30 work='' configure_only=0
while [ $# -gt 0 ]; do
    case $1 in
    --tarball | --suite | --cuda | --jobs | --minutes | --work)
        [ $# -ge 2 ] || usage
        name=${1#--}
        printf -v "$name" '%s' "$2"
        shift 2
        ;;
    --configure-only) configure_only=1 && shift ;;
    -*) usage ;;
    *)
        [ -z "$prefix" ] || usage
        prefix=$(realpath -m "$1") && shift
        ;;
    esac
done
[ -n "$prefix" ] || usage
work=$(realpath -m "${work:-$prefix.build}")
if [ -z "$cuda" ]; then
    nvcc=$(command -v nvcc || true)
    cuda=$([ -n "$nvcc" ] && dirname "$(dirname "$(readlink -f "$nvcc")")" || echo /usr/local/cuda)
fi
[ -e "$cuda/include/cuda.h" ] || die "no include/cuda.h in $cuda: name CUDA's folder with --cuda"
stubs=
for d in "$cuda/lib64/stubs" "$cuda/lib/stubs" "$cuda/targets/x86_64-linux/lib/stubs"; do
    if [ -e "$d/libcuda.so" ]; then
        stubs=$d
        break
    fi
done
mkdir -p "$work/log"

# The source package of this release or, with --suite, of another. A list of our own, since most systems name no
# sources, and nothing of the system's configuration is to change.
fetch() {
    local mirror release=$suite apt
    mirror=$(grep -rhoE 'https?://[^ ]*(debian\.org/debian|ubuntu\.com/ubuntu|/debian|/ubuntu)/?( |$)' \
        /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ' || true)
    [ -n "$release" ] || release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ -n "$release" ] || die "which release? --suite NAME, or --tarball FILE"
    if [ -z "$mirror" ]; then
        case $(. /etc/os-release && echo "$ID") in
        ubuntu) mirror=http://archive.ubuntu.com/ubuntu ;;
        *) mirror=http://deb.debian.org/debian ;;
        esac
    fi
    mkdir -p "$work/apt/lists/partial" "$work/source"
    printf 'deb-src %s %s main universe\n' "$mirror" "$release" >"$work/apt/sources.list"
    case $mirror in *debian*) sed -i 's/ universe//' "$work/apt/sources.list" ;; esac
    apt=(apt-get -q -oDir::Etc::sourcelist="$work/apt/sources.list" -oDir::Etc::sourceparts=-
        -oDir::State::Lists="$work/apt/lists")
    echo "== source: openmpi of $release from $mirror"
    (cd "$work/source" && timeout 300 "${apt[@]}" update && timeout 300 "${apt[@]}" source --download-only openmpi) \
        >"$work/log/fetch.log" 2>&1 || die "apt-get source failed: $work/log/fetch.log"
    tarball=$(find "$work/source" -name 'openmpi_*.orig.tar.*' ! -name '*.asc' | sort -V | tail -n 1)
}

# phase NAME COMMAND...: bounded, into a log of its own
phase() {
    local name=$1 begin=$SECONDS
    shift
    echo "== $name (log: $work/log/$name.log)"
    if ! timeout -k 30 "$((minutes * 60))" "$@" >"$work/log/$name.log" 2>&1; then
        tail -n 15 "$work/log/$name.log" >&2
        die "$name failed, or took longer than $minutes minutes: $work/log/$name.log"
    fi
    echo "   $((SECONDS - begin)) s"
}

[ -n "$tarball" ] || fetch
[ -e "$tarball" ] || die "no source: $tarball"
rm -rf "$work/tree"
mkdir -p "$work/tree"
tar -C "$work/tree" --strip-components=1 -xf "$tarball"
cd "$work/tree"
major=$(sed -n 's/^major=//p' VERSION)
[ -x configure ] || die "the source has no configure script: take a release's tarball, not the repository"

options=(--prefix="$prefix" --with-cuda="$cuda" --enable-mpi-fortran=no --disable-io-romio --disable-oshmem
    --without-verbs --without-psm2 --without-ofi --with-hwloc=internal --with-libevent=internal --with-pmix=internal)
if [ -n "$(pkg-config --silence-errors --variable=prefix ucx)" ]; then
    options+=(--with-ucx)
    echo "UCX is found: built in, for InfiniBand"
else
    options+=(--without-ucx)
    echo "UCX is not found: hosts will speak TCP (install libucx-dev for InfiniBand)"
fi
if [ "${major:-0}" -ge 5 ]; then
    # The stub of the driver's library serves the linker; at run time it must not be found before the real one.
    # shellcheck disable=SC2054  # the commas are configure's
    options+=(${stubs:+--with-cuda-libdir="$stubs"} --with-prrte=internal --enable-prte-prefix-by-default
        --enable-mca-dso=accelerator-cuda,btl-smcuda,rcache-gpusm,rcache-rgpusm
        --enable-mca-no-build=prtereachable-netlink,reachable-netlink)
else
    options+=(--enable-mpirun-prefix-by-default)
fi
phase configure ./configure "${options[@]}"
grep -E '^(CUDA support|Open UCX): ' "$work/log/configure.log" || true
[ $configure_only = 0 ] || exit 0
phase make make -j"$jobs"
phase install make install

echo "== check"
export OPAL_PREFIX=$prefix PATH=$prefix/bin:$PATH LD_LIBRARY_PATH=$prefix/lib:${LD_LIBRARY_PATH:-}
info=$(timeout 60 ompi_info --parsable --all 2>"$work/log/ompi_info.log") || die "ompi_info fails: $work/log/ompi_info.log"
grep -E '^(ompi:version:full|mca:mpi:base:param:mpi_built_with_cuda_support:value)' <<<"$info" || true
case $info in
*mpi_built_with_cuda_support:value:true*) ;;
*) die "built, but ompi_info says: no CUDA support" ;;
esac

cat <<END
== done. To use it, in every shell and job script:

  export OPAL_PREFIX=$prefix
  export PATH=$prefix/bin:\$PATH LD_LIBRARY_PATH=$prefix/lib:\$LD_LIBRARY_PATH

and build dmath with it (a fresh build folder: CMake remembers the MPI it found first). docs/gpu-hosts.md says more.
END
