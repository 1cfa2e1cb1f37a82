//===- ExplanationSummary.h - Where to look first ---------------*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H
#define SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H

#include "shardc/Report/Explanation.h"

namespace shardc {

/// Of a program with many collectives a table of the lines to look at: what
/// those send together that each is to blame for, and which kinds, most bytes
/// first. Nothing for other programs.
void printSummary(const ExplainedProgram &program, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_EXPLANATIONSUMMARY_H
