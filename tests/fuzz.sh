#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh SECONDS [TARGET...]: runs every fuzz target, or those named, of build-fuzz
# (or $CULPRIT_FUZZ_DIR) for that long each, from the seeds that its make_seeds
# writes. Findings stay there.
set -euo pipefail
cd "${CULPRIT_FUZZ_DIR:-$(dirname "$0")/../build-fuzz}"
seconds=${1:-60}
shift || true
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(*_fuzz)
found=0
for target in "${targets[@]}"; do
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
    echo "fuzz: $target failed; the inputs are in $PWD/$target-*" >&2
    exit 1
  fi
done
[[ $found -eq 1 ]] || { echo "fuzz: there is no target" >&2; exit 1; }
echo "fuzz: no finding"
