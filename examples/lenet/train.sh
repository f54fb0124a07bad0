#!/usr/bin/env bash
# Trains LeNet, as Caffe's examples publish it, on Fashion-MNIST: 60 000 images of clothes, 10 000 to test with.
#
#   examples/lenet/train.sh [OPTION...]      options are those of `dmath train`: --max-iter 500, --workers 2
#
# Without --workers: a worker for each GPU of this host; four, on CPUs, where there is none.
# The images are those of Debian's package dataset-fashion-mnist, or idx files in the folder DATA. Files are made in the folder
# lenet-run. TOOL is the program `dmath`: that of a build here, or else the one in PATH.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=${DATA:-/usr/share/datasets/fashion-mnist}
tool=${TOOL:-}
for candidate in "$here"/../../build/{release,quickstart,dev}/dmath; do
    if [[ -z $tool && -x $candidate ]]; then
        tool=$(realpath "$candidate")
    fi
done
tool=${tool:-$(command -v dmath)} || { echo "train.sh: there is no program dmath: build it (README.md, Building and installing), or set TOOL" >&2 && exit 1; }
images() { # the file of a part, if there is one
    local file
    for file in "$data/$1-images-idx3-ubyte"{.gz,}; do
        if [[ -e $file ]]; then echo "$file" && break; fi
    done
}
if [[ -z $(images train) ]]; then
    echo "train.sh: no images in $data: install the package dataset-fashion-mnist (apt-get install dataset-fashion-mnist)" >&2
    exit 1
fi

mkdir -p lenet-run/examples/mnist lenet-run/examples/lenet
cd lenet-run
cp "$here"/*.prototxt examples/lenet/
for part in train:train t10k:test; do
    from=$(images "${part%:*}") to=examples/mnist/mnist_${part#*:}_lmdb
    if [[ ! -e $to/data.mdb ]]; then
        "$tool" data convert "$from" "${from/images-idx3/labels-idx1}" "$to"
    fi
done
options=()
gpus=$("$tool" info --json | sed -n 's/.*"gpus": \([0-9]*\).*/\1/p')
if [[ ${gpus:-0} == 0 && -z ${OMPI_COMM_WORLD_SIZE:-}${DMATH_WORKERS:-} ]]; then
    options=(--workers 4) # the ranks of a launcher are the workers; and GPUs are as many as there are
fi
case " $* " in *" -w"* | *" --workers"*) options=() ;; esac
exec "$tool" train --solver examples/lenet/lenet_solver.prototxt "${options[@]}" "$@"
