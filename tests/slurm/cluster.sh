#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Slurm cluster of a head and four hosts on one machine, for tests. Every host
# is a network, host name, mount and process namespace of its own; the head has a
# network of its own too, with the bridge between them. Nothing outside FOLDER is
# written, and the machine's network does not see the cluster: all of it is gone
# when the processes are, and `down` ends them by the numbers kept in FOLDER.
#
#   cluster.sh up FOLDER [PID]      start; exit code 77 where it cannot be; it ends
#                                   with process PID at the latest
#   cluster.sh run FOLDER WORDS...  a command on the head, with SLURM_CONF set
#   cluster.sh kill FOLDER N        host N loses power
#   cluster.sh start FOLDER N       and comes back
#   cluster.sh cut FOLDER N         the cable of host N is pulled
#   cluster.sh join FOLDER N        and put back
#   cluster.sh fill FOLDER N PATH   for host N alone, the disk at PATH is full
#   cluster.sh empty FOLDER N PATH  and has room again
#   cluster.sh controller FOLDER stop|start
#   cluster.sh down FOLDER
set -euo pipefail

readonly hosts=4
readonly cannot=77 # what ctest takes for "skipped"

usage() {
  sed -n '9,19p' "$0" | sed 's/^# *//' >&2
  exit 2
}
[[ $# -ge 2 ]] || usage
verb=$1
folder=$2
shift 2

skip() {
  printf 'no test cluster here: %s\n' "$*" >&2
  exit $cannot
}

pid_of() { cat "$folder/pid/$1"; }

# Whether the process is alive and still ours: numbers are reused.
alive() {
  local pid
  [[ -f $folder/pid/$1 ]] && pid=$(pid_of "$1") &&
    grep -qzxF "CULPRIT_TEST_CLUSTER=$folder" "/proc/$pid/environ" 2>/dev/null
}

# begin NAME COMMAND...: a process in the background, known by NAME.
begin() {
  local name=$1
  shift
  CULPRIT_TEST_CLUSTER=$folder setsid "$@" </dev/null >>"$folder/log/$name" 2>&1 &
  echo $! >"$folder/pid/$name"
}

# end NAME SIGNAL: and wait until it is gone.
end() {
  alive "$1" || return 0
  local pid
  pid=$(pid_of "$1")
  kill -"$2" "$pid" 2>/dev/null || true
  for _ in $(seq 100); do
    alive "$1" || break
    sleep 0.05
  done
  alive "$1" && kill -KILL "$pid" 2>/dev/null
  rm -f "$folder/pid/$1"
}

# wait_for WHAT SECONDS COMMAND...
wait_for() {
  local what=$1 tries=$(($2 * 10))
  shift 2
  for _ in $(seq $tries); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  printf 'cluster: %s did not happen in time\n' "$what" >&2
  tail -n 5 "$folder"/log/* >&2
  return 1
}

on_head() { nsenter --target "$(pid_of head)" --net --uts env SLURM_CONF="$folder/slurm.conf" "$@"; }

check_possible() {
  local program
  [[ $(id -u) -eq 0 ]] || skip "it takes root to make network namespaces"
  for program in slurmctld slurmd munged sbatch squeue ip nsenter unshare; do
    command -v "$program" >/dev/null || skip "$program is not installed"
  done
  unshare --net --uts --mount --pid --fork true 2>/dev/null || skip "namespaces are not permitted"
  unshare --net sh -c 'ip link add name try0 type bridge && ip link add name try1 type veth' 2>/dev/null ||
    skip "the kernel has no bridge or veth"
}

write_configuration() {
  local i
  cat >"$folder/slurm.conf" <<TEXT
ClusterName=culprit
SlurmctldHost=head(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=10
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
SlurmdTimeout=10
BatchStartTimeout=10
KillWait=2
MessageTimeout=10
SlurmctldPort=6817
SlurmdPort=6818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/controller.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd-%n
TmpFS=$folder/tmp-%n
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
TEXT
  for i in $(seq $hosts); do
    echo "NodeName=n$i NodeAddr=10.77.0.$((10 + i)) CPUs=1 RealMemory=4000 State=UNKNOWN" \
      >>"$folder/slurm.conf"
  done
}

start_munge() {
  head -c 1024 /dev/urandom >"$folder/munge/key"
  chmod 0400 "$folder/munge/key"
  begin munged munged --foreground --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed"
  wait_for "munge" 10 test -S "$folder/munge/socket"
}

start_head() {
  begin head unshare --net --uts sleep infinity
  wait_for "the head" 10 not_in_our_network head
  on_head sh -c 'hostname head && ip link set lo up && ip link add name bridge type bridge &&
    ip addr add 10.77.0.1/24 dev bridge && ip link set bridge up'
}

not_in_our_network() {
  [[ $(readlink "/proc/$(pid_of "$1")/ns/net") != "$(readlink /proc/self/ns/net)" ]]
}

start_controller() {
  begin controller nsenter --target "$(pid_of head)" --net --uts \
    env SLURM_CONF="$folder/slurm.conf" slurmctld -D
  wait_for "the controller" 20 on_head squeue
}

# The process that stays outside is the host's switch: it takes all with it.
start_host() {
  local name=n$1 pid
  mkdir -p "$folder/spool-$name" "$folder/tmp-$name"
  rm -f "$folder/go-$name"
  # shellcheck disable=SC2016 # expanded inside
  begin "$name" unshare --net --uts --mount --pid --fork --kill-child --mount-proc sh -c '
    hostname "$1"
    while [ ! -e "$2/go-$1" ]; do sleep 0.05; done
    SLURM_CONF=$2/slurm.conf exec slurmd -D -N "$1"' sh "$name" "$folder"
  wait_for "host $name" 10 not_in_our_network "$name"
  pid=$(pid_of "$name")
  # Left over from before a power loss, if the kernel has not cleaned up yet.
  on_head ip link delete "to-$name" 2>/dev/null || true
  on_head ip link add name "to-$name" type veth peer name eth0 netns "$pid"
  on_head ip link set "to-$name" master bridge up
  nsenter --target "$pid" --net sh -c "ip link set lo up &&
    ip addr add 10.77.0.$((10 + $1))/24 dev eth0 && ip link set eth0 up"
  : >"$folder/go-$name"
}

all_idle() { [[ $(on_head sinfo --noheader --Node --format=%t | grep -c '^idle$') -eq $hosts ]]; }

# A test that is killed cannot clean up.
watch_owner() {
  # shellcheck disable=SC2016 # expanded inside
  begin watch bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; "$2" down "$3"' \
    bash "$1" "$(readlink -f "$0")" "$folder"
}

up() {
  check_possible
  local i
  mkdir -p "$folder"/{pid,log,state,munge}
  # munge wants its socket to be within reach of all.
  chmod 0755 "$folder" "$folder/munge"
  [[ $# -eq 0 ]] || watch_owner "$1"
  write_configuration
  start_munge
  start_head
  start_controller
  for i in $(seq $hosts); do start_host "$i"; done
  wait_for "all hosts idle" 30 all_idle
}

down() {
  local i
  [[ -d $folder/pid ]] || return 0
  for i in $(seq $hosts); do end "n$i" KILL; done
  end controller TERM
  end munged TERM
  end head KILL
  # It may be what called this.
  [[ -f $folder/pid/watch && $(pid_of watch) == "$PPID" ]] || end watch KILL
}

case $verb in
  up) up "$@" ;;
  run) exec nsenter --target "$(pid_of head)" --net --uts env SLURM_CONF="$folder/slurm.conf" "$@" ;;
  kill) end "n$1" KILL ;;
  start) start_host "$1" ;;
  cut) on_head ip link set "to-n$1" down ;;
  join) on_head ip link set "to-n$1" up ;;
  fill)
    nsenter --target "$(pid_of "n$1")" --mount mount -t tmpfs -o size=4k full "$2"
    # What little there is, is taken.
    nsenter --target "$(pid_of "n$1")" --mount dd if=/dev/zero of="$2/filled" 2>/dev/null || true
    ;;
  empty) nsenter --target "$(pid_of "n$1")" --mount umount "$2" ;;
  controller)
    case $1 in
      stop) end controller TERM ;;
      start) start_controller ;;
      *) usage ;;
    esac
    ;;
  down) down ;;
  *) usage ;;
esac
