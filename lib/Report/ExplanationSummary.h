//===- ExplanationSummary.h - A table of lines to look at first -*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H
#define SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H

#include "shardc/Report/Explanation.h"

namespace shardc {

/// For a program with many collectives: a table of the lines to look at, each
/// with the bytes and the kinds of the collectives that it causes, most bytes
/// first. Nothing for other programs.
void printSummary(const ExplainedProgram &program, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H
