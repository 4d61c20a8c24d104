#!/usr/bin/env bash
# Brings up a one-node Slurm from Debian's packages (munge, slurmctld, slurmd, slurm-client) for the
# tests: partitions cpu and gpu, one GPU that is /dev/null. Needs root. Does nothing if it answers.
set -euo pipefail

if sinfo -h > /dev/null 2>&1; then
  exit 0
fi
for command in munged slurmctld slurmd sinfo; do
  command -v "$command" > /dev/null || { echo "start_slurm.sh: $command is not installed" >&2; exit 1; }
done

host=$(hostname -s)
cores=$(nproc)
memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd /var/log/slurm /run/munge
chown munge: /run/munge

if [ ! -s /etc/munge/munge.key ]; then
  dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none
fi
chown munge: /etc/munge/munge.key
chmod 400 /etc/munge/munge.key

cat > /etc/slurm/slurm.conf << EOF
ClusterName=retable
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SchedulerParameters=sched_interval=2,batch_sched_delay=0
KillWait=30
MinJobAge=300
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=cpu Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=gpu Nodes=$host MaxTime=INFINITE State=UP OverSubscribe=NO
EOF
echo "Name=gpu Count=1 File=/dev/null" > /etc/slurm/gres.conf

pgrep -x munged > /dev/null || runuser -u munge -- munged
pgrep -x slurmctld > /dev/null || slurmctld
pgrep -x slurmd > /dev/null || slurmd

for _ in $(seq 60); do
  if sinfo -h -o %T 2> /dev/null | grep -q idle; then
    exit 0
  fi
  sleep 1
done
echo "start_slurm.sh: the node did not become idle within 60 s" >&2
sinfo >&2 || true
exit 1
