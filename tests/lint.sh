#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks of the sources that need no running program. Called by ./do lint,
# which has installed the tools and made build/compile_commands.json.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
failures=0
complain() {
  printf 'lint: %s\n' "$*" >&2
  failures=$((failures + 1))
}

mapfile -t sources < <(git ls-files '*.cc' '*.h')
mapfile -t scripts < <(git ls-files 'do' '*.sh' '.ci/run')

clang-format-14 --dry-run --Werror "${sources[@]}" || complain "run clang-format-14 -i on the files above"
shellcheck -x "${scripts[@]}" || complain "shellcheck found something"

if [[ -x web/node_modules/.bin/prettier ]]; then
  (cd web && node_modules/.bin/prettier --log-level warn --check src test vite.config.ts) ||
    complain "run npx prettier --write in web/"
else
  echo "lint: the sources of the page are not checked: no web/node_modules"
fi

for file in "${sources[@]}" "${scripts[@]}" $(git ls-files '*CMakeLists.txt' '*.cmake' '*.ts' '*.mjs' '*.css'); do
  head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || complain "$file: no SPDX line"
done
git grep -nIE '\b(TODO|FIXME|XXX)\b' -- src bench tests ':!tests/lint.sh' && complain "left undone, see above"

# clang-tidy is slow, so it looks at what it has not yet seen in this form.
cache=build/lint-cache
mkdir -p "$cache"
header_hash=$(git ls-files -s '*.h' .clang-tidy | cat - <(git diff -- '*.h' .clang-tidy) | sha256sum | cut -c1-16)
check_one() {
  local file=$1 header_hash=$2 cache=$3 key
  key="$cache/$({
    cat "$file"
    grep -oE '"/[^"]+\.cc"' "$file" | tr -d '"' | xargs -r cat
    echo "$header_hash"
  } | sha256sum | cut -c1-24)"
  [[ -e $key ]] && return 0
  clang-tidy-14 --quiet --warnings-as-errors='*' -p build --header-filter='/src/[a-z]+/[a-z_]+\.cc$' \
    --extra-arg=-Wno-unknown-warning-option "$file" 2>/dev/null && : >"$key"
}
export -f check_one
# The release build compiles many sources as one unit; so does clang-tidy. What is
# injected by guards (src/guard/runtime) is left out: it reads by bare system calls,
# whose buffers the analyzer takes for uninitialised, and is built with g++'s flags.
mapfile -t units < <(grep -oE '"file": "[^"]+"' build/compile_commands.json | cut -d'"' -f4 |
  grep -E '/Unity/unity_[a-z0-9]+_cxx\.cxx$|/src/[a-z]+/[a-z_]+\.cc$' | grep -vE '_(test|fuzz)\.cc$|_tests\.dir/' | sort -u)
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -I{} bash -c 'check_one "$@"' _ {} "$header_hash" "$cache" ||
  complain "clang-tidy found something"

# The tests build neither benchmarks nor fuzz targets.
git ls-files 'bench/*.cc' '*_fuzz.cc' | xargs -P "$(nproc)" -n 1 \
  "${CXX:-c++}" -std=c++20 -fsyntax-only -Isrc '-DCULPRIT_VERSION="lint"' ||
  complain "a benchmark or a fuzz target does not compile"

if [[ $failures -gt 0 ]]; then
  echo "lint: $failures kinds of problems" >&2
  exit 1
fi
echo "lint: ${#sources[@]} sources, ${#scripts[@]} scripts: clean"
