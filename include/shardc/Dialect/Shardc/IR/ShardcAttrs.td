//===- ShardcAttrs.td - Attributes of the shardc dialect ---------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "shardc/Dialect/Shardc/IR/ShardcDialect.td"

class Shardc_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::shardc";
  let genSpecializedAttr = 0;
}

def Shardc_InitKind : Shardc_Enum<"InitKind", "parameter initialiser", [
  I32EnumAttrCase<"HeNormal", 0, "he_normal">,
  I32EnumAttrCase<"HeUniform", 1, "he_uniform">,
  I32EnumAttrCase<"LecunNormal", 2, "lecun_normal">,
  I32EnumAttrCase<"LecunUniform", 3, "lecun_uniform">,
  I32EnumAttrCase<"GlorotNormal", 4, "glorot_normal">,
  I32EnumAttrCase<"GlorotUniform", 5, "glorot_uniform">,
  I32EnumAttrCase<"Normal", 6, "normal">,
  I32EnumAttrCase<"Uniform", 7, "uniform">,
  I32EnumAttrCase<"Constant", 8, "constant">]>;

def Shardc_OptimizerKind : Shardc_Enum<"OptimizerKind", "optimizer", [
  I32EnumAttrCase<"SGD", 0, "sgd">,
  I32EnumAttrCase<"Momentum", 1, "momentum">,
  I32EnumAttrCase<"Adam", 2, "adam">,
  I32EnumAttrCase<"AdamW", 3, "adamw">]>;

def Shardc_ScheduleKind : Shardc_Enum<"ScheduleKind", "learning-rate schedule", [
  I32EnumAttrCase<"Constant", 0, "constant">,
  I32EnumAttrCase<"LinearWarmup", 1, "linear_warmup">,
  I32EnumAttrCase<"Cosine", 2, "cosine">]>;

def Shardc_UnevenPolicy : Shardc_Enum<"UnevenPolicy", "policy for dimensions that do not divide", [
  I32EnumAttrCase<"Pad", 0, "pad">,
  I32EnumAttrCase<"Error", 1, "error">]>;

def Shardc_ReductionKind : Shardc_Enum<"ReductionKind", "combination of values", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Max", 1, "max">]>;
def Shardc_ReductionKindAttr : EnumAttr<Shardc_Dialect, Shardc_ReductionKind, "reduction"> {
  let assemblyFormat = "$value";
}

def Shardc_CompareKind : Shardc_Enum<"CompareKind", "comparison", [
  I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">,
  I32EnumAttrCase<"LT", 2, "lt">, I32EnumAttrCase<"LE", 3, "le">,
  I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]>;
def Shardc_CompareKindAttr : EnumAttr<Shardc_Dialect, Shardc_CompareKind, "compare"> {
  let assemblyFormat = "$value";
}

def Shardc_Part : Shardc_Enum<"Part", "part of the training step", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Update", 2, "update">]>;
def Shardc_PartAttr : EnumAttr<Shardc_Dialect, Shardc_Part, "part"> {
  let assemblyFormat = "`<` $value `>`";
}

class Shardc_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Shardc_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Shardc_MeshAxisAttr : Shardc_Attr<"MeshAxis", "axis"> {
  let summary = "A named mesh axis and its size in devices";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
}

def Shardc_DimShardingAttr : Shardc_Attr<"DimSharding", "dim"> {
  let summary = "The sharding of one dimension";
  let description = [{
    `{"a", "b"}`: over axes a and b, a major. `{}`: closed and replicated.
    `{"a", ?}`, `{?}`: open, propagation may add axes on the minor side. A
    suffix `pN` gives a user priority; 0 is the strongest, and no suffix means 0.

    Strided sharding: inside a partitioned program an entry `"*2"` may stand
    among the axes. It is a gap, 2 parts that are not sharded, left by an axis
    that was gathered before a minor one. With `{"*2", "b"}` a device holds its
    shard over b of each half of the dimension. Annotations have no gaps.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes,
                        "bool":$isClosed, "std::optional<int64_t>":$priority);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The parts of the gap that `entry` stands for; 0 if it names an axis.
    static int64_t getGapSize(::mlir::StringAttr entry);
    /// The entry of a gap of `size` parts.
    static ::mlir::StringAttr getGap(int64_t size, ::mlir::MLIRContext *context);
  }];
}

