//===- ShardcPlanAttrs.td - Results of a search ----------*- tablegen -*-===//
//
// `shardc-propagate` notes these on functions, besides the sharding strategies
// of their ops, if a search has found the plan.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCPLANATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCPLANATTRS_TD

include "shardc/Dialect/Shardc/IR/ShardcExpectAttrs.td"

def Shardc_StartAttr : Shardc_Attr<"Start", "start"> {
  let summary = "Collectives whose latency a searched plan pays";
  let description = [{
    An entry of `shardc.starts` of a function whose plan was searched for by
    time: collectives of `kind` over `axes` that move values made in `part` of
    the step. The plan pays their latency once, since they can be merged, and
    reshards use no other collectives.

    `#shardc.start<backward, reduce_scatter, ["data"]>`
  }];
  let parameters = (ins EnumParameter<Shardc_Part>:$part,
                        EnumParameter<Shardc_CollectiveKind>:$kind,
                        ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let assemblyFormat = "`<` $part `,` $kind `,` `[` $axes `]` `>`";
}

def Shardc_CostAttr : Shardc_Attr<"Cost", "cost"> {
  let summary = "The cost of a plan, and that of the cheapest";
  let description = [{
    `shardc.cost` of a function: the cost of its plan in the unit of the
    objective, bytes on the wire per device ("bytes") or seconds ("time").

    - Searched plans: `cost` is the sum that the search minimises, by time a
      simpler one than the estimate of reports. `at_least` is a lower bound of
      the cost of every plan; it equals `cost` unless the search was cut off.
    - Plans that follow the annotations: `cost` is the estimate of reports, and
      `cheapest` that of the plan of `--partition=cheapest`. `at_least` bounds
      both from below; 0 if no bound is known.

    `within` is present if cheaper plans need too much memory: then all figures
    are about plans that need at most so many bytes on a device.

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
