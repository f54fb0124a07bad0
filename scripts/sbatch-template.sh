#!/usr/bin/env bash
# A Slurm job for a dmath program. Copy it, set the lines marked <--, and submit: sbatch job.sh
#
# Rank 0 runs the program (the master), every other rank is a worker. A worker on CPUs uses as many cores as blas_threads
# says, which is set to those it is given below.
#
#SBATCH --job-name=dmath
#SBATCH --time=01:00:00                # <--
#SBATCH --nodes=1                      # <-- several nodes: --nodes=4
#SBATCH --ntasks-per-node=9            # <-- one node: workers + 1, for the master. Several nodes: workers a node; the
#                                      #     master then takes the place of one worker on the first of them.
#SBATCH --cpus-per-task=4              # <-- cores a worker
#SBATCH --output=%x-%j.out
#
# Jobs that go on where they stopped. Slurm sends SIGUSR1 to this script so many seconds before the time limit, and it passes the
# signal on; srun and mpirun forward it to all ranks. A program with the option catch_signals saves a checkpoint then and
# exits with status 75 (dm_checkpoint_boundary; examples/resume.c is one), and this script puts the job into the queue again.
# Without that option the signal ends the program. 120 s must be enough for a checkpoint; Slurm may be a minute early.
##SBATCH --requeue
##SBATCH --open-mode=append            # one output file for all runs
##SBATCH --signal=B:USR1@120           # <--

set -euo pipefail
program=(./build/release/examples/pca examples/data/digits.npy -o "pca-$SLURM_JOB_ID") # <--
# Input and output paths must name the same files on every node: a shared file system.
export DMATH_BLAS_THREADS=$SLURM_CPUS_PER_TASK # default 1

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

# Form 1: srun starts the ranks. Needs a Slurm with PMIx (`srun --mpi=list`) and an Open MPI built for it. A stopped
# job step ends all its ranks.
run srun --mpi=pmix --cpu-bind=cores --cpus-per-task="$SLURM_CPUS_PER_TASK" "${program[@]}"

# Form 2: mpirun starts the ranks inside the allocation. Use it where srun has no PMIx. (Remove form 1.)
# run mpirun --map-by "slot:PE=$SLURM_CPUS_PER_TASK" --bind-to core "${program[@]}"

# Form 3: as form 2, with a program of your own on rank 0 alone and dmath-worker on the others. (Remove form 1.)
# run mpirun -n 1 "${program[@]}" : -n "$((SLURM_NTASKS - 1))" dmath-worker
