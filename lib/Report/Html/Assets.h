//===- Assets.h - The style and the script of the page ----------*- C++ -*-===//
//
// The files of the same names beside this one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_HTML_ASSETS_H
#define SHARDC_LIB_REPORT_HTML_ASSETS_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// page.css: the layout of the page.
extern const llvm::StringLiteral pageStyle;
/// page.js: pickers, hover and keys.
extern const llvm::StringLiteral pageScript;
/// picture.css: the colours, which pictures in files of their own need too.
extern const llvm::StringLiteral pictureStyle;

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_ASSETS_H
