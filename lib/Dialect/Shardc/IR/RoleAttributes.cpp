//===- RoleAttributes.cpp - Text of roles and initialisers ----------------===//
//
// Parsing, printing and verification of initialisers and of the roles of
// arguments that have one.
//
//===----------------------------------------------------------------------===//

#include "NumberSyntax.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

/// he_normal, normal(0.02), uniform(-1.0, 1.0), constant(0.0)
static FailureOr<InitAttr> parseInit(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<InitKind> kind = symbolizeInitKind(keyword);
  if (!kind)
    return parser.emitError(loc, "unknown initialiser '")
           << keyword
           << "'; expected he_normal, he_uniform, lecun_normal, "
              "lecun_uniform, glorot_normal, glorot_uniform, normal(stddev), "
              "uniform(low, high) or constant(value)";
  SmallVector<FloatAttr> args;
  if (failed(parser.parseCommaSeparatedList(
          AsmParser::Delimiter::OptionalParen, [&]() -> ParseResult {
            double value;
            if (parseNumber(parser, value))
              return failure();
            args.push_back(parser.getBuilder().getF64FloatAttr(value));
            return success();
          })))
    return failure();
  auto init = InitAttr::getChecked([&] { return parser.emitError(loc); },
                                   parser.getContext(), *kind,
                                   ArrayRef<FloatAttr>(args));
  if (!init)
    return failure();
  return init;
}

static void printInit(AsmPrinter &printer, InitAttr init) {
  printer << stringifyInitKind(init.getKind());
  if (init.getArgs().empty())
    return;
  printer << '(';
  llvm::interleaveComma(init.getArgs(), printer,
                        [&](FloatAttr arg) { printNumber(printer, arg); });
  printer << ')';
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               InitKind kind, ArrayRef<FloatAttr> args) {
  size_t expected = kind == InitKind::Uniform ? 2
                    : kind == InitKind::Normal || kind == InitKind::Constant
                        ? 1
                        : 0;
  if (args.size() != expected)
    return emitError() << "initialiser " << stringifyInitKind(kind) << " takes "
                       << expected << " arguments, got " << args.size();
  if (kind == InitKind::Normal && !(args[0].getValueAsDouble() >= 0))
    return emitError() << "normal(stddev) needs a standard deviation >= 0";
  if (kind == InitKind::Uniform &&
      !(args[0].getValueAsDouble() <= args[1].getValueAsDouble()))
    return emitError() << "uniform(low, high) needs low <= high";
  return success();
}

Attribute InitAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<InitAttr> init = parseInit(parser);
  if (failed(init) || parser.parseGreater())
    return {};
  return *init;
}

void InitAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printInit(printer, *this);
  printer << '>';
}

/// A double-quoted, non-empty name.
static ParseResult parseNonEmptyName(AsmParser &parser, StringAttr &name) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text;
  if (parser.parseString(&text))
    return failure();
  if (text.empty())
    return parser.emitError(loc, "expected a name that is not empty");
  name = StringAttr::get(parser.getContext(), text);
  return success();
}

Attribute ParameterAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  if (parser.parseLess() || parseNonEmptyName(parser, name) ||
      parser.parseComma())
    return {};
  FailureOr<InitAttr> init = parseInit(parser);
  if (failed(init) || parser.parseGreater())
    return {};
  return ParameterAttr::get(parser.getContext(), name, *init);
}

void ParameterAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", ";
  printInit(printer, getInit());
  printer << '>';
}

Attribute StateAttr::parse(AsmParser &parser, Type) {
  StringAttr name, parameter;
  if (parser.parseLess() || parseNonEmptyName(parser, name) ||
      parser.parseComma())
    return {};
  FailureOr<InitAttr> init = parseInit(parser);
  if (failed(init))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("of") || parser.parseEqual() ||
       parseNonEmptyName(parser, parameter)))
    return {};
  if (parser.parseGreater())
    return {};
  return StateAttr::get(parser.getContext(), name, *init, parameter);
}

void StateAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", ";
  printInit(printer, getInit());
  if (getParameter())
    printer << ", of = " << getParameter();
  printer << '>';
}
