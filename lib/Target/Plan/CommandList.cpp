//===- CommandList.cpp - The commands of a program ------------------------===//

#include "CommandList.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace shardc {

fb::Part getPart(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part ? fb::Part(part.getValue()) : fb::Part::Forward;
}

void CommandList::append(Operation *op, fb::Operation kind,
                         flatbuffers::Offset<void> operation,
                         StreamCommand order) {
  int32_t task = -1;
  if (auto name = op->getAttrOfType<StringAttr>(taskAttrName))
    if (auto it = tasks.find(name.getValue()); it != tasks.end())
      task = it->second;
  commands.push_back({kind, operation, getPart(op),
                      builder.CreateString(getSourceString(op->getLoc())),
                      task});
  orders.push_back(std::move(order));
}

void CommandList::beginLoop(Operation *op, int64_t runs) {
  loop = size();
  StreamCommand order;
  order.runs = runs;
  append(op, fb::Operation::Loop, {}, order);
}

void CommandList::endLoop() {
  StreamCommand &order = orders[loop];
  order.commands = size() - loop - 1;
  commands[loop].operation =
      fb::CreateLoop(builder, order.runs, order.commands).Union();
}

std::vector<flatbuffers::Offset<fb::Command>>
CommandList::write(bool hasStreams) {
  std::vector<std::vector<uint32_t>> events(commands.size());
  if (hasStreams)
    events = findStreamEvents(orders);
  std::vector<flatbuffers::Offset<fb::Command>> tables;
  for (auto [entry, order, after] : llvm::zip_equal(commands, orders, events)) {
    flatbuffers::Offset<flatbuffers::Vector<uint32_t>> afterOffset;
    if (!after.empty())
      afterOffset = builder.CreateVector(after);
    auto stream = hasStreams ? fb::Stream(order.stream) : fb::Stream::Compute;
    tables.push_back(fb::CreateCommand(builder, entry.kind, entry.operation,
                                       entry.part, entry.source, stream,
                                       afterOffset, entry.task));
  }
  return tables;
}

} // namespace shardc
