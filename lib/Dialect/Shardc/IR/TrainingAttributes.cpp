//===- TrainingAttributes.cpp - Optimizers, schedules, training -----------===//
//
// Parsing, printing and verification of the training description.
// Hyper-parameter names and defaults are optax's.
//
//===----------------------------------------------------------------------===//

#include "NumberSyntax.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

//===----------------------------------------------------------------------===//
// Optimizer and schedule
//===----------------------------------------------------------------------===//

/// `, name = number` until the closing `>`.
static FailureOr<DictionaryAttr> parseNumbers(AsmParser &parser) {
  NamedAttrList numbers;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    double value;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (parseNumber(parser, value))
      return failure();
    if (numbers.get(name))
      return parser.emitError(loc, "'") << name << "' is given twice";
    numbers.append(name, parser.getBuilder().getF64FloatAttr(value));
  }
  return numbers.getDictionary(parser.getContext());
}

static void printNumbers(AsmPrinter &printer, DictionaryAttr numbers) {
  for (NamedAttribute number : numbers) {
    printer << ", " << number.getName().getValue() << " = ";
    printNumber(printer, number.getValue());
  }
}

static double lookUp(DictionaryAttr numbers, StringRef name, double otherwise) {
  if (auto number = numbers.getAs<FloatAttr>(name))
    return number.getValueAsDouble();
  return otherwise;
}

/// Names that an optimizer accepts.
static ArrayRef<StringRef> getHyperparameterNames(OptimizerKind kind) {
  static constexpr StringRef sgd[] = {"learning_rate", "weight_decay"};
  static constexpr StringRef momentum[] = {"learning_rate", "momentum",
                                           "weight_decay"};
  static constexpr StringRef adam[] = {"learning_rate", "b1", "b2", "eps",
                                       "weight_decay"};
  switch (kind) {
  case OptimizerKind::SGD:
    return sgd;
  case OptimizerKind::Momentum:
    return momentum;
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW:
    return adam;
  }
  llvm_unreachable("all optimizers are listed");
}

double OptimizerAttr::get(StringRef name) const {
  double otherwise = 0;
  if (name == "momentum" || name == "b1")
    otherwise = 0.9;
  else if (name == "b2")
    otherwise = 0.999;
  else if (name == "eps")
    otherwise = 1e-8;
  else if (name == "weight_decay" && getKind() == OptimizerKind::AdamW)
    otherwise = 1e-4;
  return lookUp(getHyperparameters(), name, otherwise);
}

LogicalResult
OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      OptimizerKind kind, DictionaryAttr hyperparameters) {
  ArrayRef<StringRef> names = getHyperparameterNames(kind);
  for (NamedAttribute number : hyperparameters) {
    StringRef name = number.getName().getValue();
    if (!llvm::is_contained(names, name)) {
      auto diagnostic = emitError()
                        << "optimizer " << stringifyOptimizerKind(kind)
                        << " has no hyper-parameter '" << name << "'; it has ";
      llvm::interleaveComma(names, diagnostic);
      return diagnostic;
    }
    double value = llvm::cast<FloatAttr>(number.getValue()).getValueAsDouble();
    if (!(value >= 0) || !std::isfinite(value))
      return emitError() << "hyper-parameter " << name
                         << " must be finite and not negative";
    if ((name == "b1" || name == "b2") && value >= 1)
      return emitError() << "hyper-parameter " << name << " must be below 1";
  }
  if (!hyperparameters.get("learning_rate"))
    return emitError() << "optimizer " << stringifyOptimizerKind(kind)
                       << " needs learning_rate";
  return success();
}

Attribute OptimizerAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<OptimizerKind> kind = symbolizeOptimizerKind(keyword);
  if (!kind) {
    parser.emitError(loc, "unknown optimizer '")
        << keyword << "'; expected sgd, momentum, adam or adamw";
    return {};
  }
  FailureOr<DictionaryAttr> numbers = parseNumbers(parser);
  if (failed(numbers) || parser.parseGreater())
    return {};
  return OptimizerAttr::getChecked([&] { return parser.emitError(loc); },
                                   parser.getContext(), *kind, *numbers);
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyOptimizerKind(getKind());
  printNumbers(printer, getHyperparameters());
  printer << '>';
}

