//===- Regather.h - Gathering weights once or twice -------------*- C++ -*-===//
//
// A weight that is gathered for the forward pass and used again in the backward
// pass is held in between, or gathered again. Says which weights these are and
// what the choice costs. Changes no IR; not thread-safe, because the planner
// that it borrows is not.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H

#include "EdgeLayouts.h"

#include "shardc/Reshard/ReshardPlanner.h"

namespace shardc {

/// Wants of one value that are delivered together.
struct WantGroup {
  llvm::SmallVector<Want, 1> wants;
  /// The pass that alone has what is delivered; none: nobody minds.
  std::optional<Part> pass;
  /// The loop over microbatches in which it is delivered, in every run; null:
  /// it is delivered once.
  AccumulateOp loop;
  /// An earlier pass has had the same value.
  bool isSecond = false;
};

/// Looks at the weights of one function.
class Regather {
public:
  /// Borrows `mesh` and `planner`. `isTaken`: weights are gathered again.
  Regather(const MeshAxes &mesh, ReshardPlanner &planner, bool isTaken)
      : mesh(mesh), planner(planner), isTaken(isTaken) {}

  /// How `value`, at rest as `from` and wanted as `wants` (distinct, none equal
  /// to `from`), is delivered: at once, or, if weights are gathered again and
  /// it is one, to each pass by itself. If something larger than what rests
  /// would be held from the forward pass to the backward pass, its price is
  /// added to that of the function.
  llvm::SmallVector<WantGroup, 1> group(mlir::Value value, const Layout &from,
                                        llvm::ArrayRef<Want> wants);

  /// The price of gathering all weights again, compared with holding them; null
  /// if there are no such weights.
  RegatherAttr getPrice(mlir::MLIRContext *context) const;

private:
  struct Tree {
    llvm::SmallVector<Delivery> nodes;
    int64_t wireBytes = 0;
  };
  Tree plan(const Layout &from, llvm::ArrayRef<Want> wants,
            mlir::RankedTensorType type);
  /// Bytes of `node` on a device; 0 if what rests as `from` is no smaller.
  int64_t getGatheredBytes(const Delivery &node, const Layout &from,
                           mlir::RankedTensorType type) const;
  int64_t getHeldBytes(const Tree &tree, const Layout &from,
                       llvm::ArrayRef<Want> wants,
                       mlir::RankedTensorType type) const;

  const MeshAxes &mesh;
  ReshardPlanner &planner;
  bool isTaken;
  int64_t wireBytes = 0, heldBytes = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_REGATHER_H
