//===- AssemblePtx.cpp - PTX to machine code ------------------------------===//

#include "shardc/Target/CUDA/AssemblePtx.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace llvm;

std::string shardc::findPtxas() {
  if (const char *told = std::getenv("SHARDC_PTXAS"))
    return told;
  auto found = sys::findProgramByName("ptxas");
  if (!found)
    found = sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  return found ? *found : "";
}

/// A new file, which goes with `remover`.
static Error makeFile(StringRef suffix, int &descriptor, FileRemover &remover,
                      SmallString<128> &path) {
  if (std::error_code error =
          sys::fs::createTemporaryFile("shardc", suffix, descriptor, path))
    return createStringError(error, "cannot make a temporary file for ptxas: " +
                                        error.message());
  remover.setFile(path);
  return Error::success();
}

Expected<std::string> shardc::assemblePtx(StringRef ptx, StringRef chip,
                                          StringRef ptxas) {
  FileRemover removers[3];
  SmallString<128> text, code, said;
  int textFile, codeFile, saidFile;
  if (Error error = makeFile("ptx", textFile, removers[0], text))
    return error;
  raw_fd_ostream os(textFile, /*shouldClose=*/true);
  os << ptx;
  os.close();
  if (std::error_code error = os.error()) {
    os.clear_error();
    return createStringError(error, "cannot write '" + text +
                                        "' for ptxas: " + error.message());
  }
  if (Error error = makeFile("cubin", codeFile, removers[1], code))
    return error;
  sys::fs::closeFile(codeFile);
  if (Error error = makeFile("log", saidFile, removers[2], said))
    return error;
  sys::fs::closeFile(saidFile);

  const std::string architecture = ("-arch=" + chip).str();
  std::string failure;
  int exitCode = sys::ExecuteAndWait(
      ptxas, {ptxas, architecture, "-o", code, text}, /*Env=*/std::nullopt,
      {StringRef(), StringRef(said), StringRef(said)}, /*SecondsToWait=*/0,
      /*MemoryLimit=*/0, &failure);
  if (exitCode != 0) {
    auto log = MemoryBuffer::getFile(said);
    return createStringError(
        "'" + ptxas + "' did not assemble the kernels for " + chip + ": " +
        (failure.empty() ? "exit code " + std::to_string(exitCode) : failure) +
        (log && (*log)->getBufferSize() > 0
             ? "\n" + (*log)->getBuffer().rtrim().str()
             : std::string()));
  }
  auto made = MemoryBuffer::getFile(code);
  if (std::error_code error = made.getError())
    return createStringError(error, "cannot read the code that '" + ptxas +
                                        "' made: " + error.message());
  if ((*made)->getBufferSize() == 0)
    return createStringError("'" + ptxas +
                             "' ended without an error and made "
                             "no code for " +
                             chip);
  return (*made)->getBuffer().str();
}
