#!/usr/bin/env bash
# Runs a command beside a Slurm of one node, of this user's own, which ends with it:
#   slurm_node.sh FOLDER COMMAND...
# FOLDER is made anew and is the command's; SLURM_CONF names the node's configuration. Status 77 where Debian's slurmctld, slurmd and
# slurm-client are not installed.
set -euo pipefail
folder=$1
shift
PATH=$PATH:/usr/sbin
command -v slurmctld slurmd sbatch >/dev/null || exit 77
rm -rf "$folder"
mkdir -p "$folder/state" "$folder/spool" "$folder/tmp"
cd "$folder"
export SLURM_CONF=$folder/slurm.conf
host=$(hostname -s) port=$((20000 + $$ % 20000))
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/none
AuthInfo=cred_expire=2
CredType=cred/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/ctld.pid
SlurmdPidFile=$folder/d.pid
SlurmctldLogFile=$folder/ctld.log
SlurmdLogFile=$folder/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
JobRequeue=1
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
echo "PMIxCliTmpDirBase=$folder/tmp" >mpi.conf # where a slurmstepd that is killed leaves what another job of its number would meet
slurmctld -D >ctld.out 2>&1 &
ctld=$!
slurmd -D >d.out 2>&1 &
d=$!
trap 'kill $d $ctld; wait' EXIT
for ((i = 0; i < 600; i++)); do
    if sinfo -h -o %t 2>/dev/null | grep -q idle; then
        status=0
        "$@" || status=$?
        exit "$status"
    fi
    sleep 0.1
done
echo "slurm_node.sh: the node is not idle within 60 s"
tail -n 5 ./*.log ./*.out
exit 1
