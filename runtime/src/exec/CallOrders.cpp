//===- CallOrders.cpp - Rows first, or devices first ----------------------===//

#include "exec/CallOrders.h"

#include <algorithm>

using namespace shardc::rt;

int64_t CallOrders::callsAt(const Step &step, int64_t operand) {
  const int64_t calls = step.calls.size();
  auto place = [&](int64_t call) {
    return step.table[step.calls[call].buffers + operand];
  };
  int64_t same = 1;
  while (same < calls && place(same) == place(0))
    ++same;
  if (calls % same != 0)
    return 1;
  for (int64_t call = same; call < calls; ++call)
    if (place(call) != place(call / same * same))
      return 1;
  return same;
}

void CallOrders::choose(Step &step) {
  const int64_t calls = step.calls.size();
  const bool hasOrders = step.kind == Step::Kind::Launch && calls > 1 &&
                         step.tiles > 1 && step.parts.size() == 1;
  for (int64_t operand = 0; hasOrders && operand < step.operands; ++operand) {
    if (step.accesses[operand].isWrite ||
        step.parts[0].bytesPerIteration[operand].value_or(0) == 0)
      continue;
    if (int64_t same = callsAt(step, operand); calls / same % workers != 0)
      step.together = std::max(step.together, same);
    auto written = togetherOf.find(step.table[step.calls[0].buffers + operand]);
    if (written != togetherOf.end() && calls % written->second == 0)
      step.together = std::max(step.together, written->second);
  }
  for (const Step::Call &call : step.calls)
    for (int64_t operand = 0; operand < step.operands; ++operand)
      if (step.accesses[operand].isWrite)
        togetherOf[step.table[call.buffers + operand]] =
            step.together * step.resultsPerCall();
}
