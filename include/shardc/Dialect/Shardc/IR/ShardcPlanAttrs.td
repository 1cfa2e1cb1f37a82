//===- ShardcPlanAttrs.td - What a search decided --------*- tablegen -*-===//
//
// What `shardc-propagate` leaves on the functions of a program whose plan it
// searched for, besides the assignments of their ops.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCPLANATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCPLANATTRS_TD

include "shardc/Dialect/Shardc/IR/ShardcExpectAttrs.td"

def Shardc_StartAttr : Shardc_Attr<"Start", "start"> {
  let summary = "Collectives that a searched plan starts";
  let description = [{
    An entry of `shardc.starts` of a function whose plan was searched for by
    time: collectives of `kind` over `axes` that move what is made in `part` of
    the step. Their start is paid for once, and reshards use no others.

    `#shardc.start<backward, reduce_scatter, ["data"]>`
  }];
  let parameters = (ins EnumParameter<Shardc_Part>:$part,
                        EnumParameter<Shardc_CollectiveKind>:$kind,
                        ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let assemblyFormat = "`<` $part `,` $kind `,` `[` $axes `]` `>`";
}

def Shardc_CostAttr : Shardc_Attr<"Cost", "cost"> {
  let summary = "What a plan costs, and what the cheapest would";
  let description = [{
    `shardc.cost` of a function: `cost` is that of its plan in the unit of the
    objective, bytes on the wire per device ("bytes") or seconds ("time"). If
    the plan was searched for, `cost` is the sum that the search minimises, by
    time a simpler one than the estimate of reports, and no plan has less than
    `at_least`: that is `cost` unless the search was cut off. If the plan
    follows its annotations, `cost` is the estimate of reports, `cheapest` that
    of the plan that `--partition=cheapest` takes, and `at_least` bounds both, 0
    if no bound is known. `within` is there if plans that cost less need too
    much memory: then only plans count that need at most so many bytes on a
    device.

    `#shardc.cost<objective = "time", cost = 1.2e-05 : f64, at_least = 1.2e-05 : f64>`
  }];
  let genVerifyDecl = 1;
  let parameters = (ins "::mlir::StringAttr":$objective,
                        "::mlir::FloatAttr":$cost, "::mlir::FloatAttr":$at_least,
                        OptionalParameter<"::mlir::FloatAttr">:$cheapest,
                        OptionalParameter<"::mlir::IntegerAttr">:$within);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
