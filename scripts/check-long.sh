#!/usr/bin/env bash
# Random models on random meshes against their unpartitioned programs:
#   scripts/check-long.sh [COUNT [SEED]]     2000 cases by default
source "$(dirname "$0")/common.sh"
build_shardc shardc-gen shardc-run
PATH=$PWD/$build/bin:$PATH python3 scripts/check_reference.py --mode=random \
  --count="${1:-2000}" --seed="${2:-$RANDOM}" --jobs="$(nproc)"
