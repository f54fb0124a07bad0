#!/usr/bin/env bash
# A Slurm job for a dmath program on the GPUs of several nodes. Copy it, set the lines marked <--, and submit.
#
# Every GPU is a worker, a rank of an MPI job; rank 0, the master, is one rank more, on the first node. Ranks are placed
# by a list of hosts, node after node, because the first node has one more than the others. One node:
# scripts/sbatch-gpu.sh. docs/gpu-hosts.md tells of the settings below.
#
#SBATCH --job-name=dmath
#SBATCH --time=01:00:00                # <--
#SBATCH --nodes=2                      # <--
#SBATCH --gpus-per-node=4              # <-- one worker each
#SBATCH --ntasks-per-node=5            # <-- GPUs + 1; on the other nodes one of them stays empty
#SBATCH --cpus-per-task=4              # <-- cores a worker
#SBATCH --exclusive
#SBATCH --output=%x-%j.out
#
# No --gpus-per-task and no --gpu-bind: a process must see all GPUs of its node to write into another's memory.
#
# A job that goes on where it stopped (SIGUSR1, a checkpoint, requeue): sbatch-template.sh says how. 120 s must be enough for a checkpoint.
##SBATCH --requeue
##SBATCH --open-mode=append            # one output file for all runs
##SBATCH --signal=B:USR1@120           # <--

set -euo pipefail
program=(./build/gpu/examples/pca examples/data/digits.npy -o "pca-$SLURM_JOB_ID") # <--
# Input and output paths must name the same files on every node: a shared file system.
gpus=${SLURM_GPUS_PER_NODE##*:} # "h200:4" or "4"
ranks=$((SLURM_NNODES * gpus + 1))

export DMATH_DEVICE=cuda
# InfiniBand with an MPI that has UCX. Without UCX remove these two lines: the nodes then speak TCP.
export OMPI_MCA_pml=ucx
# export UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1   # <-- the adapters near the GPUs, where UCX takes the wrong ones

# Runs a command in the background, so that this script gets SIGUSR1 at once. A job that is to run again goes back into the queue.
run() {
    local status=0
    "$@" &
    trap "kill -USR1 $!" USR1
    wait $! || status=$?
    while kill -0 $! 2>/dev/null; do # the signal has ended the wait, not the command
        status=0
        wait $! || status=$?
    done
    if [[ $status -eq 75 ]]; then
        scontrol requeue "$SLURM_JOB_ID"
    fi
    exit "$status"
}

# The nodes' names, each as often as it has ranks.
hosts=$(mktemp "${TMPDIR:-/tmp}/dmath-hosts.XXXXXX")
trap 'rm -f "$hosts"' EXIT
first=1
while read -r node; do
    for ((i = 0; i < gpus + first; i++)); do
        echo "$node"
    done
    first=0
done < <(scontrol show hostnames "$SLURM_JOB_NODELIST") >"$hosts"

# Form 1: srun starts the ranks. Needs a Slurm with PMIx (`srun --mpi=list`) and an Open MPI built for it.
run env SLURM_HOSTFILE="$hosts" srun --mpi=pmix --distribution=arbitrary --ntasks="$ranks" --gpu-bind=none \
    --cpus-per-task="$SLURM_CPUS_PER_TASK" "${program[@]}"

# Form 2: mpirun starts them, where srun has no PMIx. (Remove form 1.)
# sort "$hosts" | uniq -c | awk '{print $2 " slots=" $1}' >"$hosts.slots"
# run mpirun -n "$ranks" --hostfile "$hosts.slots" --map-by slot --bind-to none "${program[@]}"
