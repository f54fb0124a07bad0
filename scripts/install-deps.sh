#!/usr/bin/env bash
# Installs what is missing to build and run dmath, on Debian 12 or Ubuntu 24.04.
#
#   scripts/install-deps.sh          for the library, the examples and their check with NumPy
#   scripts/install-deps.sh --test   for the tests too; Slurm (12 MB) only where no systemd runs, as in containers
#
# Looks for programs and libraries, not packages: what came from elsewhere counts. Changes nothing when all is there.
set -euo pipefail
case $* in
'' | --test) ;;
-h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
*) echo "install-deps: $*: only --test and --help are understood" >&2 && exit 2 ;;
esac

have_program() { command -v "$1" >/dev/null 2>&1; }
have_library() { have_program pkg-config && pkg-config --exists "$1"; }
have_header() { have_program cc && echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
have_hdf5() { have_library hdf5-serial || have_library hdf5; }
have_numpy() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import numpy' >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

have_markdown() { /usr/bin/python3 -c 'import markdown' >/dev/null 2>&1; }

have_slurm() { # a part of it
    [[ -n $(PATH=$PATH:/usr/sbin command -v "$1") ]]
}

have_blas_testers() { compgen -G '/usr/lib/*/blas/xblat3d' >/dev/null; }

missing=()
need() { # need PACKAGE TEST...: the package, unless the test succeeds
    local package=$1
    shift
    "$@" || missing+=("$package")
}

need gcc have_program cc
need libc6-dev test -e /usr/include/stdio.h
need cmake have_program cmake
have_program ninja || need make have_program make
need pkg-config have_program pkg-config
need libopenmpi-dev have_program mpicc
need openmpi-bin have_program mpirun
need libopenblas-dev have_library openblas
need libjansson-dev have_library jansson
need libxxhash-dev have_header xxhash.h
need libhwloc-dev have_library hwloc
need libdnnl-dev have_header dnnl.h
need liblmdb-dev have_library lmdb
need libleveldb-dev have_header leveldb/c.h
need libjpeg-dev have_library libjpeg
need libpng-dev have_library libpng
need libhdf5-dev have_hdf5
need zlib1g-dev have_library zlib
need python3-numpy have_numpy
if [[ ${1:-} == --test ]]; then
    need libcmocka-dev have_library cmocka
    need python3-markdown have_markdown
    need libblas-test have_blas_testers
    # Slurm, for tests that are skipped without it. It brings a service (munge) that systemd would start and leave running: not there.
    if [[ ! -d /run/systemd/system ]]; then
        need slurmctld have_slurm slurmctld
        need slurmd have_slurm slurmd
        need slurm-client have_slurm sbatch
    fi
fi

if [[ ${#missing[@]} -eq 0 ]]; then
    echo "install-deps: everything needed is there"
    exit 0
fi
echo "install-deps: missing: ${missing[*]}"
if ! have_program apt-get; then
    echo "install-deps: no apt-get here; please install the above (names are Debian's) by other means" >&2
    exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! have_program sudo; then
        echo "install-deps: neither root nor sudo; please have the above installed" >&2
        exit 1
    fi
    as_root=(sudo)
fi
run() {
    echo "+ $*"
    "$@"
}
run "${as_root[@]}" apt-get update -q
run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
