//===- ExpectAttributes.cpp - Contracts: text and legality ----------------===//

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Expect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace shardc;

/// A keyword of the enum that `symbolize` reads, after `word`.
template <typename Enum>
static ParseResult parseEnum(AsmParser &parser, StringRef word,
                             std::optional<Enum> (*symbolize)(StringRef),
                             std::optional<Enum> &value) {
  if (failed(parser.parseOptionalKeyword(word)))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  value = symbolize(keyword);
  if (!value)
    return parser.emitError(loc, "unknown '") << keyword << "'";
  return success();
}

static ParseResult parseName(AsmParser &parser, StringRef word,
                             StringAttr &name) {
  std::string text;
  if (failed(parser.parseOptionalKeyword(word)))
    return success();
  if (parser.parseString(&text))
    return failure();
  name = StringAttr::get(parser.getContext(), text);
  return success();
}

/// <2 of all_gather over "data" in forward region "tower">
template <typename Limit>
static Attribute parseLimit(AsmParser &parser) {
  int64_t limit;
  CollectiveFilter filter;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(limit) ||
      parseEnum(parser, "of", symbolizeCollectiveKind, filter.kind) ||
      parseName(parser, "over", filter.axis) ||
      parseEnum(parser, "in", symbolizePart, filter.part) ||
      parseName(parser, "region", filter.region) || parser.parseGreater())
    return {};
  return parser.getChecked<Limit>(loc, parser.getContext(), limit, filter.kind,
                                  filter.axis, filter.part, filter.region);
}

template <typename Limit>
static CollectiveFilter filterOf(Limit limit) {
  return {limit.getKind(), limit.getAxis(), limit.getPart(), limit.getRegion()};
}

template <typename Limit>
static void printLimit(AsmPrinter &printer, Limit limit) {
  std::string rest = filterOf(limit).toString("");
  printer << '<' << limit.getLimit() << rest << '>';
}

static LogicalResult verifyLimit(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t limit) {
  if (limit >= 0)
    return success();
  return emitError() << "expected a limit of at least 0, found " << limit;
}

std::string CollectiveFilter::toString(StringRef noun) const {
  std::string text = noun.str();
  llvm::raw_string_ostream os(text);
  if (kind)
    os << " of " << stringifyCollectiveKind(*kind);
  if (axis)
    os << " over " << axis;
  if (part)
    os << " in " << stringifyPart(*part);
  if (region)
    os << (noun.empty() ? " region " : " in region ") << region;
  return text;
}

Attribute MaxCollectivesAttr::parse(AsmParser &parser, Type) {
  return parseLimit<MaxCollectivesAttr>(parser);
}

void MaxCollectivesAttr::print(AsmPrinter &printer) const {
  printLimit(printer, *this);
}

LogicalResult
MaxCollectivesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           int64_t limit, std::optional<CollectiveKind>,
                           StringAttr, std::optional<Part>, StringAttr) {
  return verifyLimit(emitError, limit);
}

Attribute MaxBytesAttr::parse(AsmParser &parser, Type) {
  return parseLimit<MaxBytesAttr>(parser);
}

void MaxBytesAttr::print(AsmPrinter &printer) const {
  printLimit(printer, *this);
}

LogicalResult MaxBytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t limit, std::optional<CollectiveKind>,
                                   StringAttr, std::optional<Part>,
                                   StringAttr) {
  return verifyLimit(emitError, limit);
}

LogicalResult
MaxMemoryAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t limit) {
  return verifyLimit(emitError, limit);
}

std::optional<CollectiveFilter> shardc::getFilter(Attribute contract) {
  if (auto limit = dyn_cast<MaxCollectivesAttr>(contract))
    return filterOf(limit);
  if (auto limit = dyn_cast<MaxBytesAttr>(contract))
    return filterOf(limit);
  return std::nullopt;
}

/// Whether some mesh of the module around `op` has the axis.
static bool hasAxis(Operation *op, StringRef axis) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module && llvm::any_of(module.getOps<MeshOp>(), [&](MeshOp mesh) {
           return mesh.getAxisSize(axis) > 0;
         });
}

LogicalResult
shardc::verifyExpectations(Attribute attribute, Operation *op,
                           ExpectScope scope,
                           function_ref<InFlightDiagnostic()> emitError) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list)
    return emitError() << "must be a list of contracts such as "
                          "[#shardc.max_collectives<0>]";
  for (Attribute contract : list) {
    if (isa<MaxMemoryAttr>(contract)) {
      if (scope != ExpectScope::Module)
        return emitError() << "has " << contract
                           << ", which belongs on the module: all programs "
                              "share one arena";
      continue;
    }
    if (isa<NoRedundantFlopsAttr>(contract)) {
      if (scope == ExpectScope::Argument)
        return emitError() << "has " << contract
                           << ", which belongs on a module, a function or an "
                              "op: an argument is not computed";
      continue;
    }
    std::optional<CollectiveFilter> filter = getFilter(contract);
    if (!filter)
      return emitError() << "has " << contract
                         << ", expected #shardc.max_collectives, "
                            "#shardc.max_bytes, #shardc.max_memory or "
                            "#shardc.no_redundant_flops";
    if (filter->axis && !hasAxis(op, filter->axis.getValue()))
      return emitError() << "has " << contract << ", but the mesh has no axis "
                         << filter->axis;
  }
  return success();
}

LogicalResult shardc::verifyExpectAttribute(Operation *op,
                                            NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  auto emitError = [&] { return op->emitError("`") << name << "` "; };
  if (name == regionAttrName) {
    auto region = dyn_cast<StringAttr>(attribute.getValue());
    if (region && !region.empty())
      return success();
    return emitError() << "must be a name such as \"tower\"";
  }
  auto scope = isa<ModuleOp>(op)              ? ExpectScope::Module
               : isa<FunctionOpInterface>(op) ? ExpectScope::Function
                                              : ExpectScope::Op;
  return verifyExpectations(attribute.getValue(), op, scope, emitError);
}
