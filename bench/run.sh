#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benchmarks of docs/benchmarks.md and prints their figures. Called by
# ./do bench; an argument keeps only the benchmarks whose name contains it.
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-}
culprit=build-bench/culprit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wanted() { [[ -z $filter || $1 == *"$filter"* ]]; }
# Wall seconds, CPU seconds and peak memory of a command.
measured() { command time -f '  %e s wall, %U s user + %S s system, %M kB peak' "$@"; }

echo "machine: $(uname -m), $(nproc) CPUs, kernel $(uname -r), $(date +%F)"

if wanted synth; then
  for like in windows-study drivers; do
    scale=$([[ $like == windows-study ]] && echo 0.02 || echo 0.01)
    for jobs in 1 0; do
      echo; echo "== synth --like $like --scale $scale --jobs $jobs"
      measured "$culprit" synth --like "$like" --scale "$scale" --seed 1 --jobs "$jobs" -o "$work/$like-$jobs" |
        sed -n '1,8p'
    done
  done
fi

if wanted trace_file; then
  for like in windows-study drivers server; do
    echo; echo "== trace_file on --like $like"
    "$culprit" synth --like "$like" --traces 3 --seed 7 -o "$work/file-$like" >/dev/null
    build-bench/trace_file_bench "$work/file-$like"/traces/*.ctrace
  done
fi

if wanted unwind; then
  echo; echo "== unwind"
  build-bench/unwind_bench /usr/lib/*-linux-gnu/libc.so.6 /usr/bin/bash /usr/sbin/nginx /usr/sbin/mariadbd
fi

if wanted info; then
  [[ -d $work/windows-study-0 ]] ||
    "$culprit" synth --like windows-study --scale 0.02 --seed 1 -o "$work/windows-study-0" >/dev/null
  echo; echo "== info on windows-study at 0.02"
  measured "$culprit" info "$work/windows-study-0" >/dev/null
fi

if wanted waitgraph; then
  for like in windows-study drivers server; do
    echo; echo "== waitgraph on --like $like"
    "$culprit" synth --like "$like" --traces 1 --seed 7 -o "$work/graph-$like" >/dev/null
    build-bench/waitgraph_bench "$work/graph-$like"/traces/*.ctrace
  done
fi

if wanted causality; then
  for scale in 0.0125 0.025 0.05; do
    "$culprit" synth --like drivers --scale "$scale" --seed 1 -o "$work/causality-$scale" >/dev/null
  done
  echo; echo "== causality: impact of all modules and eight contrasts on drivers, three sizes"
  build-bench/causality_bench "$work"/causality-*
fi

if wanted episode; then
  echo; echo "== episode: 5.3 M system calls"
  measured build-bench/episode_bench
  if command -v redis-benchmark >/dev/null && [[ $EUID == 0 ]]; then
    echo; echo "== episode: profile of redis-server under redis-benchmark"
    redis-server --port 18500 --save '' --dir "$work" >/dev/null &
    server=$!
    until redis-cli -p 18500 ping >/dev/null 2>&1; do sleep 0.2; done
    timeout 15 redis-benchmark -p 18500 -n 1000000 -q >/dev/null &
    "$culprit" record --syscalls --budget 0 -F 0 --for 15s --pid "$server" -o "$work/redis.ctrace" 2>/dev/null
    wait $! || true
    kill "$server"
    measured "$culprit" profile "$work/redis.ctrace" -o "$work/redis.cprof"
  fi
fi

if wanted report; then
  echo; echo "== report: analyze of 100 traces"
  "$culprit" synth --like windows-study --traces 100 --seed 1 -o "$work/hundred" >/dev/null
  "$culprit" info "$work/hundred" | sed -n '1,8p'
  measured "$culprit" analyze "$work/hundred" -o "$work/hundred.html" | head -n 1
  echo "  $(stat -c %s "$work/hundred.html") bytes of report"
  "$culprit" serve "$work/hundred" --port 0 >"$work/url" 2>/dev/null &
  server=$!
  until curl -sf "$(cat "$work/url")api/v1/parts/clusters" -o /dev/null; do sleep 0.2; done
  if command -v wrk >/dev/null; then
    wrk -t 2 -c 200 -d 5s --latency "$(cat "$work/url")api/v1/parts/clusters" | sed -n '3,12p'
  else
    echo "  serve: not measured, no wrk"
  fi
  kill "$server"
  wait "$server" || true
fi

if wanted catalog; then
  echo; echo "== catalog of 20,000 traces and 500,000 instances"
  build-bench/catalog_bench "$work/catalog"
fi

if wanted cluster; then
  echo; echo "== cluster: 15,000 patterns"
  build-bench/cluster_bench 15000 5
fi

if wanted mine; then
  echo; echo "== costly maximal patterns, beside BIDE"
  build-bench/mine_bench
fi

if wanted symbol; then
  library=$(ldd "$culprit" | awk '/libstdc\+\+/ { print $3; exit }')
  for file in "$culprit" "$library"; do
    echo; echo "== symbol: addresses of $(basename "$file") to functions, beside libdwfl"
    build-bench/symbol_bench "$(readlink -f "$file")"
  done
fi

if wanted ctf; then
  for archive in ../shared/data/ctf/*.tgz; do
    [[ -f $archive ]] || continue
    mkdir -p "$work/ctf" && tar -xf "$archive" -C "$work/ctf"
  done
  [[ -d $work/ctf ]] || echo "ctf: skipped, no recordings beside the repository"
  while IFS= read -r metadata; do
    echo; echo "== ctf: ${metadata#"$work/ctf/"}, beside babeltrace2"
    build-bench/ctf_bench "$(dirname "$metadata")"
  done < <(find "$work/ctf" -name metadata 2>/dev/null | sort)
fi

if wanted perf_data; then
  echo; echo "== perf_data: a recording of this machine, beside perf script"
  # --buildid-mmap: no pass over the file at the end of the recording.
  if perf record -q --buildid-mmap -m 32M -a -g -e sched:sched_switch,sched:sched_waking,cpu-clock \
      -o "$work/perf.data" -- perf bench sched pipe -l 250000 >/dev/null 2>"$work/perf.log"; then
    cpu() { command time -o "$work/cpu" -f '%U %S %e %M' "$@" >/dev/null 2>&1; }
    figures() { awk -v what="$1" '{ printf "%-44s %7.2f s CPU %7.2f s wall %9d kB peak\n", what, $1 + $2, $3, $4 }' "$work/cpu"; }
    seconds() { awk '{ print $1 + $2 }' "$work/cpu"; }
    echo "  $(stat -c %s "$work/perf.data") bytes"
    cpu perf script -i "$work/perf.data" -F comm,tid,time,event,ip,sym
    figures "perf script"; peer=$(seconds)
    samples=$(perf report -i "$work/perf.data" --stats 2>/dev/null | awk '/ SAMPLE events:/ { print $3; exit }')
    for flags in "" "--no-symbols"; do
      # It takes less than a second: the best of three.
      rm -f "$work/best"
      for round in 1 2 3; do
        # shellcheck disable=SC2086 # no flag is no word
        cpu "$culprit" import "$work/perf.data" -o "$work/import$flags-$round" --jobs 1 $flags
        if [[ ! -f $work/best ]] || awk '{ t[NR] = $1 + $2 } END { exit t[1] >= t[2] }' "$work/cpu" "$work/best"; then
          cp "$work/cpu" "$work/best"
        fi
      done
      cp "$work/best" "$work/cpu"
      figures "culprit import $flags"
      awk -v own="$(seconds)" -v peer="$peer" -v samples="$samples" 'BEGIN {
        printf "  %d samples, %.2f M/s of CPU time, %.1f times perf script\n", samples, samples / own / 1e6, peer / own }'
    done
  else
    sed 's/^/  skipped: /' "$work/perf.log"
  fi
fi

if wanted scale; then
  echo; echo "== scale: two studies at 1 %; bench/scale.sh FOLDER 0.1 1 for more"
  CULPRIT=$culprit SCALE_BENCH=build-bench/scale_bench bench/scale.sh "$work/scale" 0.01
fi
