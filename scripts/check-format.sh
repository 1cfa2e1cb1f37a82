#!/usr/bin/env bash
# Succeeds if clang-format 14 would change no C++ file, and no text has a word that a
# term of docs/Glossary.md has replaced.
source "$(dirname "$0")/common.sh"
find include lib runtime tools test examples benchmarks scripts python/src \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.c' \) -print0 |
  xargs -0 clang-format-14 --dry-run --Werror

# Cost, latency, strategy, multicast tree, fix-it, provenance, multiversioning, barrier;
# GEMM, in flight, stored, fake.
old='PlanPrice|(Collective|Part|Regather)Prices?|StartSets|AssignmentSpace|DeliveryTrees'
old+='|SearchClasses|PlanThatFits|RunAside|RemedyFinder|OriginFinder|MoveRecorder'
old+='|widerCodes|MeetingPoints?|meeting points?|(large|matrix) products|under way|rests as|stand-ins?'
old+='|[A-Za-z]*AtRest|restsAs|RestingTensors|at rest|mostNarrowRows'
old+='|PlanProducts|countProductFlops|isProduct|GradientProduct|readProducts|tuneProducts'
if grep -rnIwE "$old" include lib runtime tools test benchmarks examples docs README.md; then
  echo 'the lines above have words that docs/Glossary.md replaces'
  exit 1
fi
