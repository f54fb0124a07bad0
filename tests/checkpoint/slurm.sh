#!/usr/bin/env bash
# Beside a Slurm of one node: a job by each of the templates in scripts/ gets SIGUSR1, saves, goes back into the queue, and ends with the
# bits of a run without interruption. Those for GPUs run on emulated ones, without what they ask Slurm and UCX for.
#   slurm_node.sh FOLDER slurm.sh SCRIPTS RESUME MPIRUN
set -euo pipefail
scripts=$1 resume=$2 mpirun=$3 folder=$PWD

# until WHAT COMMAND...: at most 60 s
until_true() {
    local what=$1 i
    shift
    for ((i = 0; i < 600; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    echo "slurm.sh: timeout: $what"
    tail -n 5 ./*.log ./*.out job.txt 2>/dev/null
    exit 1
}
ended() { ! squeue -h | grep -q .; }
newest() { find "$1" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }
has_checkpoint() { [[ -n $(newest "$1") ]]; }
said() { grep -q "$1" job.txt; }

steps=9000 # so many that the program still runs when it gets the signal
# job TEMPLATE SERIES COMMAND: the template with our program, this form of starting it, and no more.
job() {
    sed -e ':a' -e '/\\$/{N;s/\\\n//;ba}' "$scripts/$1" |
        sed -e '/^run /d' -e 's/^##SBATCH/#SBATCH/' -e 's/^#SBATCH --ntasks-per-node.*/#SBATCH --ntasks=1/' -e 's/--cpus-per-task=4/--cpus-per-task=1/' \
            -e "s|^program=.*|program=($resume $folder/$2 $steps 60 100)|" -e 's|--output=.*|--output=job.txt|' \
            -e '/^#SBATCH --gpus-per-node/d' -e '/^#SBATCH --exclusive/d' -e 's/^#SBATCH --nodes=.*/#SBATCH --nodes=1/' -e 's/^gpus=.*/gpus=2/' \
            -e 's/^export DMATH_DEVICE=cuda.*/export DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2/' -e '/^export OMPI_MCA_pml=ucx/d' >job.sh
    echo "run $3 \"\${program[@]}\"" >>job.sh
}
DMATH_WORKERS=3 "$resume" "$folder/straight" $steps 60 100 >/dev/null
for form in template.sh:srun template.sh:mpirun gpu.sh:srun gpu-nodes.sh:mpirun; do
    rm -f job.txt
    if [[ $form == *:srun ]]; then
        job "sbatch-${form%:*}" "$form" "srun --mpi=none"
    else
        job "sbatch-${form%:*}" "$form" "$mpirun -n 3 --oversubscribe"
    fi
    id=$(sbatch --parsable job.sh)
    until_true "a checkpoint" has_checkpoint "$folder/$form"
    scancel --signal=USR1 --batch "$id"
    until_true "the program leaves" said "leaves at step"
    until_true "the job is in the queue again" eval "scontrol show job $id | grep -q 'Restarts=1'"
    sleep 3 # a node takes a start within two seconds of the end for one of the job that was killed
    until_true "the job runs again" eval "scontrol update JobId=$id StartTime=now; said 'goes on from step'"
    until_true "the job ends" ended
    until_true "its last words" said "step $steps: heat"
    cmp "$(newest straight)/heat.npy" "$(newest "$form")/heat.npy"
    echo "$form: requeued, and the same bits"
done
