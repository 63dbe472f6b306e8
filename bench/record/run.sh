#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What recording costs: CPU time of the whole machine per operation of a workload,
# without a recorder, under `culprit record --system` and under `perf record -g` of
# the same events. A run without a recorder stands twice in every round: how far
# the second is from the first is the noise of the rest. Recorders are held against the mean of both,
# round by round, since the speed of a machine may change from one to the next.
#
#   bench/record/run.sh [ROUNDS] [WORKLOAD...]
#
# Workloads: pipe messaging redis nginx oltp fileio; those whose programs are not
# installed are named and left out (packages.txt: recording). Servers listen on
# loopback or a socket file only and are ended with the script. Takes root, and a
# machine with nothing else to do. Runs take some five seconds, so that the second
# within which the governor finds its level does not count for much. Without operands:
# 3 rounds of all, a quarter of an hour. Prints the table of docs/benchmarks.md, and
# below it what the recorder said of itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/record/common.sh
rounds=${1:-3}
[[ $# -gt 0 ]] && shift
workloads=("$@")
[[ ${#workloads[@]} -gt 0 ]] || workloads=(pipe messaging redis nginx oltp fileio)
engines=(none again budget all)
command -v perf >/dev/null && engines+=(perf)

# ---- workloads: NAME_start once, NAME_run prints its number of operations ----

declare -A needs=(
  [pipe]=perf [messaging]=perf [redis]='redis-server redis-cli redis-benchmark' [nginx]='nginx wrk'
  [oltp]='mariadbd mariadb-install-db sysbench' [fileio]=sysbench
)

# nginx and its load have a CPU each, where there are two. When they share them, how often one finds
# the other waiting changes from run to run, and the CPU time by a third with it.
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep="\n")')
server_cpu=() load_cpu=()
if [[ ${#cpus[@]} -eq 2 ]]; then
  server_cpu=(taskset -c "${cpus[0]}")
  load_cpu=(taskset -c "${cpus[1]}")
fi

pipe_start() { :; }
pipe_run() { perf bench -f simple sched pipe -l 500000 >/dev/null && echo 500000; }

messaging_start() { :; }
# 4 groups, each of 20 senders that send as many messages to each of 20 receivers.
messaging_run() {
  perf bench -f simple sched messaging -g 4 -l 1000 >/dev/null && echo $((4 * 20 * 20 * 1000))
}

redis_start() {
  redis-server --bind 127.0.0.1 --port 17379 --save '' --dir "$work" >/dev/null 2>&1 &
  servers+=($!)
  for _ in $(seq 50); do redis-cli -p 17379 ping >/dev/null 2>&1 && break; sleep 0.1; done
}
redis_run() { redis-benchmark -h 127.0.0.1 -p 17379 -t get -c 20 -n 400000 -q >/dev/null && echo 400000; }

nginx_start() {
  mkdir "$work/www"
  head -c 4096 /dev/zero >"$work/www/page"
  cat >"$work/nginx.conf" <<CONF
daemon off; user root; worker_processes 1; pid $work/nginx.pid; error_log /dev/null;
events {}
http { access_log off; server { listen 127.0.0.1:17380; root $work/www; } }
CONF
  "${server_cpu[@]}" nginx -c "$work/nginx.conf" >/dev/null 2>&1 &
  servers+=($!)
}
nginx_run() {
  "${load_cpu[@]}" wrk -t 1 -c 16 -d 5 http://127.0.0.1:17380/page | awk '/requests in/ { print $1 }'
}

oltp_start() { mariadb_start; }
oltp_run() {
  sysbench oltp_read_write "${oltp_flags[@]}" --time=0 --events=6000 run >/dev/null && echo 6000
}

fileio_flags=(fileio --file-num=4 --file-total-size=64M --file-test-mode=rndrd
              --file-extra-flags=direct)
fileio_start() { (cd "$work" && sysbench "${fileio_flags[@]}" prepare >/dev/null); }
fileio_run() {
  (cd "$work" && sysbench "${fileio_flags[@]}" --time=0 --events=300000 run >/dev/null) && echo 300000
}

# ---- measuring ----

# Microseconds in which CPUs were not idle, all added up, from some moment on. Only idle time
# is measured by the clock; who has the other is judged by whom the ticks meet.
busy_us() {
  awk -v hz="$(getconf CLK_TCK)" -v cpus="$(nproc)" -v now_ns="$(date +%s%N)" \
    '/^cpu / { printf "%.0f\n", cpus * now_ns / 1000 - ($5 + $6) * 1e6 / hz }' /proc/stat
}

# One run: CPU nanoseconds an operation. What a recorder has left to be written to the disk is
# its own cost, not that of whoever comes next.
measure() {
  local workload=$1 engine=$2 before after operations
  sync
  start_recorder "$engine"
  before=$(busy_us)
  operations=$("${workload}_run")
  after=$(busy_us)
  stop_recorder "$workload" "$engine"
  echo $(((after - before) * 1000 / operations))
}

# The second run without a recorder to the first; recorders to the mean of both: a number for each round.
by_rounds() {
  if [[ $2 == again ]]; then
    paste "$work/$1-none" "$work/$1-again" | awk '{ print $2 / $1 }'
  else
    paste "$work/$1-none" "$work/$1-again" "$work/$1-$2" | awk '{ print 2 * $3 / ($1 + $2) }'
  fi
}

for workload in "${workloads[@]}"; do
  [[ -v needs[$workload] ]] || { echo "bench/record: there is no workload '$workload'" >&2; exit 1; }
done
echo "machine: $(uname -m), $(nproc) CPUs, kernel $(uname -r), $(date +%F); $rounds rounds"
echo
echo "CPU time per operation, and as a multiple of no recorder, medians of the rounds:"
echo
printf '| |'; for engine in "${engines[@]}"; do printf ' %s |' "${label[$engine]}"; done; echo
printf '|---|'; for engine in "${engines[@]}"; do printf -- '---|'; done; echo
measured=()
for workload in "${workloads[@]}"; do
  missing=
  for program in ${needs[$workload]}; do command -v "$program" >/dev/null || missing+=" $program"; done
  if [[ -n $missing ]]; then
    echo "bench/record: $workload left out, not installed:$missing" >&2
    continue
  fi
  "${workload}_start"
  sleep 0.5
  "${workload}_run" >/dev/null
  for ((round = 0; round < rounds; ++round)); do
    for ((i = 0; i < ${#engines[@]}; ++i)); do
      # Each round begins with another one, so that drift meets all alike.
      engine=${engines[(i + round) % ${#engines[@]}]}
      measure "$workload" "$engine" >>"$work/$workload-$engine"
    done
  done
  printf '| %s | %s µs |' "$workload" "$(median <"$work/$workload-none" | awk '{ printf "%.2f", $1 / 1000 }')"
  for engine in "${engines[@]:1}"; do printf ' %.2f |' "$(by_rounds "$workload" "$engine" | median)"; done
  echo
  measured+=("$workload")
done
# As many waits a second as the machine can make, all recorded, with both stacks: what
# is lost, and what a wait takes on disk.
if command -v perf >/dev/null; then
  start_recorder all
  begin=$(date +%s%N)
  pairs=()
  for ((i = 0; i < $(nproc); ++i)); do
    perf bench -f simple sched pipe -l 300000 >/dev/null &
    pairs+=($!)
  done
  wait "${pairs[@]}"
  end=$(date +%s%N)
  stop_recorder storm all
  echo
  echo "all waits of $(nproc) pairs of processes that pass a byte to and fro, $(nproc) x 300000 times," \
    "in $(((end - begin) / 1000000)) ms:"
  sed 's/^ */  /' "$work/said-storm-all"
  "$culprit" info "$work/t.ctrace" 2>/dev/null |
    awk -v ms="$(((end - begin) / 1000000))" '
      $1 == "drops.total" { printf "  lost: %s records\n", $2 }
      $1 == "wait" || $1 == "ready" {
        count = $2 * ($3 == "M" ? 1e6 : $3 == "k" ? 1e3 : 1)
        printf "  %-5s %.2f M a second, %s %% with a stack\n", $1, count / ms / 1e3, $(NF - 1)
      }'
fi
for workload in "${measured[@]}"; do
  for engine in budget all; do
    echo; echo "$workload, ${label[$engine]}, last round:"
    sed 's/^ */  /' "$work/said-$workload-$engine" 2>/dev/null || true
  done
done
