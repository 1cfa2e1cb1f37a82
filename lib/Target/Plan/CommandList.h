//===- CommandList.h - The commands of a program ----------------*- C++ -*-===//
//
// Collects commands and their accesses, and orders streams at the end. Not
// thread-safe; one per program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TARGET_PLAN_COMMANDLIST_H
#define SHARDC_LIB_TARGET_PLAN_COMMANDLIST_H

#include "PlanTables.h"

#include "shardc/Target/Plan/StreamEvents.h"

namespace shardc {

class CommandList {
public:
  /// `tasks` are those of the program by their names, with their numbers.
  CommandList(flatbuffers::FlatBufferBuilder &builder,
              const llvm::StringMap<int32_t> &tasks)
      : builder(builder), tasks(tasks) {}

  uint32_t size() const { return commands.size(); }

  /// Appends a command that was made from `op`. `order` has its accesses and
  /// its stream on a GPU.
  template <typename T>
  void add(mlir::Operation *op, fb::Operation kind,
           flatbuffers::Offset<T> operation, StreamCommand order = {}) {
    append(op, kind, operation.Union(), std::move(order));
  }

  /// Appends a loop that was made from `op`. The commands from here to its end
  /// are its body; loops do not nest.
  void beginLoop(mlir::Operation *op, int64_t runs);
  void endLoop();

  /// The tables: all on one stream, or on those of a GPU with events.
  std::vector<flatbuffers::Offset<fb::Command>> write(bool hasStreams);

private:
  struct Entry {
    fb::Operation kind;
    flatbuffers::Offset<void> operation;
    fb::Part part;
    flatbuffers::Offset<flatbuffers::String> source;
    int32_t task;
  };

  void append(mlir::Operation *op, fb::Operation kind,
              flatbuffers::Offset<void> operation, StreamCommand order);

  flatbuffers::FlatBufferBuilder &builder;
  const llvm::StringMap<int32_t> &tasks;
  std::vector<Entry> commands;
  /// Of the same commands.
  std::vector<StreamCommand> orders;
  uint32_t loop = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_TARGET_PLAN_COMMANDLIST_H
