//===- EditSource.h - Annotations as edits of the text ----------*- C++ -*-===//
//
// Writes the annotations of a module into the text that the module was parsed
// from, as a person would: comments, names and layout stay. Parses in the
// context of the module: not thread-safe in one context.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_EDITSOURCE_H
#define SHARDC_MODELS_EDITSOURCE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace shardc {

/// How the lines of `text` end: "\r\n" if the first one does, else "\n".
llvm::StringRef getLineEnding(llvm::StringRef text);

/// `text`, edited until it says what `annotated` does, the module of `text`
/// with the mesh and the annotations of `setMesh`, `removeAnnotations` and
/// `annotateStrategy`. A sharding has the alias that `text` has for it; one
/// that comes more than once, and has none, is given one. Aliases that nothing
/// names any more are removed. Comments stay: those behind what is removed in
/// their places, those within what is rewritten in lines above it. Lines end as
/// those of `text`.
///
/// The result is parsed and compared with `annotated`: an error, if the text
/// is in a form that the edits do not know (the generic form of an op, a
/// program that was imported), says so, and no text is wrong.
llvm::Expected<std::string> editSource(llvm::StringRef text,
                                       mlir::ModuleOp annotated);

} // namespace shardc

#endif // SHARDC_MODELS_EDITSOURCE_H
