//===- ShardcInterfaces.td - Op interfaces of the shardc dialect -------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCINTERFACES_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCINTERFACES_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    The one definition of the shardings of an op: a mapping of the dimensions
    of its operands and results to factors. Propagation, partitioning, FLOP
    counts and reports derive everything from it.
  }];
  let methods = [InterfaceMethod<
      "The sharding rule, over the shapes that the op has now.",
      "::shardc::ShardingRule", "getShardingRule">];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{Reverse-mode differentiation of one op.}];
  let methods = [InterfaceMethod<[{
      Builds at the builder's insertion point the gradient of each operand from
      the gradients of the results. A null entry of `operandGrads` (one entry
      per operand) means that nothing flows to that operand. `resultGrads` has
      one value per result, none null. Ops are built at location
      `getLoc()`.
    }], "void", "buildVjp",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGrads)>];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    An op that is defined by its decomposition into the tensor core. One that is
    also differentiable has a better gradient than its decomposition's and is
    decomposed after differentiation.
  }];
  let methods = [InterfaceMethod<
      "Builds the decomposition at the insertion point and returns one value per result.",
      "::llvm::SmallVector<::mlir::Value>", "decompose",
      (ins "::mlir::OpBuilder &":$builder)>];
}

#endif
