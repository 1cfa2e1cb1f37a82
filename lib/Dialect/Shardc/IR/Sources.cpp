//===- Sources.cpp - Provenance in locations ------------------------------===//

#include "shardc/Dialect/Shardc/IR/Sources.h"

using namespace mlir;
using namespace shardc;

Location shardc::addMetadata(Location loc, Attribute metadata) {
  return FusedLoc::get(loc.getContext(), {loc}, metadata);
}

Location shardc::getFileLocation(Location loc) {
  LocationAttr found = UnknownLoc::get(loc.getContext());
  loc->walk([&](Location inner) {
    if (!isa<FileLineColLoc>(inner))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

std::string shardc::getSourceString(Location loc) {
  std::string source;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    source = (file.getFilename().getValue() + ":" + Twine(file.getLine()) +
              ":" + Twine(file.getColumn()))
                 .str();
    return WalkResult::interrupt();
  });
  return source;
}

SourceAttr shardc::getSource(LocationAttr loc) {
  auto fused = dyn_cast_or_null<FusedLoc>(loc);
  if (!fused)
    return {};
  if (auto source = dyn_cast_or_null<SourceAttr>(fused.getMetadata()))
    return source;
  for (Location inner : fused.getLocations())
    if (SourceAttr source = getSource(inner))
      return source;
  return {};
}

/// Appends the moves in `loc`, in order.
static void collect(Location loc, SmallVectorImpl<MoveAttr> &moves) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return;
  if (auto move = dyn_cast_or_null<MoveAttr>(fused.getMetadata())) {
    moves.push_back(move);
    return;
  }
  for (Location inner : fused.getLocations())
    collect(inner, moves);
}

SmallVector<SmallVector<MoveAttr, 1>> shardc::getMoves(Location loc,
                                                       unsigned count) {
  SmallVector<SmallVector<MoveAttr, 1>> moves;
  auto fused = dyn_cast<FusedLoc>(loc);
  if (count == 1) {
    collect(loc, moves.emplace_back());
  } else if (fused && !fused.getMetadata() &&
             fused.getLocations().size() == count) {
    for (Location inner : fused.getLocations())
      collect(inner, moves.emplace_back());
  }
  if (llvm::any_of(moves, [](const auto &list) { return list.empty(); }))
    moves.clear();
  return moves;
}
