//===- Nvtx.cpp - The fake as a profiler ----------------------------------===//
//
// The behaviour of a profiler with NVTX: it asks for tables and puts its
// functions there. The types are those of the vendor's interface.
//
//===----------------------------------------------------------------------===//

#include "State.h"

using namespace shardc::rt::test;

namespace {

struct ExportedCallbacks {
  size_t bytes;
  int (*getTable)(int module, void (****table)(), unsigned *size);
};

int push(const char *name) {
  state().ranges.push_back(name);
  return 0;
}

int pop() {
  state().ranges.push_back("");
  return 0;
}

} // namespace

extern "C" int InitializeInjectionNvtx2(const void *(*exported)(uint32_t)) {
  auto *callbacks = static_cast<const ExportedCallbacks *>(exported(1));
  void (***table)() = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->getTable(1, &table, &size) || size < 12)
    return 0;
  *table[9] = reinterpret_cast<void (*)()>(&push);
  *table[11] = reinterpret_cast<void (*)()>(&pop);
  // Other modules may be missing.
  return callbacks->getTable(2, &table, &size) == 0;
}
