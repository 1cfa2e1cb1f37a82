#!/usr/bin/env bash
# Runs a command in several processes of this machine as torchrun would, and
# ends with the first exit code that is not 0. What ranks but the first print is
# shown only if they fail.
#
#   scripts/run-ranks.sh SIZE COMMAND ARGUMENT...
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/free-port.sh"
size=$1
shift
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
export WORLD_SIZE=$size MASTER_ADDR=127.0.0.1
export MASTER_PORT=${MASTER_PORT:-$(freePort)}
processes=()
for ((rank = 1; rank < size; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &>"$said/$rank" &
  processes+=($!)
done
RANK=0 LOCAL_RANK=0 "$@"
code=$?
for ((rank = 1; rank < size; ++rank)); do
  wait "${processes[$((rank - 1))]}"
  other=$?
  if [ "$other" -ne 0 ]; then
    sed "s/^/rank $rank: /" "$said/$rank"
    [ "$code" -ne 0 ] || code=$other
  fi
done
exit "$code"
