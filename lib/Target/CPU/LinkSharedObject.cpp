//===- LinkSharedObject.cpp - An object file to a shared object -----------===//
//
// Runs lld in this process. lld keeps global state: one link at a time.
//
//===----------------------------------------------------------------------===//

#include "shardc/Target/CPU/CompileKernels.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace shardc {

/// Symbols that the code generator may call and every process has.
static bool isAllowedUndefined(StringRef name) {
  return name == "memcpy" || name == "memmove" || name == "memset";
}

static Error checkUndefinedSymbols(StringRef sharedObject) {
  auto file = object::ObjectFile::createELFObjectFile(
      MemoryBufferRef(sharedObject, "kernels.so"));
  if (!file)
    return file.takeError();
  auto *elf = cast<object::ELFObjectFileBase>(file->get());
  for (const object::ELFSymbolRef &symbol : elf->getDynamicSymbolIterators()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if ((*flags & object::SymbolRef::SF_Undefined) && !name->empty() &&
        !isAllowedUndefined(*name))
      return createStringError("generated code needs the symbol '" + *name +
                               "', which the runtime does not provide");
  }
  return Error::success();
}

Expected<std::string> linkSharedObject(StringRef object) {
  // lld reads and writes files: in a private directory, removed at the end.
  SmallString<128> directory;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("shardc-link", directory))
    return createStringError(error, "no temporary directory can be created");
  auto remove =
      make_scope_exit([&] { sys::fs::remove_directories(directory); });
  SmallString<128> input(directory), output(directory);
  sys::path::append(input, "kernels.o");
  sys::path::append(output, "kernels.so");
  {
    std::error_code error;
    raw_fd_ostream stream(input, error);
    if (error)
      return createStringError(error, "cannot write " + input.str());
    stream << object;
    stream.close();
    if (stream.has_error()) {
      error = stream.error();
      stream.clear_error();
      return createStringError(error, "cannot write " + input.str());
    }
  }
  std::string messages;
  raw_string_ostream stream(messages);
  // No build id, no timestamps, no paths: the bytes depend on the object alone.
  // No soname: the loader would take the second plan of a process for the
  // first.
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "--build-id=none",
                             "--no-undefined-version",
                             "--hash-style=gnu",
                             "-znoexecstack",
                             "-znow",
                             "--threads=1",
                             "--strip-all",
                             "-o",
                             output.c_str(),
                             input.c_str()};
  static std::mutex mutex;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
    lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
    if (result.retCode != 0)
      return createStringError("linking the kernels failed: " + messages);
  }
  auto buffer = MemoryBuffer::getFile(output, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(), "cannot read " + output.str());
  std::string bytes = (*buffer)->getBuffer().str();
  if (Error error = checkUndefinedSymbols(bytes))
    return error;
  return bytes;
}

} // namespace shardc