def Shardc_ShardingAttr : Shardc_Attr<"Sharding", "sharding"> {
  let summary = "The sharding of a tensor over a mesh";
  let description = [{
    One dimension sharding per tensor dimension; axes over which the tensor must
    stay replicated; axes over which it is still a partial sum; and optionally
    the policy for a dimension that does not divide.

    ```mlir
    #shardc.sharding<@mesh, [{"data"}, {?} ]>
    #shardc.sharding<@mesh, [{"data", "model"}p1, {} ], replicated={"pod"}>
    #shardc.sharding<@mesh, [{}, {} ], unreduced={"model"}, uneven=error>
    ```

    A dimension of size s over n devices has shards of ceil(s/n) elements;
    trailing shards may be shorter or empty.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::shardc::DimShardingAttr">:$dims,
                        ArrayRefParameter<"::mlir::StringAttr">:$replicated,
                        ArrayRefParameter<"::mlir::StringAttr">:$unreduced,
                        "std::optional<::shardc::UnevenPolicy>":$uneven);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The sharding with every dimension closed and replicated.
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh, int64_t rank);
    /// A closed sharding from axis names per dimension.
    static ShardingAttr getClosed(::mlir::FlatSymbolRefAttr mesh,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::StringAttr>> dims,
        ::llvm::ArrayRef<::mlir::StringAttr> unreduced = {});
    int64_t getRank() const { return getDims().size(); }
    /// Axes of dimension `dim`, major to minor.
    ::llvm::ArrayRef<::mlir::StringAttr> getAxes(int64_t dim) const {
      return getDims()[dim].getAxes();
    }
  }];
}

def Shardc_StrategyAttr : Shardc_Attr<"Strategy", "strategy"> {
  let summary = "The sharding strategy of an op: mesh axes for each factor of its rule";
  let description = [{
    The decision of `propagate`: one list of axes (major to minor) per factor,
    and the axes over which the op computes on partial sums. The op reads its
    operands and produces its results in the shardings that follow from its
    rule. A multilinear op has its first operand partial over the axes in
    `unreduced`, and its second one over those in `unreduced_rhs`. An entry
    `"*2"` is a gap, see `#shardc.dim`.

    `#shardc.strategy<[{"data"}, {}, {"model"} ]>`
    `#shardc.strategy<[{}, {} ], unreduced={"data"}>`
    `#shardc.strategy<[{}, {} ], unreduced_rhs={"data"}>`
  }];
  let parameters = (ins ArrayRefParameter<"::shardc::DimShardingAttr">:$factors,
                        ArrayRefParameter<"::mlir::StringAttr">:$unreduced,
                        ArrayRefParameter<"::mlir::StringAttr">:$unreducedRhs);
  let hasCustomAssemblyFormat = 1;
}