double ScheduleAttr::get(StringRef name) const {
  return lookUp(getArguments(), name, 0);
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind,
                                   DictionaryAttr arguments) {
  auto allows = [&](StringRef name) {
    return (name == "warmup_steps" && kind != ScheduleKind::Constant) ||
           ((name == "decay_steps" || name == "alpha") &&
            kind == ScheduleKind::Cosine);
  };
  for (NamedAttribute number : arguments) {
    StringRef name = number.getName().getValue();
    if (!allows(name))
      return emitError() << "schedule " << stringifyScheduleKind(kind)
                         << " has no argument '" << name << "'";
    double value = llvm::cast<FloatAttr>(number.getValue()).getValueAsDouble();
    if (!(value >= 0) || !std::isfinite(value))
      return emitError() << "schedule argument " << name
                         << " must be finite and not negative";
  }
  double warmup = lookUp(arguments, "warmup_steps", 0);
  if (kind == ScheduleKind::LinearWarmup && warmup < 1)
    return emitError() << "schedule linear_warmup needs warmup_steps >= 1";
  if (kind == ScheduleKind::Cosine &&
      lookUp(arguments, "decay_steps", 0) <= warmup)
    return emitError() << "schedule cosine needs decay_steps > warmup_steps";
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<ScheduleKind> kind = symbolizeScheduleKind(keyword);
  if (!kind) {
    parser.emitError(loc, "unknown schedule '")
        << keyword << "'; expected constant, linear_warmup or cosine";
    return {};
  }
  FailureOr<DictionaryAttr> numbers = parseNumbers(parser);
  if (failed(numbers) || parser.parseGreater())
    return {};
  return ScheduleAttr::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), *kind, *numbers);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyScheduleKind(getKind());
  printNumbers(printer, getArguments());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

Attribute TrainingAttr::parse(AsmParser &parser, Type type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr loss;
  OptimizerAttr optimizer;
  FloatAttr clipNorm;
  ScheduleAttr schedule;
  int64_t microbatches = 1;
  if (parser.parseLess())
    return {};
  do {
    SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key == "loss") {
      if (parser.parseAttribute(loss))
        return {};
    } else if (key == "optimizer") {
      optimizer = llvm::dyn_cast_or_null<OptimizerAttr>(
          OptimizerAttr::parse(parser, type));
      if (!optimizer)
        return {};
    } else if (key == "clip_norm") {
      double value;
      if (parseNumber(parser, value))
        return {};
      if (!(value > 0) || !std::isfinite(value)) {
        parser.emitError(keyLoc, "clip_norm must be finite and positive");
        return {};
      }
      clipNorm = parser.getBuilder().getF64FloatAttr(value);
    } else if (key == "schedule") {
      schedule = llvm::dyn_cast_or_null<ScheduleAttr>(
          ScheduleAttr::parse(parser, type));
      if (!schedule)
        return {};
    } else if (key == "microbatches") {
      if (parser.parseInteger(microbatches))
        return {};
      if (microbatches < 1) {
        parser.emitError(keyLoc, "microbatches must be at least 1, got ")
            << microbatches;
        return {};
      }
    } else {
      parser.emitError(keyLoc, "expected loss, optimizer, clip_norm, schedule "
                               "or microbatches");
      return {};
    }
  } while (succeeded(parser.parseOptionalComma()));
  if (parser.parseGreater())
    return {};
  if (!loss || !optimizer) {
    parser.emitError(loc, "#shardc.training needs loss and optimizer");
    return {};
  }
  return TrainingAttr::get(parser.getContext(), loss, optimizer, clipNorm,
                           schedule, microbatches);
}

void TrainingAttr::print(AsmPrinter &printer) const {
  printer << "<loss = " << getLoss() << ", optimizer = ";
  getOptimizer().print(printer);
  if (getClipNorm()) {
    printer << ", clip_norm = ";
    printNumber(printer, getClipNorm());
  }
  if (getSchedule()) {
    printer << ", schedule = ";
    getSchedule().print(printer);
  }
  if (getMicrobatches() != 1)
    printer << ", microbatches = " << getMicrobatches();
  printer << '>';
}
