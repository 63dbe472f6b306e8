#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The two studies at several sizes, from traces to verdict: without summaries, cold,
# with summaries, and after 1 % of traces were added. Fills the tables of docs/scale.md.
#
#   bench/scale.sh FOLDER [SHARE...]      SHARE: 0.01 0.1 1 (default: 0.01 0.1)
#
# FOLDER takes the simulated corpora (at share 1 about 1.5 GB for windows-study and
# 2.3 GB for drivers, and summaries) and is not removed: a second run finds them
# there. CULPRIT and SCALE_BENCH name the programs, build-bench/ has them otherwise.
set -euo pipefail
[[ $# -ge 1 ]] || { sed -n '3,10p' "$0"; exit 2; }
folder=$1
shift
shares=("$@")
[[ ${#shares[@]} -gt 0 ]] || shares=(0.01 0.1)
root=$(cd "$(dirname "$0")/.." && pwd)
culprit=${CULPRIT:-$root/build-bench/culprit}
scale_bench=${SCALE_BENCH:-$root/build-bench/scale_bench}
mkdir -p "$folder"
export CULPRIT_SIGNATURES=$folder/no-signatures.json

# Bytes that this shell and the commands it waited for have read, cached or not.
bytes_read() {
  local key value
  while read -r key value; do
    if [[ $key == rchar: ]]; then read_so_far=$value; fi
  done <"/proc/$$/io"
}

# measured WHAT COMMAND...: wall, CPU, peak memory, and what was read from files,
# cached or not. Standard output goes to $folder/out, its hash is printed.
measured() {
  local what=$1 before
  shift
  bytes_read
  before=$read_so_far
  command time -o "$folder/figures" -f '%e %U %S %M' "$@" >"$folder/out" 2>"$folder/err" ||
    { tail -n 5 "$folder/err" >&2; return 1; }
  bytes_read
  awk -v what="$what" -v hash="$(sha256sum <"$folder/out" | cut -c 1-10)" -v bytes=$((read_so_far - before)) '{
    printf "  %-44s %8.1f s wall %8.1f s CPU %7.0f MB peak %9.1f MB read   %s\n", what, $1, $2 + $3, $4 / 1024, bytes / 1e6, hash
  }' "$folder/figures"
}

bytes() { du -sb "$1" 2>/dev/null | cut -f 1; }
traces() { find "$1/traces" -name '*.ctrace' | wc -l; }

summaries() {
  local count
  count=$(traces "$1")
  awk -v bytes="$(bytes "$1/summaries")" -v traces="$count" -v raw="$(bytes "$1/traces")" 'BEGIN {
    printf "  summaries: %.1f MB, %.1f kB a trace, %.1f %% of the traces\n", bytes / 1e6, bytes / traces / 1e3, 100 * bytes / raw
  }'
}

# three CORPUS NAME COMMAND...: without summaries, cold, warm.
three() {
  local corpus=$1 name=$2
  shift 2
  measured "$name --no-summaries" "$culprit" "$@" "$corpus" --no-summaries --json
  "$culprit" corpus trim "$corpus" >/dev/null
  measured "$name, cold" "$culprit" "$@" "$corpus" --json
  measured "$name, with summaries" "$culprit" "$@" "$corpus" --json
}

study() {
  local like=$1 share=$2
  local corpus=$folder/$like-$share more=$folder/$like-$share-more
  if [[ ! -f $corpus/catalog.sqlite ]]; then
    rm -rf "$corpus" "$more"
    measured "synth" "$culprit" synth --like "$like" --scale "$share" --seed 1 -o "$corpus"
  fi
  echo "  $(traces "$corpus") traces, $(bytes "$corpus/traces") bytes"
  three "$corpus" analyze analyze -o "$folder/report.html"
  summaries "$corpus"
  measured "analyze, with summaries, --memory 128MB" "$culprit" analyze -o "$folder/report.html" "$corpus" --json --memory 128MB
  if [[ $like == drivers ]]; then
    "$culprit" corpus trim "$corpus" >/dev/null
    measured "impact, cold" "$culprit" impact "$corpus" --component '*.sys' --json
    measured "contrast, after impact" "$culprit" contrast "$corpus" --component '*.sys' --json
    measured "impact again" "$culprit" impact "$corpus" --component '*.sys' --json
  else
    three "$corpus" mine mine
  fi
  # One trace in a hundred, of another seed; only the first run can add them.
  if [[ ! -d $more ]]; then
    local count
    count=$((($(traces "$corpus") + 99) / 100))
    "$culprit" synth --like "$like" --traces "$count" --seed 2 -o "$more" >/dev/null 2>&1
    "$culprit" analyze "$corpus" -o "$folder/report.html" --json >/dev/null 2>&1
    "$culprit" corpus add "$corpus" "$more"/traces/*.ctrace >/dev/null 2>&1
    measured "analyze, 1 % of traces added" "$culprit" analyze "$corpus" -o "$folder/report.html" --json
  fi
}

echo "machine: $(uname -m), $(nproc) CPUs, kernel $(uname -r), $(date +%F)"
for share in "${shares[@]}"; do
  for like in windows-study drivers; do
    echo
    echo "== $like at $share"
    study "$like" "$share"
    if [[ -x $scale_bench ]]; then "$scale_bench" "$folder/$like-$share" 40 | sed 's/^/  /'; fi
  done
done
