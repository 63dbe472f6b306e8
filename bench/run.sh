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

if wanted info; then
  [[ -d $work/windows-study-0 ]] ||
    "$culprit" synth --like windows-study --scale 0.02 --seed 1 -o "$work/windows-study-0" >/dev/null
  echo; echo "== info on windows-study at 0.02"
  measured "$culprit" info "$work/windows-study-0" >/dev/null
fi

if wanted catalog; then
  echo; echo "== catalog of 20,000 traces and 500,000 instances"
  build-bench/catalog_bench "$work/catalog"
fi
