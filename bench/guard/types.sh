#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How well guards tell the types of units on a load that training did not see:
# each server runs under full tracing twice, under one load and under another; the
# profile of the first is held against the full call trees of the second.
#
#   bench/guard/types.sh [SERVER...]
#
# Servers: redis nginx memcached apache2 mariadb postgres; those that are not installed
# are named and left out. They listen on loopback only and are ended with the
# script. Root for apache2, mariadb and postgres. Some minutes, most of them PostgreSQL's; TYPES=path of
# guard_types, SECONDS_A_RUN for longer loads, FOLDER to keep logs and profiles.
set -euo pipefail
cd "$(dirname "$0")/../.."
types=$(realpath "${TYPES:-build-bench/guard_types}")
servers=("$@")
[[ ${#servers[@]} -gt 0 ]] || servers=(redis nginx memcached apache2 mariadb postgres)
seconds=${SECONDS_A_RUN:-6}
[[ -x $types ]] || { echo "bench/guard: no $types: ./do bench builds it, or set TYPES" >&2; exit 1; }

work=${FOLDER:-$(mktemp -d)}
mkdir -p "$work"
chmod 755 "$work"
main=
finish() {
  [[ -z $main ]] || { kill "$main" 2>/dev/null && wait "$main" 2>/dev/null; } || true
  [[ -n ${FOLDER:-} ]] || rm -rf "$work"
}
trap finish EXIT

declare -A needs=(
  [redis]='redis-server redis-cli redis-benchmark' [nginx]='nginx ab curl' [memcached]='memcached memcslap'
  [apache2]='apache2 ab curl' [mariadb]='mariadbd mariadb-install-db mariadb-admin sysbench' [postgres]='pgbench psql'
)

# ---- servers: NAME_prepare once; NAME_command sets `command`; NAME_up waits for
# ---- it; NAME_load_1 and NAME_load_2 put load on it, until they are ended

redis_prepare() { :; }
redis_command() { command=(redis-server --bind 127.0.0.1 --port 18101 --save '' --appendonly no --dir "$work"); }
redis_up() { redis-cli -p 18101 ping 2>/dev/null | grep -q PONG; }
redis_load_1() {
  redis-benchmark -p 18101 -q -l -n 3000 -c 20 -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset &
  redis-benchmark -p 18101 -q -l -n 5000 -c 10 -P 8 -t set,get,incr,lpush,sadd
}
# Other connections, pipelines, keys and sizes of values.
redis_load_2() {
  redis-benchmark -p 18101 -q -l -n 2000 -c 7 -r 10000 -d 300 -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset &
  redis-benchmark -p 18101 -q -l -n 3000 -c 3 -P 16 -r 500 -d 1000 -t get,set,sadd,lpush
}

web_load() {  # PORT CLIENTS FILE...
  local port=$1 clients=$2
  shift 2
  while :; do
    for file in "$@"; do
      ab -q -n 150 -c "$clients" "http://127.0.0.1:$port/$file" >/dev/null 2>&1 || sleep 0.1
      ab -q -k -n 300 -c "$clients" "http://127.0.0.1:$port/$file" >/dev/null 2>&1 || sleep 0.1
      curl -s -o /dev/null -I "http://127.0.0.1:$port/$file" || :
      curl -s -o /dev/null -r 0-99 "http://127.0.0.1:$port/$file" || :
    done
  done
}
web_files() {
  mkdir -p "$1/d"
  for kb in 1 4 40; do head -c "${kb}000" /dev/zero | tr '\0' 'x' >"$1/$kb.html"; done
  cp "$1/4.html" "$1/d/index.html"
}
nginx_prepare() {
  web_files "$work/html"
  cat >"$work/nginx.conf" <<END
daemon off; worker_processes 2; pid $work/nginx.pid; error_log /dev/null;
events { worker_connections 256; }
http { access_log off; client_body_temp_path $work/b; proxy_temp_path $work/p;
  fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s;
  gzip on; gzip_types text/plain; include /etc/nginx/mime.types; index index.html;
  server { listen 127.0.0.1:18102; root $work/html; } }
END
}
nginx_command() { command=(nginx -c "$work/nginx.conf" -p "$work"); }
nginx_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/18102' 2>/dev/null; }
nginx_load_1() { web_load 18102 8 1.html 4.html 40.html d/ none.html; }
nginx_load_2() { web_load 18102 3 40.html 1.html none.html d/; }

memcached_prepare() { :; }
memcached_command() { command=(memcached -l 127.0.0.1 -p 18103 -t 2 -u nobody); }
memcached_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/18103' 2>/dev/null; }
memcached_load_1() {
  while :; do
    memcslap -s 127.0.0.1:18103 --concurrency=6 --execute-number=300 --test=set >/dev/null 2>&1 || sleep 0.1
    memcslap -s 127.0.0.1:18103 --concurrency=6 --execute-number=300 --test=get >/dev/null 2>&1 || sleep 0.1
    memcslap -s 127.0.0.1:18103 --concurrency=3 --execute-number=100 --test=mget --binary >/dev/null 2>&1 || sleep 0.1
    printf 'set c 0 0 1\r\n1\r\nincr c 1\r\ndecr c 1\r\nget nope\r\ndelete c\r\nquit\r\n' |
      timeout 1 bash -c 'exec 3<>/dev/tcp/127.0.0.1/18103; cat >&3; cat <&3' >/dev/null || :
  done
}
memcached_load_2() {
  while :; do
    memcslap -s 127.0.0.1:18103 --concurrency=2 --execute-number=500 --test=get >/dev/null 2>&1 || sleep 0.1
    memcslap -s 127.0.0.1:18103 --concurrency=9 --execute-number=100 --test=set >/dev/null 2>&1 || sleep 0.1
    memcslap -s 127.0.0.1:18103 --concurrency=2 --execute-number=50 --test=mget --binary >/dev/null 2>&1 || sleep 0.1
    printf 'get nope\r\nset c 0 0 3\r\n100\r\nget c\r\nincr c 5\r\nincr c 5\r\ndelete c\r\nquit\r\n' |
      timeout 1 bash -c 'exec 3<>/dev/tcp/127.0.0.1/18103; cat >&3; cat <&3' >/dev/null || :
  done
}

apache2_prepare() {
  web_files "$work/apache"
  cat >"$work/apache.conf" <<END
ServerName localhost
ServerRoot $work
PidFile $work/apache.pid
Listen 127.0.0.1:18104
ErrorLog /dev/null
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
TypesConfig /etc/mime.types
User www-data
Group www-data
StartServers 1
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
DocumentRoot $work/apache
DirectoryIndex index.html
END
}
apache2_command() { command=(apache2 -f "$work/apache.conf" -D FOREGROUND); }
apache2_up() { timeout 1 bash -c '</dev/tcp/127.0.0.1/18104' 2>/dev/null; }
apache2_load_1() { web_load 18104 8 1.html 4.html 40.html d/ none.html; }
apache2_load_2() { web_load 18104 3 40.html 1.html none.html d/; }

# Made before anything is traced.
mariadb_prepare() {
  [[ ! -e $work/db ]] || return 0
  mkdir "$work/db"
  chown mysql "$work/db"
  mariadb-install-db --user=mysql --datadir="$work/db" --auth-root-authentication-method=normal >/dev/null 2>&1
  mariadb_command
  "${command[@]}" >"$work/mariadb.log" 2>&1 &
  main=$!
  for _ in $(seq 300); do mariadb_up && break; sleep 0.1; done
  mariadb-admin --socket="$work/db/s" -u root create sbtest
  mariadb_sysbench prepare >/dev/null
  kill "$main"
  wait "$main" || :
  main=
}
mariadb_command() {
  command=(mariadbd --no-defaults --user=mysql "--datadir=$work/db" "--socket=$work/db/s" --skip-networking "--pid-file=$work/db/pid")
}
mariadb_up() { mariadb-admin --socket="$work/db/s" -u root ping >/dev/null 2>&1; }
mariadb_sysbench() {
  sysbench oltp_read_write --mysql-socket="$work/db/s" --mysql-user=root --tables=2 --table-size=10000 --time=600 "$@"
}
mariadb_load_1() { mariadb_sysbench --threads=4 run; }
# Other numbers of each statement, of rows and of clients.
mariadb_load_2() {
  mariadb_sysbench --threads=7 --point-selects=3 --simple-ranges=3 --sum-ranges=2 --distinct-ranges=2 \
    --index-updates=3 --delete-inserts=2 --range-size=40 run
}

pg_bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -1)
postgres_prepare() {
  mkdir -p "$work/pg"
  chown postgres "$work/pg"
  [[ -e $work/pg/PG_VERSION ]] || su postgres -c "$pg_bin/initdb -D $work/pg -A trust >/dev/null"
}
postgres_command() {
  # setpriv, not su: guards come in by the environment.
  command=(setpriv --reuid postgres --regid postgres --clear-groups "$pg_bin/postgres" -D "$work/pg" -k "$work/pg" -c listen_addresses=)
}
postgres_up() {
  psql -h "$work/pg" -U postgres -c 'select 1' >/dev/null 2>&1 || return 1
  [[ -e $work/pg/ready ]] && return 0
  pgbench -h "$work/pg" -U postgres -i -s 2 postgres >/dev/null 2>&1
  touch "$work/pg/ready"
}
postgres_load_1() { pgbench -h "$work/pg" -U postgres -c 4 -T 600 postgres; }
postgres_load_2() { pgbench -h "$work/pg" -U postgres -c 7 -T 600 -b tpcb-like@2 -b select-only@1 postgres; }

# ---- measuring

# A process and all that it started, the youngest last.
family() {
  echo "$1"
  local child
  for child in $(pgrep -P "$1" || :); do family "$child"; done
}

run_traced() {  # SERVER LOAD; prints the session's folder
  "$1_command"
  "$types" trace "$work/sessions" $((seconds + 6)) -- "${command[@]}" >"$work/session" 2>"$work/$1.log" &
  main=$!
  for _ in $(seq 300); do "$1_up" && break; sleep 0.1; done
  "$1_load_$2" >/dev/null 2>&1 &
  local load=$!
  sleep "$seconds"
  # shellcheck disable=SC2046
  kill $(family "$load") 2>/dev/null || :
  wait "$load" 2>/dev/null || :
  wait "$main" || { main=; cat "$work/$1.log" >&2; return 1; }
  main=
  tail -n 1 "$work/session"
}

for server in "${servers[@]}"; do
  for program in ${needs[$server]}; do
    command -v "$program" >/dev/null || { echo "$server: no $program"; continue 2; }
  done
  "${server}_prepare"
  first=$(run_traced "$server" 1)
  second=$(run_traced "$server" 2)
  echo "$server"
  "$types" learn "$first" "$work/$server.cguard"
  "$types" judge "$work/$server.cguard" "$second"
  printf 'within the budget, '
  "$types" judge "$work/$server.cguard" "$second" budget | sed -n 1p
  [[ -n ${FOLDER:-} ]] || rm -rf "$first" "$second"
done
