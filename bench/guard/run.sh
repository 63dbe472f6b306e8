#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What guards cost: CPU time (user + system) of a server and its children per
# request, without guards, without them once more, and with them: in one process, into
# which `culprit guard attach` brings them and from which it takes them again (of PostgreSQL the one
# that makes a process for every connection), or (HOW=starts) in a process of its own each time,
# under `culprit guard run`. HOW=samples (with perf) asks another question of one guarded process: which
# share of its CPU time is the guards' own code, by samples; what everything else pays for caches and
# for being later is not in it, nor is the noise of the machine.
# The three stand in every round, in an order that changes: how far the second is
# from the first is the noise of the rest. The server has one CPU, its clients and culprit another:
# when they share both, how often a server finds nothing to do and
# sleeps changes from run to run, and its CPU time a request by 10 % with it. PIN=0 lets
# them share.
#
#   bench/guard/run.sh [ROUNDS] [SERVER...]
#
# Servers: redis nginx memcached apache2 mariadb postgres; those that are not
# installed are named and left out. Each is trained first, under the same load.
# They listen on loopback or a socket file only and are ended with the script. A
# machine with nothing else to do is needed; root for apache2, mariadb, postgres.
# Without operands: 5 rounds of all, some twenty minutes. Prints a table: median
# CPU per request without guards; the medians of the rounds' ratios, of the second run without to
# the first, and of the one with guards to the mean of both (a machine whose speed changes over
# minutes changes all of a round); the CPU time of culprit beside the server as a share of one
# CPU; the ratio while functions are traced in training; hits per unit; alarms (slow units
# reported); and how far units of one type differ: sigma / mean, the mean and the median of the
# ten costliest types (of at least 100 samples), as table 5 of paper 002 has it.
set -euo pipefail
cd "$(dirname "$0")/../.."
culprit=$(realpath "${CULPRIT:-build-bench/culprit}")
rounds=${1:-5}
[[ $# -gt 0 ]] && shift
servers=("$@")
[[ ${#servers[@]} -gt 0 ]] || servers=(redis nginx memcached apache2 mariadb postgres)
seconds=${SECONDS_A_RUN:-10}
[[ -x $culprit ]] || { echo "bench/guard: no $culprit: ./do bench builds it, or set CULPRIT" >&2; exit 1; }

work=$(mktemp -d)
chmod 755 "$work"
install -d -m 1777 "$work/out"  # servers of other users write their profiles there
main=
become=()
finish() {
  [[ -z $main ]] || { kill "$main" 2>/dev/null && wait "$main" 2>/dev/null; } || true
  rm -rf "$work"
}
trap finish EXIT

declare -A needs=(
  [redis]='redis-server redis-cli redis-benchmark' [nginx]='nginx wrk'
  [memcached]='memcached memcaslap' [apache2]='apache2 wrk'
  [mariadb]='mariadbd mariadb-install-db mariadb-admin sysbench' [postgres]='pgbench'
)

# ---- servers: NAME_prepare once; NAME_command sets `command`, and `become` if it is another
# ---- user's; NAME_up says whether it is there; NAME_load SECONDS prints the number of requests

redis_prepare() { :; }
redis_command() { command=(redis-server --bind 127.0.0.1 --port 17401 --save '' --appendonly no --dir "$work"); }
redis_up() { redis-cli -p 17401 ping 2>/dev/null | grep -q PONG; }
redis_load() {
  local end=$((SECONDS + $1)) n=0
  while ((SECONDS < end)); do
    # It would try for ever to reach a server that ended in between.
    timeout 20 redis-benchmark -h 127.0.0.1 -p 17401 -c 20 -n 5000 -t set,get,incr,lpush,rpop,sadd,hset,zadd -q >/dev/null || break
    n=$((n + 8 * 5000))
  done
  echo $n
}

web_load() {  # PORT SECONDS
  wrk -t1 -c16 -d"$2" "http://127.0.0.1:$1/index.html" | awk '/requests in/ {print $1}'
}
nginx_prepare() {
  mkdir -p "$work/html"
  head -c 4000 /dev/urandom | base64 >"$work/html/index.html"
  cat >"$work/nginx.conf" <<END
daemon off; worker_processes 1; pid $work/nginx.pid; error_log /dev/null;
events { worker_connections 256; }
http { access_log off; client_body_temp_path $work/b; proxy_temp_path $work/p;
  fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s;
  server { listen 127.0.0.1:17402; root $work/html; } }
END
}
nginx_command() { command=(nginx -c "$work/nginx.conf" -p "$work"); }
nginx_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/17402' 2>/dev/null; }
nginx_load() { web_load 17402 "$1"; }

memcached_prepare() { :; }
memcached_command() { command=(memcached -l 127.0.0.1 -p 17403 -t 2 -u nobody); }
memcached_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/17403' 2>/dev/null; }
memcached_load() {
  memcaslap -s 127.0.0.1:17403 -T 1 -c 16 -t "$1s" 2>/dev/null | awk '/Ops:/ {sub(".*Ops: ", ""); print $1}' | tail -1
}

apache2_prepare() {
  mkdir -p "$work/apache"
  head -c 4000 /dev/urandom | base64 >"$work/apache/index.html"
  cat >"$work/apache.conf" <<END
ServerName localhost
ServerRoot $work
PidFile $work/apache.pid
Listen 127.0.0.1:17404
ErrorLog /dev/null
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
User www-data
Group www-data
StartServers 1
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
DocumentRoot $work/apache
END
}
apache2_command() { command=(apache2 -f "$work/apache.conf" -D FOREGROUND); }
apache2_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/17404' 2>/dev/null; }
apache2_load() { web_load 17404 "$1"; }

mariadb_prepare() {
  mkdir -p "$work/db"
  chown mysql "$work/db"
  mariadb-install-db --user=mysql --datadir="$work/db" --auth-root-authentication-method=normal >/dev/null 2>&1
}
mariadb_command() {
  command=(mariadbd --no-defaults --user=mysql "--datadir=$work/db" "--socket=$work/db/s" --skip-networking "--pid-file=$work/db/pid")
}
mariadb_up() {
  mariadb-admin --socket="$work/db/s" -u root ping >/dev/null 2>&1 || return 1
  [[ -e $work/db/ready ]] && return 0
  mariadb-admin --socket="$work/db/s" -u root create sbtest
  sysbench oltp_read_write --mysql-socket="$work/db/s" --mysql-user=root --tables=2 --table-size=10000 prepare >/dev/null
  touch "$work/db/ready"
}
mariadb_load() {
  sysbench oltp_read_write --mysql-socket="$work/db/s" --mysql-user=root --tables=2 --table-size=10000 \
    --threads=8 --time="$1" run | awk '/queries:/ {print $2; exit}'
}

pg_bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -1)
postgres_prepare() {
  mkdir -p "$work/pg"
  chown postgres "$work/pg"
  su postgres -c "$pg_bin/initdb -D $work/pg -A trust >/dev/null"
}
postgres_command() {
  # setpriv, not su: guards come in by the environment.
  become=(setpriv --reuid postgres --regid postgres --clear-groups)
  command=("$pg_bin/postgres" -D "$work/pg" -k "$work/pg" -c listen_addresses=)
}
postgres_up() {
  psql -h "$work/pg" -U postgres -c 'select 1' >/dev/null 2>&1 || return 1
  [[ -e $work/pg/ready ]] && return 0
  pgbench -h "$work/pg" -U postgres -i -s 2 postgres >/dev/null 2>&1
  touch "$work/pg/ready"
}
postgres_load() {
  pgbench -h "$work/pg" -U postgres -c 8 -T "$1" postgres 2>/dev/null | awk '/actually processed/ {print $NF}' | cut -d/ -f1
}

# ---- measuring

wait_up() {
  for _ in $(seq 600); do "$1_up" && return 0; sleep 0.1; done
  echo "bench/guard: $1 does not come up" >&2
  tail -5 "$work/$1".{log,*.summary} >&2 2>/dev/null || true
  return 1
}

# The process that `culprit guard run` started, or the server itself.
server_of() { pgrep -P "$1" | head -1 || echo "$1"; }

tree() {
  echo "$1"
  local child
  for child in $(pgrep -P "$1"); do tree "$child"; done
}

# utime + stime + those of children that ended, in ticks, of a process and all below it.
cpu_ticks() {
  local pid sum=0
  for pid in $(tree "$1"); do
    sum=$((sum + $(awk '{sub(".*\\) ", ""); print $12 + $13 + $14 + $15}' "/proc/$pid/stat" 2>/dev/null || echo 0)))
  done
  echo $sum
}

# The first two CPUs that this may use; none if there is only one.
cpus=()
[[ ${PIN:-1} == 0 ]] || mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep="\n")')
[[ ${#cpus[@]} -eq 2 ]] || cpus=()
on_cpu() {  # NUMBER PID, and all below it
  local cpu=${cpus[$1]:-} pid
  [[ -n $cpu ]] || return 0
  for pid in $(tree "$2"); do taskset -a -c -p "$cpu" "$pid" >/dev/null 2>&1 || true; done
}

start_main() {  # SERVER, without guards
  "$1_command"
  "${become[@]}" "${command[@]}" >"$work/$1.log" 2>&1 &
  main=$!
  wait_up "$1"
}

stop_main() {
  kill -TERM "$main" 2>/dev/null || true
  wait "$main" 2>/dev/null || true
  main=
}

# Prints nanoseconds of CPU of a process and those below it per request, under load for so long.
cpu_per_request() {  # SERVER PID SECONDS
  local before after requests
  before=$(cpu_ticks "$2")
  requests=$(on_cpu 1 "$BASHPID"; "$1_load" "$3")
  after=$(cpu_ticks "$2")
  awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$requests" \
    'BEGIN {printf "%.0f\n", (n > 0 ? t / hz * 1e9 / n : 0)}'
}

# The first start, without guards, makes the databases: functions are traced under load only.
train() {
  start_main "$1"
  stop_main
  "${become[@]}" "$culprit" guard train --force --for 40s --trace-for 10s -o "$work/out/$1.cguard" -- \
    "${command[@]}" >"$work/$1.log" 2>&1 &
  main=$!
  wait_up "$1"
  on_cpu 0 "$(server_of "$main")"
  cpu_per_request "$1" "$(server_of "$main")" 5 >"$work/$1.training"
  while [[ -d /proc/$main ]]; do "$1_load" 3 >/dev/null 2>&1 || sleep 0.2; done
  wait "$main" || { tail -20 "$work/$1.log" >&2; return 1; }
  main=
}

# utime + stime of processes.
own_ticks() {
  local pid sum=0
  for pid in "$@"; do sum=$((sum + $(awk '{sub(".*\\) ", ""); print $12 + $13}' "/proc/$pid/stat"))); done
  echo $sum
}

# The processes of a tree that do the work: a tenth of its CPU time each, at least.
workers() {
  local pid ticks all
  all=$(cpu_ticks "$1")
  for pid in $(tree "$1"); do
    ticks=$(own_ticks "$pid")
    ((ticks * 10 < all)) || echo "$pid"
  done
}

# Whom guards are brought into. Where every connection gets a process, it has them from the one that makes it.
guarded() {  # SERVER
  if [[ $1 == postgres ]]; then echo "$main"; else workers "$main"; fi
}

# Sets `attached` to those who brought them; what they say is in $work/SERVER.NAME-*.
bring_guards() {  # SERVER NAME
  local pid
  attached=()
  for pid in $(guarded "$1"); do
    "$culprit" guard attach "$work/out/$1.cguard" "$pid" --json >"$work/$1.$2-$pid.json" 2>"$work/$1.$2-$pid.summary" &
    attached+=($!)
    on_cpu 1 $!
  done
}

# One start of the server; guards come and go (`culprit guard attach`). Two processes of one
# program differ by percents, a process from itself by less.
in_turns() {  # SERVER
  start_main "$1"
  on_cpu 0 "$main"
  (on_cpu 1 "$BASHPID"; "$1_load" 3 >/dev/null)
  local round kind pid order=(none again guard) attached before
  for ((round = 0; round < rounds; ++round)); do
    for kind in "${order[@]}"; do
      attached=()
      [[ $kind == guard ]] && bring_guards "$1" "$round"
      # For some seconds after that the server is slower than it is from then on; all turns rest alike.
      sleep 6
      before=$(own_ticks "${attached[@]}")
      cpu_per_request "$1" "$main" "$seconds" >>"$work/$1.$kind"
      [[ $kind == guard ]] && echo $(($(own_ticks "${attached[@]}") - before)) >>"$work/$1.own"
      for pid in "${attached[@]}"; do
        if ! { kill -INT "$pid" && wait "$pid"; }; then
          echo "bench/guard: guards did not come into $1" >&2
          return 1
        fi
      done
    done
    order=("${order[1]}" "${order[2]}" "${order[0]}")
  done
  stop_main
}

# One start of the server, with guards. Prints the own code's share of the samples of its CPU time:
# those whose innermost user frame is of the library or a trampoline (memory without a file). What the
# kernel does for it is in.
sampled() {  # SERVER
  start_main "$1"
  on_cpu 0 "$main"
  (on_cpu 1 "$BASHPID"; "$1_load" 3 >/dev/null)
  local pid attached perf
  bring_guards "$1" sampled
  sleep 3
  perf record -q -e cpu-clock -F 2000 -g -p "$(tree "$main" | paste -sd,)" -o "$work/$1.perf" >/dev/null 2>&1 &
  perf=$!
  sleep 1
  cpu_per_request "$1" "$main" "$seconds" >"$work/$1.guard"
  kill -INT "$perf"
  wait "$perf" || true
  for pid in "${attached[@]}"; do { kill -INT "$pid" && wait "$pid"; } || true; done
  stop_main
  perf script -i "$work/$1.perf" -F ip,dso 2>/dev/null | python3 -c '
import sys
samples = own = 0
asked = False  # the innermost user frame of this sample is known
for line in sys.stdin:
    words = line.split(None, 1)
    if not words:
        asked = False
        continue
    where = words[1].strip()
    if asked or where.startswith("([kernel") or ".ko" in where:
        continue
    asked = True
    samples += 1
    own += "libculprit_guard.so" in where or "(/tmp/perf-" in where or "//anon" in where or "[JIT]" in where
print(samples, own)'
}

# Prints nanoseconds of CPU per request.
measure() {  # SERVER none|again|guard ROUND
  "$1_command"
  if [[ $2 == guard ]]; then
    "${become[@]}" "$culprit" guard run "$work/out/$1.cguard" --json -- "${command[@]}" >"$work/$1.$3.json" 2>"$work/$1.$3.summary" &
  else
    "${become[@]}" "${command[@]}" >"$work/$1.log" 2>&1 &
  fi
  main=$!
  wait_up "$1"
  local pid=$main
  [[ $2 == guard ]] && pid=$(server_of "$main")
  [[ $2 == guard ]] && on_cpu 1 "$main"
  on_cpu 0 "$pid"
  (on_cpu 1 "$BASHPID"; "$1_load" 2 >/dev/null)
  local before
  before=$(own_ticks "$main")
  cpu_per_request "$1" "$pid" "$seconds"
  [[ $2 == guard ]] && echo $(($(own_ticks "$main") - before)) >>"$work/$1.own"
  stop_main
}

# The relative deviation (sigma / mean) within each of the ten costliest types, by mean.
deviation() {
  "$culprit" guard show --json "$work/out/$1.cguard" | python3 -c '
import json, sys
types = [t for t in json.load(sys.stdin)["types"] if t["samples"] >= 100]
types = sorted(types, key=lambda t: -t["mean_ns"])[:10]
shares = [100 * t["sigma_ns"] / t["mean_ns"] for t in types]
print(f"{sum(shares) / len(shares):.1f} {sorted(shares)[len(shares) // 2]:.1f}" if shares else "- -")'
}

# The rounds' ratios of the second run without guards to the first, and of that with guards to both.
again_to_first() { paste "$work/$1.none" "$work/$1.again" | awk '$1 > 0 {print $2 / $1}' | median; }
guard_to_both() {
  paste "$work/$1.none" "$work/$1.again" "$work/$1.guard" | awk '$1 + $2 > 0 {print 2 * $3 / ($1 + $2)}' | median
}
median() { sort -n | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

if [[ ${HOW:-turns} == samples ]]; then
  command -v perf >/dev/null || { echo 'bench/guard: HOW=samples takes perf' >&2; exit 1; }
  printf '%-10s %14s %10s %10s %10s %14s\n' server 'guards, ns/req' samples 'own, %' 'own, ns' 'hits per unit'
else
  printf '%-10s %14s %8s %8s %8s %8s %14s %8s %17s\n' server 'none, ns/req' again guards culprit training 'hits per unit' alarms \
    'deviation, % (mid)'
fi
for server in "${servers[@]}"; do
  missing=
  for program in ${needs[$server]}; do command -v "$program" >/dev/null || missing+=" $program"; done
  if [[ -n $missing ]]; then echo "$server: left out, no$missing"; continue; fi
  become=()
  "${server}_prepare"
  train "$server" || { echo "$server: training failed"; continue; }
  if [[ ${HOW:-turns} == samples ]]; then
    read -r all own < <(sampled "$server") || true
    awk -v s="$server" -v n="$(<"$work/$server.guard")" -v a="${all:-0}" -v o="${own:-0}" \
      -v h="$(sed -n 's/.*hits per unit *//p' "$work/$server".*.summary | median)" \
      'BEGIN {share = a > 0 ? o / a : 0; printf "%-10s %14d %10d %10.2f %10.0f %14s\n", s, n, a, 100 * share, n * share, h}'
    continue
  fi
  for kind in none again guard own; do : >"$work/$server.$kind"; done
  if [[ ${HOW:-turns} == turns ]]; then
    in_turns "$server" || { stop_main; continue; }
  else
    order=(none again guard)
    for ((round = 0; round < rounds; ++round)); do
      for kind in "${order[@]}"; do measure "$server" "$kind" "$round" >>"$work/$server.$kind"; done
      order=("${order[1]}" "${order[2]}" "${order[0]}")
    done
  fi
  none=$(median <"$work/$server.none")
  # Of one CPU, as the server has.
  own=$(median <"$work/$server.own" | awk -v hz="$(getconf CLK_TCK)" -v s="$seconds" '{printf "%.3f", $1 / hz / s}')
  hits=$(sed -n 's/.*hits per unit *//p' "$work/$server".*.summary | median)
  alarms=$(cat "$work/$server".*.json | grep '"state"' | grep -vc '"state":"summary"' || true)
  awk -v s="$server" -v n="$none" -v a="$(again_to_first "$server")" -v g="$(guard_to_both "$server")" \
    -v t="$(<"$work/$server.training")" -v o="$own" -v h="$hits" -v l="$alarms" -v d="$(deviation "$server")" \
    'BEGIN {split(d, p, " "); printf "%-10s %14d %8.3f %8.3f %8s %8.2f %14s %8d %9s (%s)\n", s, n, a, g, o, t / n, h, l, p[1], p[2]}'
done
