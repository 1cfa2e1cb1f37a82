#!/usr/bin/env bash
# Succeeds if clang-tidy 14 has nothing to say of the sources (.clang-tidy says
# what it looks for). Minutes for all; with arguments only for the targets whose
# folder matches one of these regular expressions:
#   scripts/check-tidy.sh [REGEX...]         e.g. scripts/check-tidy.sh lib/Reshard
#
# It reads several sources at once, as a unity build does: their headers take most
# of the time.
# Ends with 77 where there is no clang-tidy-14.
source "$(dirname "$0")/common.sh"
command -v clang-tidy-14 >/dev/null || exit 77
tree=$build/tidy
cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release "${unity[@]}" \
  -DSHARDC_PRECOMPILED_HEADERS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
ninja -C "$tree" ShardcIncGen ShardcPlanSchemaGen >/dev/null
grep -o '"file": "[^"]*\.\(cpp\|cxx\)"' "$tree/compile_commands.json" |
  cut -d'"' -f4 | grep -v cmake_pch | grep -E "$(IFS='|'; echo "${*:-.}")" |
  xargs -P "$(nproc)" -n 1 clang-tidy-14 -p "$tree" --quiet \
    --header-filter="^$PWD/(include|lib|runtime|tools|test|benchmarks|examples)/" \
    --extra-arg=-Wno-unknown-warning-option 2>/dev/null
