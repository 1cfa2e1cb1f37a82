// RUN: shardc-opt %s "--shardc-propagate=partition=cheapest max-strategies=1000 max-branch-options=1000" -o /dev/null
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheap" 2>&1 | FileCheck %s --check-prefix=PARTITION
// RUN: not shardc-opt %s "--shardc-propagate=objective=speed" 2>&1 | FileCheck %s --check-prefix=OBJECTIVE
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest max-strategies=-3" 2>&1 | FileCheck %s --check-prefix=STRATEGIES
// RUN: shardc-opt %s "--shardc-propagate=partition=cheapest max-assignments=1000" -o /dev/null
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest max-assignments=-3" 2>&1 | FileCheck %s --check-prefix=FORMER
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest max-assignments=1 max-strategies=1000" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest max-assignments=1" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest max-branch-options=-4" 2>&1 | FileCheck %s --check-prefix=BRANCHES
// RUN: not shardc-opt %s "--shardc-propagate=partition=cheapest gap=-1" 2>&1 | FileCheck %s --check-prefix=GAP

// PARTITION: error: unknown partition 'cheap', expected follow or cheapest
// OBJECTIVE: error: unknown objective 'speed', expected time or bytes
// STRATEGIES: error: max-strategies: expected 0 (the defaults) or more, found -3{{$}}
// FORMER: error: max-assignments: expected 0 (the defaults) or more, found -3{{$}}
// BOTH: error: max-assignments: the former name of max-strategies, which is given, too{{$}}
// FEW: ways to shard single ops, more than 1 (max-strategies)
// BRANCHES: error: max-branch-options: expected 0 (the default) or more, found -4{{$}}
// GAP: error: gap: expected a number of at least 0 and less than 1, found -1
shardc.mesh @mesh <["d" = 2]>
func.func @f(%x: tensor<8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
  %0 = shardc.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
