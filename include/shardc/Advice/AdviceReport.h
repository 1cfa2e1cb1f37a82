//===- AdviceReport.h - Advice as text and JSON -----------------*- C++ -*-===//

#ifndef SHARDC_ADVICE_ADVICEREPORT_H
#define SHARDC_ADVICE_ADVICEREPORT_H

#include "shardc/Advice/Advise.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

/// "12.3 GB", decimal.
std::string getBytesText(double bytes);
/// "12.34 ms".
std::string getSecondsText(double seconds);
/// "12.3 %".
std::string getPercentText(double part);

/// The table of the fastest `rows` plans, and the sentences.
void print(const Advice &advice, size_t rows, llvm::raw_ostream &os);
/// Throughput over numbers of devices, and the smallest on which it fits.
void printScaling(llvm::ArrayRef<Advice> advices, llvm::raw_ostream &os);

/// The schema is in docs/Advice.md.
llvm::json::Object toJson(const Advice &advice);
llvm::json::Object toJson(llvm::ArrayRef<Advice> advices);

} // namespace shardc

#endif // SHARDC_ADVICE_ADVICEREPORT_H
