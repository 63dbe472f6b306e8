#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# culprit on a real Slurm of four hosts (cluster.sh), held against culprit in one
# process: the outcome must be the same bytes, whatever happens to hosts, network,
# disks and controller meanwhile.
#
#   slurm_test.sh CASE...    CULPRIT names the program; exit code 77: cannot run here
#
# Cases: identical, commands, subtrees, host-dies, link-cut, damaged-output, full-disk,
# controller-restarts, stopped, killed
set -euo pipefail

cluster=$(dirname "$(readlink -f "$0")")/cluster.sh
culprit=${CULPRIT:-$(dirname "$(readlink -f "$0")")/../../build/culprit}
[[ -x $culprit ]] || {
  echo "no program at $culprit: set CULPRIT" >&2
  exit 1
}
culprit=$(readlink -f "$culprit")

work=$(mktemp -d "${TMPDIR:-/tmp}/culprit-slurm-XXXXXX")
chmod 0755 "$work"
finish() {
  local code=$?
  [[ -n ${driver:-} ]] && kill -KILL "$driver" 2>/dev/null
  "$cluster" down "$work/cluster"
  if [[ $code -ne 0 && $code -ne 77 ]]; then
    tail -n 40 "$work"/*.err "$work"/cluster/log/slurmctld 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
on_head() { "$cluster" run "$work/cluster" "$@"; }

# wait_for WHAT SECONDS COMMAND...
wait_for() {
  local what=$1 tries=$(($2 * 5))
  shift 2
  for _ in $(seq "$tries"); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.2
  done
  fail "$what did not happen in time"
}

# What the hosts run instead of culprit itself: notes who does what, takes its
# time, and does what a case wants done before (CASE/before).
make_worker() {
  cat >"$work/worker" <<TEXT
#!/bin/sh
echo "\$(hostname) \$2 \$4" >>"$work/begun"
[ -x "$work/before" ] && "$work/before" "\$@"
sleep "\$(cat "$work/seconds")"
exec "$culprit" "\$@"
TEXT
  chmod +x "$work/worker"
}

# A corpus without summaries, so that hosts read traces; what a case leaves is gone.
fresh() {
  rm -rf "$work/fleet" "$work/run" "$work/before" "$work/begun"
  cp -r "$work/pristine" "$work/fleet"
  : >"$work/begun"
  echo "$1" >"$work/seconds"
}

analyze() {
  # By its relative name: the verdict tells the path.
  cd "$work"
  on_head "$culprit" analyze fleet --json --no-summaries -o "$1.html" --engine slurm --run "$work/run" \
    --shards 12 --program "$work/worker" >"$work/$1.json" 2>"$work/$1.err"
}

# The run in the background; $driver is its process.
begin() {
  cd "$work"
  "$cluster" run "$work/cluster" "$culprit" analyze fleet --json --no-summaries -o "$1.html" \
    --engine slurm --run "$work/run" --shards 12 --program "$work/worker" \
    >"$work/$1.json" 2>"$work/$1.err" &
  driver=$!
}
join() {
  local code=0
  wait "$driver" || code=$?
  driver=
  return $code
}

same_as_reference() {
  cmp "$work/reference.json" "$work/$1.json" || fail "$1: the verdict differs"
  cmp "$work/reference.html" "$work/$1.html" || fail "$1: the report differs"
  cmp "$work/reference.run/finalize/00000" "$work/run/finalize/00000" ||
    fail "$1: the evidence differs"
}

begun() { [[ $(wc -l <"$work/begun") -ge $1 ]]; }
queue_is_empty() { [[ -z $(on_head squeue --noheader) ]]; }
hosts_idle() { [[ $(on_head sinfo --noheader --Node --format=%t | grep -c '^idle$') -eq 4 ]]; }
host_at_work() { on_head squeue --noheader --states=RUNNING --format=%N | grep -qx "$1"; }

case_identical() {
  fresh 0
  analyze identical || fail "the run failed"
  same_as_reference identical
  [[ $(grep -c ' map ' "$work/begun") -eq $shards ]] || fail "not every shard ran once"
  [[ $(cut -d' ' -f1 "$work/begun" | sort -u | wc -l) -ge 3 ]] || fail "the work was not spread"
  "$culprit" shard status "$work/run" >/dev/null || fail "status says that it is not whole"
}

# A corpus of system calls with stacks, as strace -f -ttt -T -k prints them.
make_calls() {
  local trace call
  for trace in 1 2 3 4 5 6; do
    for call in $(seq 40); do
      printf '%d 1700000000.%06d %s(3, "x", 1) = 1 <0.000010>\n' $((100 + call % 3)) $((call * 100)) \
        "$([[ $((call % (trace + 1))) -eq 0 ]] && echo write || echo read)"
      printf ' > /usr/lib/libc.so.6(__x+0x14) [0xe1234]\n > /bin/app(f%d+0x8) [0x8%d0]\n' $((call % 5)) $((call % 5))
      printf ' > /bin/app(main+0x20) [0x720]\n'
    done >"$work/calls$trace.strace"
    "$culprit" import "$work/calls$trace.strace" -o "$work/calls" >/dev/null 2>&1
  done
}

# as_slurm COMMAND...: through the hosts, in a run folder of its own.
as_slurm() {
  rm -rf "$work/run"
  on_head "$culprit" "$@" --engine slurm --run "$work/run" --shards 4 --program "$work/worker" \
    2>"$work/commands.err"
}

case_commands() {
  fresh 0
  cd "$work"
  local command
  for command in mine impact contrast; do
    "$culprit" "$command" fleet --json --no-summaries >plain-command.json 2>plain-command.err
    as_slurm "$command" fleet --json --no-summaries >"$command.json" || fail "$command failed"
    cmp plain-command.json "$command.json" || fail "$command prints something else"
  done
  "$culprit" diff fleet pristine --json --no-summaries --deals 50 >plain-command.json 2>plain-command.err
  as_slurm diff fleet pristine --json --no-summaries --deals 50 >diff.json || fail "diff failed"
  cmp plain-command.json diff.json || fail "diff prints something else"
  make_calls
  "$culprit" profile calls -o plain.cprof >/dev/null 2>&1 || fail "there is no profile to compare with"
  as_slurm profile calls -o slurm.cprof >/dev/null || fail "profile failed"
  cmp plain.cprof slurm.cprof || fail "the profile differs"
}

# Mining by the hosts, and once more after a piece of the search was damaged.
case_subtrees() {
  fresh 0
  cd "$work"
  local mine=(mine fleet --json --no-summaries --min-share 0.3%) first
  "$culprit" "${mine[@]}" >plain-mine.json 2>plain-mine.err
  as_slurm "${mine[@]}" --subtrees 4 >subtrees.json || fail "mining by hosts failed"
  cmp plain-mine.json subtrees.json || fail "the hosts find other patterns"
  first=$(find "$work/run" -maxdepth 1 -name 'patterns-*' | sort | head -n 1)
  [[ -n $first ]] || fail "the hosts mined nothing"
  truncate -s 20 "$first/map/00002"
  rm "$first/finalize/00000"
  : >"$work/begun"
  on_head "$culprit" "${mine[@]}" --subtrees 4 --engine slurm --run "$work/run" --shards 4 \
    --program "$work/worker" >subtrees.json 2>"$work/commands.err" || fail "it did not go on"
  cmp plain-mine.json subtrees.json || fail "the second run finds other patterns"
  [[ $(grep ' map ' "$work/begun" | cut -d' ' -f3 | tr '\n' ' ') == "2 " ]] ||
    fail "more than the damaged piece was mined again"
}

case_host_dies() {
  fresh 4
  begin host-dies
  wait_for "work on n2" 30 host_at_work n2
  sleep 1
  "$cluster" kill "$work/cluster" 2
  join || fail "the run failed"
  same_as_reference host-dies
  [[ $(sort "$work/begun" | awk '{print $2, $3}' | sort | uniq -d | wc -l) -ge 1 ]] ||
    fail "no task was begun twice"
  "$cluster" start "$work/cluster" 2
}

case_link_cut() {
  fresh 4
  begin link-cut
  wait_for "work on n3" 30 host_at_work n3
  sleep 1
  "$cluster" cut "$work/cluster" 3
  join || fail "the run failed"
  "$cluster" join "$work/cluster" 3
  same_as_reference link-cut
  # The zombie has written by now what its replacement had written before.
  sleep 5
  cmp "$work/reference.run/finalize/00000" "$work/run/finalize/00000" || fail "changed later"
  "$culprit" shard status "$work/run" >/dev/null || fail "an output does not verify any more"
}

case_damaged_output() {
  fresh 0
  # The first reduce finds shard 3 damaged, which was whole when it was made.
  cat >"$work/before" <<TEXT
#!/bin/sh
[ "\$2" = reduce ] && [ ! -e "$work/once" ] || exit 0
: >"$work/once"
printf damage | dd of="$work/run/map/00003" bs=1 seek=100 conv=notrunc 2>/dev/null
TEXT
  chmod +x "$work/before"
  if analyze damaged-output; then fail "damage was not noticed"; fi
  grep -q 'map/00003: is damaged' "$work/damaged-output.err" || fail "the damaged file is not named"
  # And one is cut short.
  truncate -s 50 "$work/run/map/00007"
  : >"$work/begun"
  analyze damaged-output || fail "the second run failed"
  same_as_reference damaged-output
  [[ $(grep ' map ' "$work/begun" | cut -d' ' -f3 | sort -n | tr '\n' ' ') == "3 7 " ]] ||
    fail "more than the damaged shards was done again"
}

case_full_disk() {
  fresh 0
  cat >"$work/before" <<TEXT
#!/bin/sh
while [ ! -e "$work/go" ]; do sleep 0.1; done
TEXT
  chmod +x "$work/before"
  begin full-disk
  wait_for "work on n4" 30 host_at_work n4
  "$cluster" fill "$work/cluster" 4 "$work/run/map"
  : >"$work/go"
  join || fail "the run failed"
  "$cluster" empty "$work/cluster" 4 "$work/run/map"
  same_as_reference full-disk
  grep -q 'FAILED on n4; submitted again' "$work/full-disk.err" || fail "n4 did not fail"
  grep -qi 'no space left' "$work"/run/logs/*.log || fail "no log tells why"
}

case_controller_restarts() {
  fresh 4
  begin controller-restarts
  wait_for "work" 30 begun 4
  "$cluster" controller "$work/cluster" stop
  wait_for "word that the controller is away" 90 \
    grep -q 'controller does not answer' "$work/controller-restarts.err"
  "$cluster" controller "$work/cluster" start
  join || fail "the run failed"
  same_as_reference controller-restarts
}

case_stopped() {
  fresh 3
  begin stopped
  wait_for "work" 30 begun 6
  kill -TERM "$driver"
  if join; then fail "it did not stop"; fi
  grep -q 'stopped during map' "$work/stopped.err" || fail "it does not say that it was stopped"
  wait_for "the end of its jobs" 20 queue_is_empty
  : >"$work/begun"
  echo 0 >"$work/seconds"
  analyze stopped || fail "the second run failed"
  same_as_reference stopped
  [[ $(grep -c ' map ' "$work/begun") -lt $shards ]] || fail "what was done was done again"
}

case_killed() {
  fresh 3
  begin killed
  wait_for "work" 30 begun 4
  kill -KILL "$driver"
  join 2>/dev/null && fail "it was not killed"
  analyze killed || fail "the second run failed"
  same_as_reference killed
  grep -q 'an earlier run left tasks in the queue' "$work/killed.err" || fail "no job was adopted"
  [[ $(grep -c ' map ' "$work/begun") -eq $shards ]] || fail "a task was done twice"
}

"$cluster" up "$work/cluster" $$
make_worker
"$culprit" synth --like demo --seed 1 -o "$work/pristine" >/dev/null 2>&1
fresh 0
(cd "$work" && "$culprit" analyze fleet --json --no-summaries -o reference.html \
  --run reference.run --shards 12 >reference.json 2>reference.err)
# What a run gives is what one process gives without any.
(cd "$work" && "$culprit" analyze fleet --json --no-summaries -o plain.html >plain.json 2>plain.err)
cmp "$work/reference.json" "$work/plain.json" || fail "shards in one process change the verdict"
shards=$(find "$work/reference.run/map" -type f | wc -l) # about what was asked for
for name in "$@"; do
  wait_for "four idle hosts" 60 hosts_idle
  started=$SECONDS
  "case_${name//-/_}"
  echo "ok: $name ($((SECONDS - started)) s)"
done
