#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What recording does to the slowest answers of a server that has CPUs to spare: selects of
# single rows at a given rate by sysbench, on MariaDB, by four connections, without a recorder,
# under `culprit record --system` and under `perf record -g` of the same events, in turns.
#
#   bench/record/latency.sh [ROUNDS] [RATE] [SECONDS]
#
# 5 rounds of 6000 a second for 8 seconds without operands. BEFORE=FILE is another culprit,
# for rows of its own. Times are from the moment at which a select was due. Takes root, and a
# machine with nothing else to do. Prints the table of docs/benchmarks.md: medians of the
# rounds.
set -euo pipefail
cd "$(dirname "$0")/../.."
source bench/record/common.sh
rounds=${1:-5} rate=${2:-6000} seconds=${3:-8}
engines=(none again budget all)
if [[ -n ${BEFORE:-} ]]; then
  engines+=(before_budget before_all)
  label+=([before_budget]="that of before" [before_all]="that of before, --budget 0")
fi
for program in mariadbd mariadb-install-db sysbench; do
  command -v "$program" >/dev/null || { echo "bench/record: $program is not installed (packages.txt)" >&2; exit 1; }
done
command -v perf >/dev/null && engines+=(perf)
now=$culprit

# Milliseconds within which half, 99 % and 99.9 % of all were answered.
percentiles() {
  awk '
    $2 == "|" || $2 ~ /^\|/ { value[++rows] = $1; count[rows] = $NF; all += $NF }
    END {
      split("50 99 99.9", wanted, " ")
      next_one = 1
      for (i = 1; i <= rows; ++i) {
        below += count[i]
        while (next_one <= 3 && below >= all * wanted[next_one] / 100) out[next_one++] = value[i]
      }
      print out[1], out[2], out[3]
    }'
}

measure() {
  culprit=$now
  [[ $1 == before_* ]] && culprit=$BEFORE
  sync
  start_recorder "${1#before_}"
  sysbench oltp_point_select "${oltp_flags[@]}" --rate="$rate" --time="$seconds" --histogram run |
    percentiles
  stop_recorder latency "${1#before_}"
}

mariadb_start
measure none >/dev/null
for ((round = 0; round < rounds; ++round)); do
  for ((i = 0; i < ${#engines[@]}; ++i)); do
    engine=${engines[(i + round) % ${#engines[@]}]}
    measure "$engine" >>"$work/latency-$engine"
  done
done
echo "machine: $(uname -m), $(nproc) CPUs, kernel $(uname -r), $(date +%F); $rounds rounds of" \
  "$rate a second for $seconds seconds"
echo
echo "| | half within, ms | 99 % | 99.9 % | 99.9 % of the rounds |"
echo "|---|---|---|---|---|"
for engine in "${engines[@]}"; do
  printf '| %s |' "${label[$engine]}"
  for column in 1 2 3; do
    printf ' %.2f |' "$(cut -d ' ' -f $column "$work/latency-$engine" | median)"
  done
  printf ' %s |\n' "$(cut -d ' ' -f 3 "$work/latency-$engine" | sort -n | awk '{ printf "%s%.2f", (NR > 1 ? ", " : ""), $1 }')"
done
