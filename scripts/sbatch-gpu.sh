#!/usr/bin/env bash
# A Slurm job for a dmath program on the GPUs of one node. Copy it, set the lines marked <--, and submit: sbatch job.sh
#
# One node needs no MPI: the workers are threads of the program, one a GPU, and blocks go from GPU to GPU. That is form 1.
# Form 2 starts a process a GPU, and one for the master; take it if the program or the site wants ranks.
# Several nodes: scripts/sbatch-gpu-nodes.sh.
#
#SBATCH --job-name=dmath
#SBATCH --time=01:00:00                # <--
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4              # <-- one worker each
#SBATCH --ntasks-per-node=5            # <-- GPUs + 1: form 2 has a rank for the master
#SBATCH --cpus-per-task=4              # <-- a worker needs two cores; more help reading and writing files
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
gpus=${SLURM_GPUS_ON_NODE:-$(nvidia-smi -L | wc -l)}
export DMATH_DEVICE=cuda # an error where no GPU is found, instead of a run on the CPU

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

# Form 1: threads of one process, which gets all cores of the job.
run env DMATH_WORKERS="$gpus" srun --ntasks=1 --cpus-per-task=$((SLURM_CPUS_PER_TASK * (gpus + 1))) \
    --gpus-per-node="$gpus" --cpu-bind=none "${program[@]}"

# Form 2: a process a GPU. (Remove form 1.)
# run srun --mpi=pmix --gpu-bind=none --cpus-per-task="$SLURM_CPUS_PER_TASK" "${program[@]}"

# Form 3: as form 2, where srun has no PMIx. (Remove form 1.)
# run mpirun -n $((gpus + 1)) --bind-to none "${program[@]}"
