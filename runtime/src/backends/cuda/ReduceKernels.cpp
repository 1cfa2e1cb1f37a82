//===- ReduceKernels.cpp - Kernels that reduce between devices ------------===//

#include "backends/cuda/ReduceKernels.h"

#include "absl/strings/str_replace.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

/// An element type as the kernels know it.
struct CudaElementType {
  DType dtype;
  const char *name;
  const char *type;   ///< Of values in registers.
  const char *memory; ///< Of values in memory; bf16 is converted.
  const char *shift;  ///< log2 of an element's bytes.
  const char *sum;    ///< Instruction; null: cannot be summed.
};

constexpr CudaElementType types[] = {
    {DType::F32, "f32", "f32", "f32", "2", "add.rn.f32"},
    {DType::BF16, "bf16", "f32", "b16", "1", "add.rn.f32"},
    {DType::F64, "f64", "f64", "f64", "3", "add.rn.f64"},
    {DType::I32, "i32", "s32", "s32", "2", "add.s32"},
    {DType::I64, "i64", "s64", "s64", "3", "add.s64"},
    {DType::Bool, "bool", "u16", "u8", "0", nullptr},
};

constexpr unsigned threadsPerBlock = 256;
/// Blocks stride over the rest.
constexpr uint64_t maxBlocks = 2048;

// Thread i takes element i and every so many further. The address of a
// parameter may be moved into a register (PTX ISA, "Kernel function
// parameters"). The operands are reduced in the order of their tree
// (base/ReductionTree.h): before operand k of them, `%node` l holds the
// value of a node of 2^l leaves if bit l of k is set.
constexpr const char *kernelText = R"(
.visible .entry $name(
  .param .u64 width, .param .u64 rows, .param .u64 inPitch,
  .param .u64 outPitch, .param .u32 operands, .param .u32 results,
  .param .align 8 .b8 addresses[$tableBytes])
{
  .reg .pred %done, %isOneRow, %isGreater, %isNan, %hasMore, %isFree;
  .reg .b16 %half, %zero;
  .reg .b32 %block, %blocks, %threads, %thread, %operands, %all, %before, %next;
  .reg .b32 %bits;
  .reg .b64 %i, %stride, %count, %width, %rows, %row, %column, %table, %entry;
  .reg .b64 %inPitch, %outPitch, %inOffset, %outOffset, %address, %wide;
  .reg .$type %a, %b$nodes;

  ld.param.u64 %width, [width];
  ld.param.u64 %rows, [rows];
  ld.param.u64 %inPitch, [inPitch];
  ld.param.u64 %outPitch, [outPitch];
  ld.param.u32 %operands, [operands];
  ld.param.u32 %all, [results];
  add.u32 %all, %all, %operands;
  mov.b64 %table, addresses;
  mul.lo.u64 %count, %width, %rows;
  setp.eq.u64 %isOneRow, %rows, 1;
  mov.u16 %zero, 0;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %i, %i, %wide;
  mul.wide.u32 %stride, %blocks, %threads;

nextElement:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  mov.b64 %inOffset, %i;
  mov.b64 %outOffset, %i;
  @%isOneRow bra placed;
  div.u64 %row, %i, %width;
  mul.lo.u64 %column, %row, %width;
  sub.u64 %column, %i, %column;
  mad.lo.u64 %inOffset, %row, %inPitch, %column;
  mad.lo.u64 %outOffset, %row, %outPitch, %column;
placed:
  shl.b64 %inOffset, %inOffset, $shift;
  shl.b64 %outOffset, %outOffset, $shift;
  mov.u32 %next, 0;
  mov.b64 %entry, %table;
nextOperand:
  ld.param.u64 %address, [%entry];
  add.u64 %address, %address, %inOffset;$load
  mov.u32 %before, %next;
  add.u32 %next, %next, 1;
  add.u64 %entry, %entry, 8;
  setp.lt.u32 %hasMore, %next, %operands;$combineNodes
nextResult:
  ld.param.u64 %address, [%entry];
  add.u64 %address, %address, %outOffset;$store
  add.u32 %next, %next, 1;
  add.u64 %entry, %entry, 8;
  setp.lt.u32 %done, %next, %all;
  @%done bra nextResult;
  add.u64 %i, %i, %stride;
  bra nextElement;
end:
  ret;
}
)";

} // namespace

static std::string kernelName(const CudaElementType &type,
                              Reduction reduction) {
  return absl::StrCat("shardc_reduce_",
                      reduction == Reduction::Sum ? "sum_" : "max_", type.name);
}

/// log2 of the leaves of the largest left child.
constexpr int maxLevel = 7;
static_assert(1 << (maxLevel + 1) >= maxReducePointers);

/// The instructions that make %a of %a and %b.
static std::string combineSource(const CudaElementType &type,
                                 Reduction reduction) {
  if (reduction == Reduction::Sum)
    return absl::StrCat("\n  ", type.sum, " %a, %a, %b;");
  if (!isFloat(type.dtype))
    return absl::StrCat("\n  max.", type.type, " %a, %a, %b;");
  // A NaN on either side stays.
  return absl::StrReplaceAll("\n  setp.gt.$type %isGreater, %b, %a;"
                             "\n  setp.nan.$type %isNan, %b, %b;"
                             "\n  or.pred %isGreater, %isGreater, %isNan;"
                             "\n  @%isGreater mov.$type %a, %b;",
                             {{"$type", type.type}});
}

