#!/usr/bin/env bash
# Succeeds if clang-format 14 would change no C++ file.
source "$(dirname "$0")/common.sh"
find include lib runtime tools test examples benchmarks scripts \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.c' \) -print0 |
  xargs -0 clang-format-14 --dry-run --Werror
