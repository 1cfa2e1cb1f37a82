//===- KernelPasses.td - Passes from kernels to memory ------------------===//
//
// The passes of the phases that form the kernels of a local program, schedule
// them and plan their memory. Included by Passes.td, which has their base class.

#ifndef SHARDC_DIALECT_SHARDC_TRANSFORMS_KERNELPASSES_TD
#define SHARDC_DIALECT_SHARDC_TRANSFORMS_KERNELPASSES_TD

//===----------------------------------------------------------------------===//
// kernels
//===----------------------------------------------------------------------===//

def RecomputePass : Shardc_Pass<"recompute"> {
  let summary = "Compute values of the forward pass again in the backward pass";
  let description = [{
    Input: the output of `collectives`. Output: the same where the backward pass
    computes again what `shardc.recompute` on the module does not keep: the
    forward ops whose results it needs have clones in front of their first user
    there, which are part of the backward pass and marked `shardc.recomputed`.
    Communication is never done again. docs/Recomputation.md describes the
    policies.

    ```mlir
    %h = shardc.dot_general %x, %w contracting = [1] x [0] {shardc.part = #shardc.part<forward>} : ...
    %a = shardc.tanh %h {shardc.part = #shardc.part<forward>} : ...
    ...
    %dv = shardc.dot_general %a, %g contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : ...
    ```

    becomes, if `%h` is kept and `%a` is not,

    ```mlir
    %b = shardc.tanh %h {shardc.part = #shardc.part<backward>, shardc.recomputed} : ...
    %dv = shardc.dot_general %b, %g contracting = [0] x [0] {shardc.part = #shardc.part<backward>} : ...
    ```

    The policy `auto` takes the choice of least estimated time that fits a limit
    on memory. The driver gives it the limit, and the means to measure a choice.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"cpu\"",
           "Machine of the time estimates: a name or a JSON file">,
    Option<"choices", "choices", "std::string", "\"\"",
           "In place of the policy: for each layer k, keep its values, r, repeat "
           "them from its input, or j, with those of the layer before (empty: "
           "the policy's)">];
}

def MarkTasksPass : Shardc_Pass<"mark-tasks"> {
  let summary = "Give the ops of a pipeline's stages their tasks";
  let description = [{
    Input: the output of `collectives`. Without `shardc.pipeline` it stays as it is.
    Output: the ops of the loop over microbatches have a `shardc.task`: "F" in the
    forward pass; in the backward pass "I" if another stage needs their results, else
    "W". Ops of different letters never become one kernel or GEMM, whatever the
    schedule: so all schedules have the same kernels, and the same bits.
  }];
}

def ExpandAccumulationsPass : Shardc_Pass<"expand-accumulations"> {
  let summary = "Make the additions of loops over microbatches explicit";
  let description = [{
    Input: local programs. Output: the same, where the body of every
    `shardc.accumulate` takes the sums of the runs before as arguments, adds to
    them and yields the new ones.
  }];
}

def RoundInUpdatePass : Shardc_Pass<"round-in-update"> {
  let summary = "Keep shadow weights: let the update write rounded parameters, too";
  let description = [{
    Input: local programs. Output: the same with shadow weights. The program that
    returns the new value of a parameter no longer converts the old value to a
    narrower floating-point type. The converted value is an argument of its own,
    a copy, which the program returns as well: the update rounds the new value
    that it has at hand. Other programs read the copy, too. A new program,
    `@round_parameters`, makes all copies from the parameters, for use after the
    parameters were written from outside.

    ```mlir
    func.func @train_step(%w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", he_normal>})
        -> (tensor<8xf32> {shardc.result = "w"}, tensor<8xbf16> {shardc.result = "y"}) {
      %0 = shardc.convert %w : tensor<8xf32> -> tensor<8xbf16>
      %1 = shardc.exp %0 : tensor<8xbf16>
      %2 = shardc.neg %w {shardc.part = #shardc.part<update>} : tensor<8xf32>
      return %2, %1 : tensor<8xf32>, tensor<8xbf16>
    }
    ```

    becomes

    ```mlir
    func.func @train_step(%w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
                          %c: tensor<8xbf16> {shardc.role = #shardc.copy<"w.bf16", of = "w">})
        -> (tensor<8xf32> {shardc.result = "w"}, tensor<8xbf16> {shardc.result = "y"},
            tensor<8xbf16> {shardc.result = "w.bf16"}) {
      %1 = shardc.exp %c : tensor<8xbf16>
      %2 = shardc.neg %w {shardc.part = #shardc.part<update>} : tensor<8xf32>
      %3 = shardc.convert %2 {shardc.part = #shardc.part<update>} : tensor<8xf32> -> tensor<8xbf16>
      return %2, %1, %3 : tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>
    }
    func.func @round_parameters(%w: tensor<8xf32> {shardc.role = #shardc.parameter<"w", he_normal>},
                                %c: tensor<8xbf16> {shardc.role = #shardc.copy<"w.bf16", of = "w">})
        -> (tensor<8xbf16> {shardc.result = "w.bf16"}) {
      %0 = shardc.convert %w {shardc.part = #shardc.part<update>} : tensor<8xf32> -> tensor<8xbf16>
      return %0 : tensor<8xbf16>
    }
    ```
  }];
}

def SplitReductionsPass : Shardc_Pass<"split-reductions"> {
  let summary = "Split large reductions in two for GPUs, and mark sums of columns";
  let description = [{
    Input: local programs. Output: the same, where a reduction of a large tensor
    to one element is a tree of two levels: it reduces the rows first, and then
    their results. This is work for all of a GPU instead of one block of threads.
    For GPUs alone.

    ```mlir
    %0 = shardc.reduce sum %x dims = [0, 1] : tensor<512x256xf32> -> tensor<f32>
    ```

    becomes

    ```mlir
    %0 = shardc.reduce sum %x dims = [1] : tensor<512x256xf32> -> tensor<512xf32>
    %1 = shardc.reduce sum %0 dims = [0] : tensor<512xf32> -> tensor<f32>
    ```

    Tensors of any size are treated so if a kernel that reduces rows has their
    elements at hand, such as the terms of a cross-entropy: a softmax, the losses
    of its rows and its gradient then fuse into one kernel.

    Sums of the columns of a matrix are marked `shardc.by_product`: a library
    GEMM with that matrix may compute them as well (`shardc-form-gemms`).
  }];
}

def FormGemmsPass : Shardc_Pass<"form-gemms"> {
  let summary = "Form library GEMMs with their epilogues";
  let description = [{
    Input: local programs. Output: dot_generals above the size threshold are
    `shardc.gemm`, with the epilogue that the library can fuse: a bias, a relu
    or the addition to a loop's sum. A sum of columns that is marked
    `shardc.by_product` becomes a result of the GEMM if the GEMM contracts the
    rows of that operand. No marks are left.

    ```mlir
    %dw = shardc.dot_general %x, %g contracting = [0] x [0] : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>
    %db = shardc.reduce sum %g dims = [0] {shardc.by_product} : tensor<256x384xf32> -> tensor<384xf32>
    ```

    becomes

    ```mlir
    %dw, %db = shardc.gemm %x, %g transpose_lhs sums_rhs : tensor<256x512xf32>, tensor<256x384xf32> -> tensor<512x384xf32>, tensor<384xf32>
    ```
  }];
  let options = [
    Option<"isForCPU", "for-cpu", "bool", /*default=*/"false",
           "Leave to generated code what it computes faster on CPUs: rows "
           "with a right factor of at most 192 rows and columns (32 if not "
           "all is f32), no more than there are rows; and of f32 sums that "
           "shardc-split-sums cuts, over twice as many rows as the at most "
           "128 of the result; and up to four million multiply-adds where no "
           "side is below 64 and a matrix has at most 16384 elements">
  ];
}

def SplitSumsPass : Shardc_Pass<"split-sums"> {
  let summary = "Cut small GEMMs over many rows into blocks of rows, for CPUs";
  let description = [{
    Input: the output of `shardc-fuse-kernels`. Output: the same, where a kernel
    of a GEMM that adds up over at least four blocks of 64 to 256 rows, and whose
    result is small beside them, is two: the products of blocks of rows, and
    their sum with what follows. Small is a quarter of the rows' elements in all
    blocks; or as many as these, up to 256 KiB. Blocks of rows are divided among
    workers as the kernels are that compute the factors, whose rows are in a
    worker's caches.
    Up to eight sums whose results are read later, with blocks of 256 KiB in all,
    are one kernel, so that memory grows by no more than those. Rows without a
    divisor of that size are not cut. For CPUs alone.

    ```mlir
    %0 = shardc.kernel(%x, %g, %w) : (tensor<1024x10xf32>, tensor<1024x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32> {
    ^bb0(%a: tensor<1024x10xf32>, %b: tensor<1024x32xf32>, %c: tensor<10x32xf32>):
      %1 = shardc.dot_general %a, %b contracting = [0] x [0] : tensor<1024x10xf32>, tensor<1024x32xf32> -> tensor<10x32xf32>
      %2 = shardc.sub %c, %1 : tensor<10x32xf32>
      shardc.yield %2 : tensor<10x32xf32>
    }
    ```

    becomes

    ```mlir
    %0 = shardc.kernel(%x, %g) : (tensor<1024x10xf32>, tensor<1024x32xf32>) -> tensor<8x10x32xf32> {
    ^bb0(%a: tensor<1024x10xf32>, %b: tensor<1024x32xf32>):
      %2 = shardc.reshape %a : tensor<1024x10xf32> -> tensor<8x128x10xf32>
      %3 = shardc.reshape %b : tensor<1024x32xf32> -> tensor<8x128x32xf32>
      %4 = shardc.dot_general %2, %3 batching = [0] x [0] contracting = [1] x [1] : tensor<8x128x10xf32>, tensor<8x128x32xf32> -> tensor<8x10x32xf32>
      shardc.yield %4 : tensor<8x10x32xf32>
    }
    %1 = shardc.kernel(%0, %w) : (tensor<8x10x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32> {
    ^bb0(%a: tensor<8x10x32xf32>, %c: tensor<10x32xf32>):
      %2 = shardc.reduce sum %a dims = [0] : tensor<8x10x32xf32> -> tensor<10x32xf32>
      %3 = shardc.sub %c, %2 : tensor<10x32xf32>
      shardc.yield %3 : tensor<10x32xf32>
    }
    ```
  }];
}

def FuseKernelsPass : Shardc_Pass<"fuse-kernels"> {
  let summary = "Outline compute into fused kernels";
  let description = [{
    Input: the output of `shardc-form-gemms`. Output: every core op is inside a
    `shardc.kernel`.
  }];
  let options = [Option<"fewLaunches", "few-launches", "bool", "false",
      "For targets on which a kernel is a launch: put all updates that depend on "
      "the same op, of any size, into one kernel, small nests of any kind that do "
      "not depend on each other, and rows that are stored with their sum over "
      "few columns">];
}

//===----------------------------------------------------------------------===//
// schedule
//===----------------------------------------------------------------------===//

def SchedulePass : Shardc_Pass<"schedule"> {
  let summary = "Fix the order of execution";
  let description = [{
    Input: the output of `shardc-fuse-kernels`. Output: the same ops in the
    order in which every device executes them. The all-gather of a weight for one
    pass stands right before its first user.
  }];
}

def SchedulePipelinePass : Shardc_Pass<"schedule-pipeline"> {
  let summary = "Make a program for each rank of a pipeline";
  let description = [{
    Input: the output of `shardc-schedule`. Without `shardc.pipeline` it stays as it
    is. Output: each program is one function for each rank, such as `@train_step.1`.
    The loop over microbatches is the list of the rank's tasks, in the order of the
    schedule; ops have the name of their task. Transfers are sends and receives,
    started and waited for. A function has the arguments and results of its rank.
    An all-reduce over the axis of the pipeline is in the functions of all ranks, with
    zeros for the summands of other ranks.

    ```mlir
    %s = shardc.accumulate 2 of (%x) : (tensor<8x4xf32>) -> tensor<4x4xf32> { ... }
    ```

    becomes on rank 0 of two

    ```mlir
    func.func @train_step.0(...) attributes {shardc.pipeline_rank = 0 : i64, shardc.program = "train_step",
                                             shardc.tasks = "0F0,0F1,0B0,0B1"} {
      %x0 = shardc.rows %x 0 of 2 : tensor<8x4xf32> -> tensor<4x4xf32>
      %h0 = shardc.kernel(%x0, %w) {shardc.task = "0F0"} ...
      %m0 = shardc.collective_start(%h0) : tensor<4x4xf32> { shardc.send ... to 1 message 0 ... }
      ...
      %z = shardc.zeros {shardc.task = "0B0"} : tensor<4x4xf32>
      %d0 = shardc.gemm %x0, %g0 plus %z transpose_lhs {shardc.task = "0B0"} ...
      %d1 = shardc.gemm %x1, %g1 plus %d0 transpose_lhs {shardc.task = "0B1"} ...
    ```
  }];
  let options = [Option<"machine", "machine", "std::string", "\"cpu\"",
      "Machine of the time estimates: a name or a JSON file">];
}

def OverlapCollectivesPass : Shardc_Pass<"overlap-collectives"> {
  let summary = "Start collectives early and wait for them late";
  let description = [{
    Input: the output of `shardc-schedule`. Output: every collective is a
    `shardc.collective_start` and a `shardc.collective_wait`, between which it is
    in flight. A start stands where its operands are complete, a wait before the
    first op that needs a result. Ops that need no collective in flight go before
    those that do. Memory bounds this: no function's planned peak is above that
    of the input. A rematerialised all-gather of the backward pass does not start
    before that pass.

    ```mlir
    %g = shardc.gemm %x, %dz ...
    %s = shardc.all_reduce sum %g over @mesh["data"] ...
    %w1 = shardc.kernel(%w, %s) ...
    %h = shardc.gemm %y, %dz ...
    ```

    becomes

    ```mlir
    %g = shardc.gemm %x, %dz ...
    %handle = shardc.collective_start(%g) ... { shardc.all_reduce ... }
    %h = shardc.gemm %y, %dz ...
    %s = shardc.collective_wait %handle ...
    %w1 = shardc.kernel(%w, %s) ...
    ```
  }];
}

//===----------------------------------------------------------------------===//
// memory
//===----------------------------------------------------------------------===//

def PlanMemoryPass : Shardc_Pass<"plan-memory"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Input: the output of `shardc-schedule`. Output: `shardc.offsets` on every
    op, `shardc.offset` on every argument, `shardc.peak_bytes` on functions and
    `shardc.arena_bytes` on the module. New parameters, shadow weights and states
    take the places of their arguments. The operands of a reducing collective are
    adjacent, and so are its results, unless other places are fixed for them.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
      "Bytes that a device has; a larger arena is an error (0: no limit)">];
}

#endif // SHARDC_DIALECT_SHARDC_TRANSFORMS_KERNELPASSES_TD
