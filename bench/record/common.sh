# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the benchmarks of the recorder have in common: recorders by name, a MariaDB, and that
# both are gone at the end. Sourced from the root of the tree.
culprit=${CULPRIT:-build-bench/culprit}
# shellcheck disable=SC2034 # for those who source it
declare -A label=(
  [none]='no recorder' [again]='no recorder, again' [budget]='culprit record'
  [all]='culprit record --budget 0' [perf]='perf record -g'
)
[[ $EUID -eq 0 ]] || { echo "bench/record: recording takes root" >&2; exit 1; }
[[ -x $culprit ]] || { echo "bench/record: no $culprit: ./do bench builds it, or set CULPRIT" >&2; exit 1; }

work=$(mktemp -d)
servers=()
recorder=
finish() {
  for pid in $recorder "${servers[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT

start_recorder() {
  recorder=
  case $1 in
    budget) "$culprit" record --system --force -o "$work/t.ctrace" >/dev/null 2>"$work/said" & ;;
    all)
      "$culprit" record --system --budget 0 --force -o "$work/t.ctrace" >/dev/null 2>"$work/said" &
      ;;
    perf)
      perf record -a -g -B -o "$work/perf.data" -e cpu-clock/freq=1000/ -e sched:sched_switch \
        -e sched:sched_waking -e block:block_rq_issue -e block:block_rq_complete >/dev/null 2>&1 &
      ;;
    *) return ;;
  esac
  recorder=$!
  # Loaded, attached, and the governor has settled.
  sleep 2
  kill -0 "$recorder" 2>/dev/null || { echo "bench/record: ${label[$1]} does not run here" >&2; return 1; }
}
stop_recorder() {
  [[ -n $recorder ]] || return 0
  kill -INT "$recorder"
  wait "$recorder" || true
  recorder=
  [[ $2 == perf ]] || grep -E 'recorded|cost|sums only|were lost' "$work/said" >"$work/said-$1-$2" || true
}

# Of a MariaDB with two tables of 10,000 rows, on a socket file only.
oltp_flags=(--db-driver=mysql --mysql-socket="$work/db.sock" --mysql-user=root --mysql-db=test
            --tables=2 --table-size=10000 --threads=4)
mariadb_start() {
  mariadb-install-db --no-defaults --user=root --datadir="$work/db" \
    --auth-root-authentication-method=normal >/dev/null 2>&1
  mariadbd --no-defaults --user=root --datadir="$work/db" --socket="$work/db.sock" \
    --skip-networking >/dev/null 2>&1 &
  servers+=($!)
  for _ in $(seq 100); do [[ -S $work/db.sock ]] && break; sleep 0.1; done
  sysbench oltp_read_write "${oltp_flags[@]}" prepare >/dev/null
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
