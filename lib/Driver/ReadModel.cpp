//===- ReadModel.cpp - Reads source modules -------------------------------===//

#include "shardc/Driver/ReadModel.h"

#include "shardc/Import/ImportStableHLO.h"
#include "shardc/Support/InputFiles.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace shardc;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
shardc::readModelFile(const std::string &path) {
  if (std::string error = checkInputEnds(path); !error.empty())
    return llvm::createStringError(error);
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (std::error_code error = buffer.getError())
    return llvm::createStringError("cannot read '" + path +
                                   "': " + error.message());
  return std::move(*buffer);
}

OwningOpRef<ModuleOp> shardc::parseModel(llvm::SourceMgr &sources,
                                         MLIRContext &context) {
  StringRef text =
      sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  return hasStableHLO(text)
             ? importStableHLO(sources, &context)
             : parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}