/// The instructions that load %a from %address. bf16 is the upper half of an
/// f32.
static std::string loadSource(const CudaElementType &type) {
  if (type.dtype == DType::BF16)
    return "\n  ld.global.b16 %half, [%address];"
           "\n  mov.b32 %bits, {%zero, %half};"
           "\n  mov.b32 %a, %bits;";
  return absl::StrCat("\n  ld.global.", type.memory, " %a, [%address];");
}

static std::string storeSource(const CudaElementType &type) {
  if (type.dtype == DType::BF16)
    return "\n  cvt.rn.bf16.f32 %half, %a;\n  st.global.b16 [%address], %half;";
  return absl::StrCat("\n  st.global.", type.memory, " [%address], %a;");
}

/// The registers of nodes.
static std::string nodeRegisters() {
  std::string names;
  for (int level = 0; level <= maxLevel; ++level)
    absl::StrAppend(&names, ", %node", level);
  return names;
}

/// The instructions that combine %a, the value of operand %before, with the
/// nodes that it completes, and behind the last operand with all others. If
/// there are more operands they keep the value and go on with the next.
static std::string combineNodes(const CudaElementType &type,
                                Reduction reduction) {
  std::string text;
  for (int level = 0; level <= maxLevel; ++level)
    text += absl::StrReplaceAll("\n  and.b32 %bits, %before, $bit;"
                                "\n  setp.eq.u32 %isFree, %bits, 0;"
                                "\n  @%isFree bra keep$level;"
                                "\n  mov.$type %b, %a;"
                                "\n  mov.$type %a, %node$level;$combine"
                                "\n  bra kept$level;"
                                "\nkeep$level:"
                                "\n  mov.$type %node$level, %a;"
                                "\n  @%hasMore bra nextOperand;"
                                "\nkept$level:",
                                {{"$bit", absl::StrCat(1 << level)},
                                 {"$level", absl::StrCat(level)},
                                 {"$type", type.type},
                                 {"$combine", combineSource(type, reduction)}});
  return text;
}

/// Numbers of the kernels in the module: every type, summed and maximised over.
template <typename Visit>
static void forEachKernel(Visit visit) {
  for (const CudaElementType &type : types)
    for (Reduction reduction : {Reduction::Sum, Reduction::Max})
      if (reduction == Reduction::Max || type.sum)
        visit(type, reduction);
}

std::string shardc::rt::cuda::reducePtx() {
  std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n";
  std::string tableBytes = absl::StrCat(maxReducePointers * 8);
  forEachKernel([&](const CudaElementType &type, Reduction reduction) {
    text += absl::StrReplaceAll(
        kernelText, {{"$name", kernelName(type, reduction)},
                     {"$tableBytes", tableBytes},
                     {"$type", type.type},
                     {"$shift", type.shift},
                     {"$nodes", nodeRegisters()},
                     {"$load", loadSource(type)},
                     {"$combineNodes", combineNodes(type, reduction)},
                     {"$store", storeSource(type)}});
  });
  return text;
}

absl::StatusOr<ReduceKernels>
ReduceKernels::load(const cuda::Context &context) {
  std::vector<std::string> names;
  forEachKernel([&](const CudaElementType &type, Reduction reduction) {
    names.push_back(kernelName(type, reduction));
  });
  absl::StatusOr<Module> module =
      Module::load(context, {reducePtx()}, names, "the kernels of collectives");
  if (!module.ok())
    return module.status();
  ReduceKernels kernels;
  kernels.module = *std::move(module);
  return kernels;
}

absl::Status ReduceKernels::issue(DType dtype, Reduction reduction,
                                  const ReduceParameters &parameters,
                                  const Stream &stream) const {
  int number = -1, count = 0;
  forEachKernel([&](const CudaElementType &type, Reduction of) {
    if (type.dtype == dtype && of == reduction)
      number = count;
    ++count;
  });
  if (number < 0)
    return absl::InvalidArgumentError(
        absl::StrCat(toString(dtype), " cannot be summed"));
  uint64_t elements = parameters.width * parameters.rows;
  if (elements == 0)
    return absl::OkStatus();
  ReduceParameters own = parameters;
  void *pointers[] = {&own.width,          &own.rows,     &own.inPitch,
                      &own.outPitch,       &own.operands, &own.results,
                      own.addresses.data()};
  uint64_t blocks =
      std::min(maxBlocks, (elements + threadsPerBlock - 1) / threadsPerBlock);
  const cuda::Context &context = stream.context();
  return context.check(
      context.driver().launchKernel(module.kernel(number), blocks, 1, 1,
                                    threadsPerBlock, 1, 1, 0, stream.get(),
                                    pointers, nullptr),
      absl::StrCat("launching a reduction of ", toString(dtype)));
}