def Shardc_InitAttr : Shardc_Attr<"Init", "init"> {
  let summary = "The initial value of a parameter or state";
  let description = [{
    `he_normal`, `he_uniform`, `lecun_normal`, `lecun_uniform`, `glorot_normal`,
    `glorot_uniform` (fans from the shape `[in, out]`; the normal ones are
    truncated at two standard deviations, as in JAX), `normal(stddev)`,
    `uniform(low, high)`, `constant(value)`.
  }];
  let parameters = (ins "::shardc::InitKind":$kind,
                        ArrayRefParameter<"::mlir::FloatAttr">:$args);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Shardc_ParameterAttr : Shardc_Attr<"Parameter", "parameter"> {
  let summary = "Role of an argument: a trained parameter";
  let parameters = (ins "::mlir::StringAttr":$name, "::shardc::InitAttr":$init);
  let hasCustomAssemblyFormat = 1; // #shardc.parameter<"w0", he_normal>
}

def Shardc_StateAttr : Shardc_Attr<"State", "state"> {
  let summary = "Role of an argument: optimizer state";
  let description = [{`#shardc.state<"w0.m", constant(0.0), of = "w0">`; the step counter has no `of`.}];
  let parameters = (ins "::mlir::StringAttr":$name, "::shardc::InitAttr":$init,
                        OptionalParameter<"::mlir::StringAttr">:$parameter);
  let hasCustomAssemblyFormat = 1;
}

def Shardc_CopyAttr : Shardc_Attr<"Copy", "copy"> {
  let summary = "Role of an argument: a shadow weight";
  let description = [{
    `#shardc.copy<"w0.bf16", of = "w0">`: a copy of a parameter, rounded to a
    narrower type, that `shardc-round-in-update` keeps beside it, with the same
    shape and sharding. Programs that write the parameter write the copy.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::StringAttr":$parameter);
  let assemblyFormat = "`<` $name `,` `of` `=` $parameter `>`";
}

def Shardc_InputAttr : Shardc_Attr<"Input", "input"> {
  let summary = "Role of an argument: fed every step";
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

def Shardc_LabelAttr : Shardc_Attr<"Label", "label"> {
  let summary = "Role of an argument: fed every step, compared with by the loss";
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

def Shardc_OptimizerAttr : Shardc_Attr<"Optimizer", "optimizer"> {
  let summary = "An optimizer and its hyper-parameters";
  let description = [{
    `#shardc.optimizer<adam, learning_rate = 1.0e-3, b1 = 0.9, b2 = 0.999, eps = 1.0e-8>`.
    Names and defaults are optax's; `learning_rate` is always required.
    sgd: `learning_rate`; momentum adds `momentum`; adam adds `b1`, `b2`, `eps`;
    adamw adds `weight_decay`. `weight_decay` on sgd, momentum and adam adds
    that multiple of the parameter to its gradient (L2).
  }];
  let parameters = (ins "::shardc::OptimizerKind":$kind,
                        "::mlir::DictionaryAttr":$hyperparameters);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The hyper-parameter `name`, or its optax default.
    double get(::llvm::StringRef name) const;
  }];
}

def Shardc_ScheduleAttr : Shardc_Attr<"Schedule", "schedule"> {
  let summary = "A learning-rate schedule: a factor of the learning rate by step";
  let description = [{
    `#shardc.schedule<constant>`; `#shardc.schedule<linear_warmup, warmup_steps = 100>`;
    `#shardc.schedule<cosine, warmup_steps = 100, decay_steps = 1000, alpha = 0.0>`
    (optax's warmup_cosine_decay_schedule with init value 0 and end value alpha·peak;
    `decay_steps` counts the warm-up).
  }];
  let parameters = (ins "::shardc::ScheduleKind":$kind,
                        "::mlir::DictionaryAttr":$arguments);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The argument `name`, or its default (0).
    double get(::llvm::StringRef name) const;
  }];
}

def Shardc_TrainingAttr : Shardc_Attr<"Training", "training"> {
  let summary = "The training description: loss, optimizer, schedule";
  let description = [{
    `#shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>, clip_norm = 1.0, schedule = <constant>, microbatches = 4>`;
    `clip_norm`, `schedule` and `microbatches` (1) may be absent. A step splits
    the batch into that many microbatches, runs them one after the other and
    adds up their gradients; its results are those of the whole batch.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$loss,
                        "::shardc::OptimizerAttr":$optimizer,
                        OptionalParameter<"::mlir::FloatAttr">:$clipNorm,
                        OptionalParameter<"::shardc::ScheduleAttr">:$schedule,
                        DefaultValuedParameter<"int64_t", "1">:$microbatches);
  let hasCustomAssemblyFormat = 1;
}

def Shardc_PipelineAttr : Shardc_Attr<"Pipeline", "pipeline"> {
  let summary = "A pipeline of stages: its mesh axis and schedule";
  let description = [{
    `#shardc.pipeline<axis = "stage", schedule = "1f1b", chunks = 1>`: the ops of
    the loss are divided into stages, which `shardc.stage` numbers from 0. Each
    coordinate of `axis` is a rank, which has `chunks` stages (1 if absent, at most
    1048576); stage
    s is on rank s mod the size of the axis. `schedule` is `gpipe`, `1f1b`,
    `interleaved` or `zero-bubble`, or the text of a schedule in PyTorch's notation
    (docs/Pipelines.md). No sharding names the axis.
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "::mlir::StringAttr":$schedule,
                        DefaultValuedParameter<"int64_t", "1">:$chunks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif
