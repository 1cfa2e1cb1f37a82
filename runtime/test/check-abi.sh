#!/usr/bin/env bash
# check-abi.sh PROGRAM LIST: succeeds if the structures and constants that PROGRAM prints
# are those in LIST. With --update in front it writes LIST.
set -euo pipefail
if [ "${1:-}" = --update ]; then
  "$2" >"$3"
elif ! diff "$2" <("$1") >&2; then
  echo "the C API's structures and constants (>) are not those of $2 (<): programs that are" \
    "compiled against the header before would break. New fields come at the end. Then run" \
    "$0 --update $1 $2" >&2
  exit 1
fi
