//===- TrainingText.cpp - Optimizers and schedules on command lines -------===//

#include "shardc/Dialect/Shardc/IR/TrainingText.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

/// Reads "NAME,key=number,…" into `name` and `numbers`.
static bool readNumbers(MLIRContext *context, StringRef text, StringRef &name,
                        NamedAttrList &numbers, std::string &error) {
  Builder builder(context);
  StringRef rest;
  std::tie(name, rest) = text.split(',');
  // A comma promises a number.
  bool isExpected = text.size() > name.size();
  while (isExpected) {
    auto [entry, others] = rest.split(',');
    isExpected = rest.size() > entry.size();
    rest = others;
    auto [key, digits] = entry.split('=');
    double value;
    if (key.empty() || digits.getAsDouble(value)) {
      error = "'" + entry.str() + "' is not a number with its name, such as " +
              "b1=0.9";
      return false;
    }
    if (numbers.get(key)) {
      error = "'" + key.str() + "' is given twice";
      return false;
    }
    numbers.append(key, builder.getF64FloatAttr(value));
  }
  return true;
}

/// Calls `build` with a function that makes a diagnostic, whose text becomes
/// the `error`.
template <typename AttrT>
static AttrT
getChecked(MLIRContext *context, std::string &error,
           function_ref<AttrT(function_ref<InFlightDiagnostic()>)> build) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  return build([&] { return mlir::emitError(UnknownLoc::get(context)); });
}

OptimizerAttr shardc::readOptimizer(MLIRContext *context, StringRef text,
                                    double learningRate, std::string &error) {
  StringRef name;
  NamedAttrList numbers;
  if (!readNumbers(context, text, name, numbers, error))
    return {};
  std::optional<OptimizerKind> kind = symbolizeOptimizerKind(name);
  if (!kind) {
    error = "unknown optimizer '" + name.str() +
            "'; expected sgd, momentum, adam or adamw";
    return {};
  }
  if (!numbers.get("learning_rate"))
    numbers.append("learning_rate",
                   Builder(context).getF64FloatAttr(learningRate));
  return getChecked<OptimizerAttr>(context, error, [&](auto emitError) {
    return OptimizerAttr::getChecked(emitError, context, *kind,
                                     numbers.getDictionary(context));
  });
}

ScheduleAttr shardc::readSchedule(MLIRContext *context, StringRef text,
                                  std::string &error) {
  StringRef name;
  NamedAttrList numbers;
  if (!readNumbers(context, text, name, numbers, error))
    return {};
  std::optional<ScheduleKind> kind = symbolizeScheduleKind(name);
  if (!kind) {
    error = "unknown schedule '" + name.str() +
            "'; expected constant, linear_warmup or cosine";
    return {};
  }
  return getChecked<ScheduleAttr>(context, error, [&](auto emitError) {
    return ScheduleAttr::getChecked(emitError, context, *kind,
                                    numbers.getDictionary(context));
  });
}

/// The error of `read` for a text in a context of its own.
static std::string
checkInContext(function_ref<void(MLIRContext *, std::string &)> read) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ShardcDialect>();
  std::string error;
  read(&context, error);
  return error;
}

std::string shardc::checkOptimizer(StringRef text) {
  return checkInContext([&](MLIRContext *context, std::string &error) {
    readOptimizer(context, text, /*learningRate=*/1, error);
  });
}

std::string shardc::checkSchedule(StringRef text) {
  return checkInContext([&](MLIRContext *context, std::string &error) {
    readSchedule(context, text, error);
  });
}

bool shardc::isRecomputePolicy(StringRef text) {
  return text == "none" || text == "layer" || text == "stage" || text == "auto";
}
