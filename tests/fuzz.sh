#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of build-fuzz for the given number of seconds, from the
# seeds that build-fuzz/make_seeds writes. Findings stay in build-fuzz/.
set -euo pipefail
cd "$(dirname "$0")/../build-fuzz"
seconds=${1:-60}
found=0
for target in *_fuzz; do
  [[ -x $target ]] || continue
  found=1
  seeds=seeds/$target
  mkdir -p "$seeds" "corpus/$target"
  ./make_seeds "$target" "$seeds"
  echo "fuzzing $target for $seconds s from $(find "$seeds" -type f | wc -l) seeds"
  "./$target" -max_total_time="$seconds" -rss_limit_mb=3000 -timeout=20 -max_len=1000000 \
    -print_final_stats=1 -artifact_prefix="$target-" "corpus/$target" "$seeds" 2>&1 |
    grep -E '^(stat::number_of_executed_units|stat::peak_rss_mb|==|SUMMARY|Done)|ERROR|Test unit' || true
  if compgen -G "$target-crash-*" >/dev/null || compgen -G "$target-oom-*" >/dev/null ||
    compgen -G "$target-timeout-*" >/dev/null || compgen -G "$target-leak-*" >/dev/null; then
    echo "fuzz: $target failed; the inputs are in build-fuzz/$target-*" >&2
    exit 1
  fi
done
[[ $found -eq 1 ]] || { echo "fuzz: there is no target" >&2; exit 1; }
echo "fuzz: no finding"
