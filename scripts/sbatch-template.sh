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
# A warning before the time limit, so that a program that wants to can save its state:
#   started by srun:   --signal=USR1@120 goes to the steps, that is, to every rank.
#   started by mpirun: --signal=B:USR1@120 goes to this script only; `exec mpirun` below puts mpirun in the script's
#                      place, and mpirun forwards the signal to all ranks.
# dmath leaves SIGUSR1 to the program; without a handler the signal ends it.
##SBATCH --signal=USR1@120             # <-- srun form
##SBATCH --signal=B:USR1@120           # <-- mpirun form

set -euo pipefail
program=(./build/release/examples/pca examples/data/digits.npy -o "pca-$SLURM_JOB_ID") # <--
# Input and output paths must name the same files on every node: a shared file system.
export DMATH_BLAS_THREADS=$SLURM_CPUS_PER_TASK # default 1

# Form 1: srun starts the ranks. Needs a Slurm with PMIx (`srun --mpi=list`) and an Open MPI built for it. A stopped
# job step ends all its ranks.
exec srun --mpi=pmix --cpu-bind=cores --cpus-per-task="$SLURM_CPUS_PER_TASK" "${program[@]}"

# Form 2: mpirun starts the ranks inside the allocation. Use it where srun has no PMIx. (Remove form 1.)
# exec mpirun --map-by "slot:PE=$SLURM_CPUS_PER_TASK" --bind-to core "${program[@]}"

# Form 3: as form 2, with a program of your own on rank 0 alone and dmath-worker on the others. (Remove form 1.)
# exec mpirun -n 1 "${program[@]}" : -n "$((SLURM_NTASKS - 1))" dmath-worker
