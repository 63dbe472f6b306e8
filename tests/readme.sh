#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Keeps the output shown in README.md and docs/ true. In those files,
#
#   <!-- run: COMMAND -->
#   ```
#   its output
#   ```
#
# --update runs every such command and replaces the block after it; --check
# fails if a block would change. Commands run in a scratch folder with the built
# program on the PATH (from build/, or from CULPRIT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:---check}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="${CULPRIT_BIN_DIR:-$PWD/build}:$PATH" NO_COLOR=1
stale=0

refresh() {
  local file=$1 line command state=copy
  while IFS= read -r line; do
    case $state in
      copy)
        printf '%s\n' "$line"
        if [[ $line =~ ^'<!-- run: '(.*)' -->'$ ]]; then
          command=${BASH_REMATCH[1]}
          state=open
        fi
        ;;
      open)
        printf '%s\n' "$line"
        [[ $line == '```'* ]] || { echo "readme: $file: no block after: $command" >&2; exit 1; }
        (cd "$work" && bash -c "$command" 2>&1)
        state=skip
        ;;
      skip)
        if [[ $line == '```' ]]; then
          printf '%s\n' "$line"
          state=copy
        fi
        ;;
    esac
  done <"$file"
}

for file in README.md docs/*.md; do
  grep -q '^<!-- run: ' "$file" || continue
  refresh "$file" >"$work/new.md"
  if ! cmp -s "$file" "$work/new.md"; then
    if [[ $mode == --update ]]; then
      cat "$work/new.md" >"$file"
      echo "readme: updated $file"
    else
      diff "$file" "$work/new.md" | head -20 >&2 || true
      echo "readme: $file shows old output; run ./do readme" >&2
      stale=1
    fi
  fi
done
exit $stale
