#!/usr/bin/env bash
# Beside a Slurm of one node: the script of a batch job is killed alone (kill -9), and all ranks leave, whether srun or mpirun has started them.
# The node has no control groups: Slurm leaves behind what a batch script has started there, so dmath must see to it.
#   slurm_node.sh FOLDER batch_slurm.sh KILL_MAIN MPIRUN [TRIES [SECONDS]]
set -euo pipefail
program=$1 mpirun=$2 tries=${3:-2} bound=${4:-30}
# until_true WHAT SECONDS COMMAND...
until_true() {
    local what=$1 i end=$2
    shift 2
    for ((i = 0; i < 20 * end; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.05
    done
    echo "batch_slurm.sh: timeout: $what"
    cat job-*.txt
    return 1
}
ranks() { pgrep -f "^$program $PWD/" || true; }
none_left() { [[ -z $(ranks) ]]; }
script_of() { pgrep -f "^/bin/bash .*/job0*$1/slurm_script"; }

trap 'ranks | xargs -r kill -9' EXIT
for ((try = 0; try < tries; try++)); do
    if ((try % 2)); then form=mpirun start="$mpirun -n 4 --oversubscribe"; else form=srun start="srun --mpi=pmix --overcommit -n 4"; fi
    mkdir "$try"
    printf '#!/bin/bash\n%s %s %s %s\n' "$start" "$program" "$PWD/$try" "$try" >job.sh
    id=$(sbatch --parsable --ntasks=1 --overcommit --output="job-$try.txt" job.sh)
    until_true "the job runs" 60 test -e "$try/running"
    if [[ $(ranks | wc -l) -lt 4 ]]; then # srun has the same command, too
        echo "batch_slurm.sh: the ranks are not there" && exit 1
    fi
    sleep "0.$((RANDOM % 5))"
    begin=$(date +%s%N)
    kill -9 "$(script_of "$id")"
    until_true "the ranks leave" "$bound" none_left
    echo "$form: all ranks had left after $((($(date +%s%N) - begin) / 1000000)) ms"
    if [[ $form == mpirun ]] && ! grep -q "the script of this batch job, has died: the ranks of this host leave" "job-$try.txt"; then
        echo "batch_slurm.sh: nobody said why" && cat "job-$try.txt" && exit 1
    fi
done
