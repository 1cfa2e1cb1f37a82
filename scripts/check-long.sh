#!/usr/bin/env bash
# Random models and random annotations on random meshes against their
# unpartitioned programs: scripts/check-long.sh [COUNT [SEED]], 2000 of each by
# default, and ten times as many programs in the reference interpreter. Then all
# cases of the scripts of which tests take a part.
source "$(dirname "$0")/common.sh"
build_shardc
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
export PATH=$bin:$PATH
seed=${2:-$RANDOM}
say "Seed $seed"
python3 scripts/check_random.py --count="${1:-2000}" --seed="$seed" \
  --jobs="$(nproc)"
python3 scripts/check_random.py --count="${1:-2000}" --seed="$seed" \
  --jobs="$(nproc)" --pipelines
python3 scripts/check_annotations.py --count="${1:-2000}" --seed="$seed"
check-partitions --count="${1:-2000}0" --seed="$seed"
scripts/test-runtime-sanitizers.sh --all
for mode in follow cheapest; do scripts/check-strategies.sh 1 0 $mode; done
scripts/check-strategies.sh 1 0 follow emulated-gpu
scripts/check-cheapest.sh
scripts/check-streams.sh
scripts/check-cuda.sh
# Those end with 77 where their tool is missing.
for check in scripts/check-ptx.sh scripts/check-tidy.sh scripts/check-python-sanitizers.sh; do
  status=0
  $check || status=$?
  [ $status -eq 0 ] || [ $status -eq 77 ]
done
