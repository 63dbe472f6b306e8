#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a profile of redis costs: CPU time of the whole machine per request without a
# recorder and while system calls are recorded with user stacks, then the CPU time
# and memory of culprit profile and the size of what it writes.
#
#   bench/profile_redis.sh [ROUNDS]
#
# Takes root, redis-server and redis-benchmark, /usr/bin/time, and a machine with
# nothing else to do. Redis listens on loopback only and is ended with the script.
set -euo pipefail
cd "$(dirname "$0")/.."
culprit=${CULPRIT:-build-bench/culprit}
rounds=${1:-3}
port=17381
requests=100000
[[ $EUID -eq 0 ]] || { echo "bench/profile_redis: recording takes root" >&2; exit 1; }
[[ -x $culprit ]] || { echo "bench/profile_redis: no $culprit: ./do bench builds it, or set CULPRIT" >&2; exit 1; }
for program in redis-server redis-benchmark redis-cli /usr/bin/time; do
  command -v "$program" >/dev/null || { echo "bench/profile_redis: $program is not installed" >&2; exit 1; }
done

work=$(mktemp -d)
server=
recorder=
finish() {
  for pid in $recorder $server; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT

redis-server --bind 127.0.0.1 --port $port --save '' --dir "$work" >/dev/null 2>&1 &
server=$!
for _ in $(seq 50); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done

# Microseconds of CPU time of all CPUs since boot, idle and waiting left out.
busy_us() {
  awk -v hz="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f\n", ($2 + $3 + $4 + $7 + $8) * 1e6 / hz }' /proc/stat
}
# CPU nanoseconds a request.
load() {
  local before
  before=$(busy_us)
  redis-benchmark -h 127.0.0.1 -p $port -t get,set -c 20 -n $requests -q >/dev/null
  echo $((($(busy_us) - before) * 1000 / (2 * requests)))
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

load >/dev/null
for ((round = 0; round < rounds; ++round)); do
  load >>"$work/without"
  "$culprit" record --pid "$server" --syscalls --budget 0 -F 0 --force -o "$work/t.ctrace" >/dev/null 2>&1 &
  recorder=$!
  sleep 2  # loaded and attached
  load >>"$work/with"
  kill -INT "$recorder"
  wait "$recorder" || true
  recorder=
done
/usr/bin/time -f '%U %S %M' -o "$work/cost" "$culprit" profile "$work/t.ctrace" -o "$work/redis.cprof" >"$work/said" 2>/dev/null

echo "machine: $(uname -m), $(nproc) CPUs, kernel $(uname -r), $(date +%F); $rounds rounds"
awk -v without="$(median <"$work/without")" -v with="$(median <"$work/with")" 'BEGIN {
  printf "CPU time a request: %.2f us without, %.2f us while recording: %.2f times\n", without / 1000, with / 1000, with / without }'
grep -E 'system calls|functions|episodes' "$work/said"
awk '{ printf "culprit profile: %.2f s of CPU, %.0f MB\n", $1 + $2, $3 / 1024 }' "$work/cost"
echo "trace $(stat -c %s "$work/t.ctrace") bytes, profile $(stat -c %s "$work/redis.cprof") bytes"
