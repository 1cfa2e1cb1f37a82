#!/usr/bin/env bash
# How long builds take, from a fresh clone of HEAD and without ccache:
#   scripts/demo.sh, of which training takes some seconds;
#   all of .ci/run, with --ci;
#   a changed line in a pass, until shardc-opt is there again, with --edit: in the
#   preset "release", which is built first.
# Prints seconds, and the goals.
#
#   benchmarks/build_time.sh [--ci] [--edit]
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_DISABLE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%s, %s cores\n' \
  "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"

# measure NAME GOAL COMMAND...
measure() {
  local name=$1 goal=$2 begin=$SECONDS
  shift 2
  if ! "$@" &>"$work/log"; then
    tail -n 40 "$work/log"
    exit 1
  fi
  printf '%-40s %5d s  (goal: %d s)\n' "$name" $((SECONDS - begin)) "$goal"
}

clone() {
  rm -rf "$work/shardc"
  git clone -q . "$work/shardc"
}

clone
measure scripts/demo.sh 360 "$work/shardc/scripts/demo.sh"
for flag; do
  clone
  case $flag in
  --ci) measure .ci/run 1500 "$work/shardc/.ci/run" ;;
  --edit)
    if ! (cd "$work/shardc" && cmake --preset release && ninja -C build shardc-opt) \
      &>"$work/log"; then
      tail -n 40 "$work/log"
      exit 1
    fi
    sed -i 's/^using namespace mlir;/&\n\/\/ Changed./' \
      "$work/shardc/lib/Transforms/Partition/InsertReshards.cpp"
    measure 'a changed line, to shardc-opt' 15 \
      ninja -C "$work/shardc/build" shardc-opt
    ;;
  *) echo "expected --ci or --edit, got $flag" >&2; exit 2 ;;
  esac
done
