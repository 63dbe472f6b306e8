#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Table 5 of paper 002 again: how far units of one type differ, by the workload that the paper
# had. apache2 serves twenty of the example pages that come with Bootstrap to ApacheBench, four
# requests at a time; printed are the ten types of the longest units, with the mean of
# their times and the relative deviation (sigma / mean). Then once more with pages compressed
# by the server, where a unit takes about as long as in the paper.
#
#   bench/guard/deviation.sh [SECONDS]
#
# Takes root, apache2, ab and the pages (libjs-bootstrap5-doc), on a machine with nothing else to
# do; SECONDS of load each way, 40 without it. The server listens on loopback and is ended with the script.
set -euo pipefail
cd "$(dirname "$0")/../.."
culprit=$(realpath "${CULPRIT:-build-bench/culprit}")
seconds=${1:-40}
pages=/usr/share/doc/libjs-bootstrap5/examples
[[ -x $culprit ]] || { echo "bench/guard: no $culprit: ./do bench builds it, or set CULPRIT" >&2; exit 1; }
[[ -d $pages ]] || { echo "bench/guard: no $pages (libjs-bootstrap5-doc)" >&2; exit 1; }

work=$(mktemp -d)
chmod 755 "$work"
main=
finish() {
  [[ -z $main ]] || { kill "$main" 2>/dev/null && wait "$main" 2>/dev/null; } || true
  rm -rf "$work"
}
trap finish EXIT

install -d -m 1777 "$work/out"  # the server's processes are another user's
cp -rL "$pages" "$work/html"
find "$work/html" -name '*.gz' -exec gunzip -f {} +
chmod -R a+rX "$work/html"
mapfile -t names < <(cd "$work/html" && printf '%s\n' */index.html | head -20)
modules=/usr/lib/apache2/modules
cat >"$work/apache.conf" <<END
ServerName localhost
ServerRoot $work
PidFile $work/apache.pid
Listen 127.0.0.1:17405
ErrorLog /dev/null
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule dir_module $modules/mod_dir.so
LoadModule mime_module $modules/mod_mime.so
LoadModule filter_module $modules/mod_filter.so
LoadModule deflate_module $modules/mod_deflate.so
TypesConfig /etc/mime.types
AddOutputFilterByType DEFLATE text/html
User www-data
Group www-data
StartServers 1
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
DocumentRoot $work/html
END

measure() {  # NAME [HEADER]
  local header=()
  [[ -z ${2:-} ]] || header=(-H "$2")
  "$culprit" guard train --force --for "${seconds}s" --trace-for 8s -o "$work/out/$1.cguard" -- \
    apache2 -f "$work/apache.conf" -D FOREGROUND >"$work/log" 2>&1 &
  main=$!
  while [[ -d /proc/$main ]]; do
    for name in "${names[@]}"; do
      ab -q "${header[@]}" -n 500 -c 4 "http://127.0.0.1:17405/$name" >/dev/null 2>&1 || sleep 0.1
    done
  done
  wait "$main" || { tail -5 "$work/log" >&2; return 1; }
  main=
  echo "$1: of the ten types with the longest units"
  "$culprit" guard show --json "$work/out/$1.cguard" | python3 -c '
import json, sys
types = [t for t in json.load(sys.stdin)["types"] if t["samples"] >= 100]
types = sorted(types, key=lambda t: -t["mean_ns"])[:10]
shares = [100 * t["sigma_ns"] / t["mean_ns"] for t in types]
print("  rank   mean, us   deviation, %  units measured")
for rank, (one, share) in enumerate(zip(types, shares), 1):
    print("  %4d %10.1f %14.1f %15d" % (rank, one["mean_ns"] / 1e3, share, one["samples"]))
times = [t["mean_ns"] * t["samples"] for t in types]
by_time = sum(share * time for share, time in zip(shares, times)) / sum(times)
print("  average %22.1f, by the time of each type %.1f" % (sum(shares) / len(shares), by_time))'
}

measure plain
measure compressed 'Accept-Encoding: gzip'
