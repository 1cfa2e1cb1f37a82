//===- NumberSyntax.cpp - Numbers in attributes ---------------------------===//

#include "NumberSyntax.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace mlir;

ParseResult shardc::parseNumber(AsmParser &parser, double &value) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute number;
  if (parser.parseAttribute(number))
    return failure();
  if (auto real = llvm::dyn_cast<FloatAttr>(number)) {
    value = real.getValueAsDouble();
    return success();
  }
  auto integer = llvm::dyn_cast<IntegerAttr>(number);
  if (!integer || !integer.getType().isSignlessInteger(64))
    return parser.emitError(loc, "expected a number");
  // MLIR takes such digits for the bits of a float where it expects one, and
  // for an integer here: 0x7FC00000 is no learning rate of 2143289344.
  const char *digits = loc.getPointer();
  digits += *digits == '-';
  if (digits[0] == '0' && digits[1] == 'x')
    return parser.emitError(loc, "expected a decimal number, or the bits of a "
                                 "float and its type, as in `0x3F800000 : "
                                 "f32`");
  value = static_cast<double>(integer.getInt());
  return success();
}

void shardc::printNumber(AsmPrinter &printer, Attribute number) {
  double value = llvm::cast<FloatAttr>(number).getValueAsDouble();
  if (value == std::trunc(value) && std::abs(value) < 1e15) {
    printer << static_cast<int64_t>(value);
    return;
  }
  char digits[40];
  for (int precision = 1; precision <= 17; ++precision) {
    std::snprintf(digits, sizeof(digits), "%.*g", precision, value);
    if (std::strtod(digits, nullptr) == value)
      break;
  }
  // MLIR reads an exponent only after a decimal point.
  auto [mantissa, exponent] = StringRef(digits).split('e');
  printer << mantissa;
  if (!exponent.empty())
    printer << (mantissa.contains('.') ? "e" : ".0e") << exponent;
}
