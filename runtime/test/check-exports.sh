#!/usr/bin/env bash
# check-exports.sh LIBRARY LIST: succeeds if the shared library exports the
# symbols in LIST, and no others. With --update in front it writes LIST.
set -euo pipefail
update=
if [ "${1:-}" = --update ]; then
  update=1
  shift
fi
library=$1 list=$2
# Type information belongs to the class, which a host may derive from or throw.
exported=$(nm --dynamic --defined-only --demangle "$library" | cut -d' ' -f2- |
  sed -E '/^A /d; s/^. //' |
  sed -E '/^(vtable|typeinfo|typeinfo name) for /d' | LC_ALL=C sort -u)
if [ -n "$update" ]; then
  printf '%s\n' "$exported" >"$list"
  exit
fi
if ! diff "$list" - <<<"$exported" >&2; then
  echo "the exports of $library (>) are not those of $list (<):" \
    "mark what is of the public API with SHARDC_RT_API, then run" \
    "$0 --update $library $list" >&2
  exit 1
fi
