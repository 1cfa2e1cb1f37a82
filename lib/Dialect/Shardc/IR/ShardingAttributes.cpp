//===- ShardingAttributes.cpp - Text of shardings -------------------------===//
//
// Parsing and printing of #shardc.dim, #shardc.sharding, #shardc.strategy.
// The text follows Shardy's.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

/// {"a", "b", ?}pN
static FailureOr<DimShardingAttr> parseDim(AsmParser &parser) {
  SmallVector<StringAttr> axes;
  bool isClosed = true;
  if (parser.parseLBrace())
    return failure();
  if (failed(parser.parseOptionalRBrace())) {
    do {
      if (succeeded(parser.parseOptionalQuestion())) {
        isClosed = false;
        break;
      }
      std::string axis;
      if (parser.parseString(&axis))
        return failure();
      axes.push_back(StringAttr::get(parser.getContext(), axis));
    } while (succeeded(parser.parseOptionalComma()));
    if (parser.parseRBrace())
      return failure();
  }
  std::optional<int64_t> priority;
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    int64_t value;
    if (!keyword.consume_front("p") || keyword.getAsInteger(10, value))
      return parser.emitError(
          loc, "expected a priority such as p0 or p1 after the dimension");
    priority = value;
  }
  return DimShardingAttr::get(parser.getContext(), axes, isClosed, priority);
}

static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << '{';
  llvm::interleaveComma(dim.getAxes(), printer);
  if (!dim.getIsClosed())
    printer << (dim.getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (dim.getPriority())
    printer << 'p' << *dim.getPriority();
}

static ParseResult parseDims(AsmParser &parser,
                             SmallVectorImpl<DimShardingAttr> &dims) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        FailureOr<DimShardingAttr> dim = parseDim(parser);
        if (failed(dim))
          return failure();
        dims.push_back(*dim);
        return success();
      });
}

static void printDims(AsmPrinter &printer, ArrayRef<DimShardingAttr> dims) {
  printer << '[';
  llvm::interleaveComma(dims, printer,
                        [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << ']';
}

/// {"a", "b"}
static ParseResult parseAxisSet(AsmParser &parser,
                                SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Braces, [&]() -> ParseResult {
        std::string axis;
        if (parser.parseString(&axis))
          return failure();
        axes.push_back(StringAttr::get(parser.getContext(), axis));
        return success();
      });
}

static void printAxisSet(AsmPrinter &printer, StringRef name,
                         ArrayRef<StringAttr> axes) {
  if (axes.empty())
    return;
  printer << ", " << name << "={";
  llvm::interleaveComma(axes, printer);
  printer << '}';
}

int64_t DimShardingAttr::getGapSize(StringAttr entry) {
  StringRef text = entry.getValue();
  int64_t size = 0;
  if (!text.consume_front("*") || text.getAsInteger(10, size) || size < 2 ||
      size > std::numeric_limits<int32_t>::max())
    return 0;
  return size;
}

StringAttr DimShardingAttr::getGap(int64_t size, MLIRContext *context) {
  return StringAttr::get(context, "*" + Twine(size));
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimShardingAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> replicated, unreduced;
  std::optional<UnevenPolicy> uneven;
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() || parseDims(parser, dims))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key == "replicated" || key == "unreduced") {
      if (parseAxisSet(parser, key == "replicated" ? replicated : unreduced))
        return {};
      continue;
    }
    if (key == "uneven") {
      StringRef policy;
      SMLoc policyLoc = parser.getCurrentLocation();
      if (parser.parseKeyword(&policy))
        return {};
      uneven = symbolizeUnevenPolicy(policy);
      if (!uneven) {
        parser.emitError(policyLoc, "expected uneven=pad or uneven=error");
        return {};
      }
      continue;
    }
    parser.emitError(loc, "expected replicated=, unreduced= or uneven=");
    return {};
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), mesh, dims, replicated,
                           unreduced, uneven);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", ";
  printDims(printer, getDims());
  printAxisSet(printer, "replicated", getReplicated());
  printAxisSet(printer, "unreduced", getUnreduced());
  if (getUneven())
    printer << ", uneven=" << stringifyUnevenPolicy(*getUneven());
  printer << '>';
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank) {
  SmallVector<SmallVector<StringAttr>> dims(rank);
  return getClosed(mesh, dims);
}

ShardingAttr ShardingAttr::getClosed(FlatSymbolRefAttr mesh,
                                     ArrayRef<SmallVector<StringAttr>> dims,
                                     ArrayRef<StringAttr> unreduced) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> attrs;
  for (const SmallVector<StringAttr> &axes : dims)
    attrs.push_back(DimShardingAttr::get(context, axes, /*isClosed=*/true,
                                         /*priority=*/std::nullopt));
  return ShardingAttr::get(context, mesh, attrs, {}, unreduced, std::nullopt);
}

Attribute StrategyAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimShardingAttr> factors;
  SmallVector<StringAttr> unreduced, unreducedRhs;
  if (parser.parseLess() || parseDims(parser, factors))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    llvm::SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key != "unreduced" && key != "unreduced_rhs") {
      parser.emitError(loc, "expected unreduced= or unreduced_rhs=");
      return {};
    }
    if (parseAxisSet(parser, key == "unreduced" ? unreduced : unreducedRhs))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return StrategyAttr::get(parser.getContext(), factors, unreduced,
                           unreducedRhs);
}

void StrategyAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDims(printer, getFactors());
  printAxisSet(printer, "unreduced", getUnreduced());
  printAxisSet(printer, "unreduced_rhs", getUnreducedRhs());
  printer << '>';
}
