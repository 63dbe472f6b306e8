#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one script: installs what is missing, builds, runs. `./do` alone explains.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
  cat <<'TEXT'
./do demo       build culprit, simulate a fleet with planted bugs, find what cost most time
./do test       build and run all tests               [./do test asan|tsan|debug|clang]
./do test-long  the tests that take long: real servers, which it installs
./do build      build only: the program is build/culprit
./do page       build the web page alone (needs npm)
./do lint       formatting, clang-tidy, shellcheck, layers, licence lines
./do bench      run the benchmarks                     [./do bench FILTER]
./do bench record   what recording costs servers, which it installs   [ROUNDS] [WORKLOAD...]
./do bench record latency   what it does to a server's slowest answers   [ROUNDS] [RATE] [SECONDS]
./do bench guard    what guards cost them   [ROUNDS] [SERVER...]
./do fuzz       run every fuzz target for a minute     [./do fuzz SECONDS]
./do package    make a .deb in build/
./do readme     run the README's commands and put their output into it
./do clean      remove everything that was built

Missing packages are installed with apt-get (packages.txt says which and why), as
root or through sudo. CULPRIT_NO_INSTALL=1 only tells what is missing.
TEXT
}

fail() {
  printf './do: %s\n' "$*" >&2
  exit 1
}

# Prints the packages of the given purposes that are not installed.
missing_packages() {
  local purpose want package _ machine
  machine=$(dpkg --print-architecture)
  while read -r purpose package _; do
    for want in "$@"; do
      if [[ $purpose == "$want" || $purpose == "$want@$machine" ]]; then
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
      fi
    done
  done < <(grep -v '^#' packages.txt)
}

need() {
  command -v dpkg-query >/dev/null || fail "no dpkg here: install by hand what packages.txt lists"
  local missing sudo=()
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ -n ${CULPRIT_NO_INSTALL:-} ]]; then
    fail "missing packages: ${missing[*]} (apt-get install them, or unset CULPRIT_NO_INSTALL)"
  fi
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "missing packages: ${missing[*]}; run as root, or install sudo"
    sudo=(sudo)
  fi
  echo "installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}" >"$log" 2>&1; then
    # The package lists may be missing or old: refresh them once.
    if ! "${sudo[@]}" apt-get update -q >"$log" 2>&1 ||
      ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}" >>"$log" 2>&1; then
      tail -n 5 "$log" >&2
      rm -f "$log"
      fail "could not install ${missing[*]}: is the network up, and is this Debian 12 or Ubuntu 24.04?"
    fi
  fi
  rm -f "$log"
  installed=1
}
installed=0  # packages, by this run: a build that was configured before knows nothing of them

# build_preset PRESET FOLDER TARGET...: configures when needed and builds.
build_preset() {
  local preset=$1 folder=$2
  shift 2
  if [[ ! -f $folder/build.ninja || $installed -eq 1 ]]; then
    echo "configuring $folder"
    local log
    log=$(mktemp)
    cmake --preset "$preset" >"$log" 2>&1 || {
      cat "$log" >&2
      fail "cmake failed (see above)"
    }
    rm -f "$log"
    echo "building $folder (minutes, the first time)"
  fi
  # Progress on one line of a terminal, nothing elsewhere; compiler messages always.
  local tty=0
  [[ -t 1 ]] && tty=1
  ninja -C "$folder" "$@" | awk -v tty=$tty '
    /^ninja: (Entering|no work)/ || /Re-checking globbed/ { next }
    /^\[[0-9]+\/[0-9]+\]/ { if (tty) { printf "\r\033[K%s", substr($0, 1, 78); fflush(); open = 1 } next }
    { if (open) { print ""; open = 0 } print; fflush() }
    END { if (open) printf "\r\033[K" }' || fail "the build failed (see above)"
}

preset_folder() {
  case $1 in
    release) echo build ;;
    debug | asan | tsan | clang | fuzz) echo "build-$1" ;;
    *) fail "'$1' is not a preset: release, debug, asan, tsan, clang" ;;
  esac
}

# The web page: built with npm, put into the program by the build that follows.
# Where npm is not to be had culprit is built without it, and says so when asked.
do_page() {
  if ! command -v npm >/dev/null; then
    if [[ -n ${CULPRIT_NO_INSTALL:-} ]]; then
      echo "npm is not here: culprit is built without its web page"
      return
    fi
    need page
  fi
  local stamp=web/dist/.built inputs=(web/src web/package-lock.json web/vite.config.ts)
  [[ -f $stamp && -z $(find "${inputs[@]}" -newer "$stamp" -print -quit) ]] && return
  echo "building the page"
  local log
  log=$(mktemp)
  if ! (cd web && npm install --no-save --no-progress && npm run build) >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    [[ ${1:-} == needed ]] && fail "the page could not be built (see above)"
    echo "the page could not be built: culprit is built without it"
    return
  fi
  rm -f "$log"
  touch "$stamp"
}

do_build() {
  need build
  do_page
  build_preset release build culprit
}

do_demo() {
  do_build
  build/culprit synth --like demo --seed 1 -o demo --force
  echo
  build/culprit analyze demo -o demo/report.html
}

do_test() {
  local preset=${1:-release} folder
  folder=$(preset_folder "$preset")
  need build test
  [[ $preset == clang ]] && need fuzz
  do_page needed
  # A build configured before GoogleTest was there knows no tests.
  if [[ -f $folder/build.ninja ]] && ! grep -q end_to_end_tests "$folder/build.ninja"; then
    rm "$folder/build.ninja"
  fi
  build_preset "$preset" "$folder" all
  # The slow and the quick share two cores well; a test has its own time limit.
  # Many tests record this machine as it is; one that was disturbed by another is
  # run again and shown as such. What fails three times has failed.
  ctest --test-dir "$folder" --output-on-failure --progress -j "$(nproc)" -LE long \
    --repeat until-pass:3
}

do_test-long() {
  need build test realbugs recording guards kernels
  build_preset release build all
  ctest --test-dir build -L long --verbose
}

do_lint() {
  need build test lint
  build_preset release build culprit
  tests/lint.sh
}

do_bench() {
  need build bench
  build_preset bench build-bench all
  case ${1:-} in
    record)
      need recording
      shift
      if [[ ${1:-} == latency ]]; then
        shift
        bench/record/latency.sh "$@"
      else
        bench/record/run.sh "$@"
      fi
      ;;
    guard)
      need recording guards realbugs
      shift
      bench/guard/run.sh "$@"
      ;;
    *) bench/run.sh "$@" ;;
  esac
}

do_fuzz() {
  need build fuzz
  # Only what the targets need: instrumented code takes long to build.
  local targets
  mapfile -t targets < <(git ls-files 'src/*_fuzz.cc' | xargs -n1 basename -s .cc)
  build_preset fuzz build-fuzz make_seeds "${targets[@]}"
  tests/fuzz.sh "${1:-60}"
}

do_package() {
  do_build
  need package
  build_preset release build culprit generated_files
  (cd build && cpack -G DEB -D CPACK_PACKAGE_DIRECTORY="$PWD" >cpack.log 2>&1) || {
    cat build/cpack.log >&2
    fail "cpack failed (see above)"
  }
  ls build/culprit_*.deb
}

command=${1:-help}
shift || true
case $command in
  build | page | demo | test | test-long | lint | bench | fuzz | package) "do_$command" "$@" ;;
  readme)
    do_build
    tests/readme.sh --update
    ;;
  clean) rm -rf build build-* demo web/dist web/node_modules ;;
  help | --help | -h) usage ;;
  *)
    usage >&2
    fail "'$command' is not something to do"
    ;;
esac
