//===- Nvtx.cpp - Names for a profiler ------------------------------------===//
//
// Numbers and layouts are those of NVTX 3 ("NVIDIA Tools Extension Library",
// nvtxDetail/nvtxTypes.h), which are its binary interface.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Nvtx.h"

#include <cstddef>
#include <cstdint>

using namespace shardc::rt::cuda;

namespace {

using Function = void (*)();
using PushFunction = int (*)(const char *);
using PopFunction = int (*)();

constexpr int coreModule = 1;
constexpr unsigned coreFunctions = 16, pushFunction = 9, popFunction = 11;

/// The table that the profiler fills in. It is told once in a process and knows
/// no object of ours, so no object can own the table.
Function functions[coreFunctions] = {};
Function *places[coreFunctions] = {};

int getModuleFunctionTable(int module, Function ***table, unsigned *size) {
  if (module != coreModule)
    return 0;
  for (unsigned i = 0; i < coreFunctions; ++i)
    places[i] = &functions[i];
  if (table)
    *table = places;
  if (size)
    *size = coreFunctions;
  return 1;
}

void setVersion(uint32_t) {}

struct Callbacks {
  size_t bytes = sizeof(Callbacks);
  int (*getTable)(int, Function ***, unsigned *) = &getModuleFunctionTable;
};

struct VersionInfo {
  size_t bytes = sizeof(VersionInfo);
  uint32_t version = 3;
  uint32_t reserved = 0;
  void (*set)(uint32_t) = &setVersion;
};

const void *getExportTable(uint32_t table) {
  static const Callbacks callbacks;
  static const VersionInfo version;
  constexpr uint32_t callbacksTable = 1, versionTable = 3;
  return table == callbacksTable ? static_cast<const void *>(&callbacks)
         : table == versionTable ? static_cast<const void *>(&version)
                                 : nullptr;
}

/// Stays to the end of the process, as do the functions that it has given.
SharedLibrary *profiler = nullptr;

} // namespace

absl::StatusOr<std::unique_ptr<Nvtx>> Nvtx::open(const std::string &path) {
  absl::StatusOr<SharedLibrary> library =
      SharedLibrary::open("profiler", {path});
  if (!library.ok())
    return library.status();
  int (*initialize)(const void *(*)(uint32_t)) = nullptr;
  if (absl::Status s =
          library->resolve({{"InitializeInjectionNvtx2", &initialize}});
      !s.ok())
    return s;
  if (profiler)
    return std::unique_ptr<Nvtx>(new Nvtx());
  if (initialize(&getExportTable) == 0)
    return absl::UnavailableError(path + ": the profiler does not want ranges");
  profiler = new SharedLibrary(*std::move(library));
  return std::unique_ptr<Nvtx>(new Nvtx());
}

void Nvtx::push(const std::string &name) const {
  if (auto push = reinterpret_cast<PushFunction>(functions[pushFunction]))
    push(name.c_str());
}

void Nvtx::pop() const {
  if (auto pop = reinterpret_cast<PopFunction>(functions[popFunction]))
    pop();
}
