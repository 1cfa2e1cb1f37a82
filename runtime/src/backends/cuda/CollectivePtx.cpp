//===- CollectivePtx.cpp - Kernels of collectives, as PTX -----------------===//

#include "backends/cuda/CollectivePtx.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

namespace {

/// An element type as the kernels know it. Registers have no type, but are of
/// 32 or 64 bits; a bool is 0 or 1, so that a maximum of four of them is that
/// of their bits.
struct CudaElementType {
  DType dtype;
  const char *name;
  const char *memory;     ///< Of an element.
  const char *bits;       ///< Of a register.
  const char *arithmetic; ///< The type that is compared.
  const char *sum;        ///< Instruction; null: cannot be summed.
};

constexpr CudaElementType types[] = {
    {DType::F32, "f32", "b32", "32", "f32", "add.rn.f32"},
    {DType::BF16, "bf16", "b16", "32", "f32", "add.rn.f32"},
    {DType::F64, "f64", "b64", "64", "f64", "add.rn.f64"},
    {DType::I32, "i32", "b32", "32", "s32", "add.s32"},
    {DType::I64, "i64", "b64", "64", "s64", "add.s64"},
    {DType::Bool, "bool", "b8", "32", "b32", nullptr},
};

/// How a thread reads and writes an operand or result.
struct Access {
  const char *name;   ///< Of labels.
  std::string memory; ///< "b32", "v4.b32".
  int registers;      ///< That are loaded.
  int lanes;          ///< Registers that are reduced.
  std::string shift;  ///< log2 of the bytes.
};

/// Operands that are loaded before the first of them is reduced; a power of
/// two, so that they are a node of the tree.
constexpr int chunk = 8;
/// Above a chunk: log2 of the chunks of the largest left child.
constexpr int maxLevel = 4;
static_assert(chunk << (maxLevel + 1) >= maxReduceOperands);
/// Units of a copy that a thread loads before it stores the first.
constexpr int copiesInFlight = 4;

// Thread i of a box begins at unit i. It is below 2^32, so that dividing it by
// a width that is not gives 0.
constexpr const char *startText = R"(
.visible .entry $name(
  .param .u64 entries, .param .u64 blockEntries,
  .param .u32 operands, .param .u32 results)
{
  .reg .pred %isThis, %wraps, %isMore;
  .reg .b32 %block, %thread, %threads, %entryBytes, %first, %short;
  .reg .b32 %operands, %results, %left, %shift;
  .reg .b64 %entry, %wide, %width, %height, %inPitch, %outPitch;
  .reg .b64 %rowStep, %columnStep, %row, %column, %list, %address;
$registers
  ld.param.u64 %entry, [entries];
  ld.param.u64 %list, [blockEntries];
  ld.param.u32 %operands, [operands];
  ld.param.u32 %results, [results];
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mul.wide.u32 %wide, %block, 4;
  add.u64 %list, %list, %wide;
  ld.global.u32 %first, [%list];
  add.u32 %entryBytes, %operands, %results;
  mad.lo.u32 %entryBytes, %entryBytes, 8, 56;
  mul.wide.u32 %wide, %first, %entryBytes;
  add.u64 %entry, %entry, %wide;
  ld.global.u64 %width, [%entry];
  ld.global.u64 %height, [%entry+8];
  ld.global.u64 %inPitch, [%entry+16];
  ld.global.u64 %outPitch, [%entry+24];
  ld.global.u64 %rowStep, [%entry+32];
  ld.global.u64 %columnStep, [%entry+40];
  ld.global.u32 %first, [%entry+48];
  ld.global.u32 %shift, [%entry+52];
  sub.u32 %block, %block, %first;
  mad.lo.u32 %thread, %block, %threads, %thread;
  min.u64 %wide, %width, 4294967295;
  cvt.u32.u64 %short, %wide;
  div.u32 %short, %thread, %short;
  cvt.u64.u32 %row, %short;
  cvt.u64.u32 %column, %thread;
  mul.lo.u64 %wide, %row, %width;
  sub.u64 %column, %column, %wide;)";

/// To the next unit of a thread.
constexpr const char *stepText = R"(
  add.u64 %row, %row, %rowStep;
  add.u64 %column, %column, %columnStep;
  setp.ge.u64 %wraps, %column, %width;
  @%wraps sub.u64 %column, %column, %width;
  @%wraps add.u64 %row, %row, 1;)";

} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Registers of a unit of 2^`shift` bytes: "{%v0, %w0}" and so on.
static std::string copied(int shift, int i) {
  return shift == 4   ? absl::StrCat("{%v", i, ", %w", i, "}")
         : shift == 3 ? absl::StrCat("%v", i)
                      : absl::StrCat("%h", i);
}

/// The loop of a thread over units of 2^`shift` bytes.
static std::string copySource(int shift) {
  const char *types[] = {"b8", "b16", "b32", "b64", "v2.b64"};
  std::string text = absl::StrCat("\ncopy", shift, ":");
  for (int i = 0; i < copiesInFlight; ++i)
    text += absl::StrReplaceAll(
        "\n  setp.lt.u64 %isIn$i, %row, %height;"
        "\n  shl.b64 %wide, %column, $shift;"
        "\n  mad.lo.u64 %out$i, %row, %outPitch, %wide;"
        "\n  mad.lo.u64 %wide, %row, %inPitch, %wide;"
        "\n  add.u64 %wide, %wide, %source;"
        "\n  @%isIn$i ld.global.$type $value, [%wide];$step",
        {{"$i", absl::StrCat(i)},
         {"$shift", absl::StrCat(shift)},
         {"$type", types[shift]},
         {"$value", copied(shift, i)},
         {"$step", stepText}});
  absl::StrAppend(&text,
                  "\n  add.u64 %list, %entry, 64;"
                  "\n  mov.u32 %left, %results;"
                  "\nresult",
                  shift, ":\n  ld.global.u64 %address, [%list];");
  for (int i = 0; i < copiesInFlight; ++i)
    text += absl::StrReplaceAll("\n  add.u64 %wide, %address, %out$i;"
                                "\n  @%isIn$i st.global.$type [%wide], $value;",
                                {{"$i", absl::StrCat(i)},
                                 {"$type", types[shift]},
                                 {"$value", copied(shift, i)}});
  return text + absl::StrReplaceAll("\n  add.u64 %list, %list, 8;"
                                    "\n  sub.u32 %left, %left, 1;"
                                    "\n  setp.gt.u32 %isMore, %left, 0;"
                                    "\n  @%isMore bra result$shift;"
                                    "\n  setp.lt.u64 %isMore, %row, %height;"
                                    "\n  @%isMore bra copy$shift;"
                                    "\n  ret;",
                                    {{"$shift", absl::StrCat(shift)}});
}

static std::string copyPtx() {
  std::string text = absl::StrReplaceAll(
      startText, {{"$name", copyKernel},
                  {"$registers", absl::StrReplaceAll(
                                     "  .reg .pred %isIn<$n>;\n"
                                     "  .reg .b32 %h<$n>;\n"
                                     "  .reg .b64 %v<$n>, %w<$n>;\n"
                                     "  .reg .b64 %out<$n>, %source;\n",
                                     {{"$n", absl::StrCat(copiesInFlight)}})}});
  text += "\n  ld.global.u64 %source, [%entry+56];";
  for (int shift = 4; shift > 0; --shift)
    absl::StrAppend(&text, "\n  setp.eq.u32 %isThis, %shift, ", shift,
                    ";\n  @%isThis bra copy", shift, ";");
  for (int shift = 0; shift <= 4; ++shift)
    text += copySource(shift);
  return text + "\n}\n";
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Access elementAccess(const CudaElementType &type) {
  int shift = 0;
  while (1 << shift < byteSize(type.dtype))
    ++shift;
  return {"element", type.memory, 1, 1, absl::StrCat(shift)};
}

static Access vectorAccess(const CudaElementType &type) {
  int registers = absl::string_view(type.bits) == "64" ? 2 : 4;
  return {"vector", absl::StrCat("v", registers, ".b", type.bits), registers,
          type.dtype == DType::BF16 ? 2 * registers : registers, "4"};
}

/// Register `i` that operand `k` of a chunk is loaded to.
static std::string loaded(const Access &access, int k, int i) {
  return absl::StrCat("%in", k * access.registers + i);
}

/// Lane `i` of operand `k` of a chunk, or of a node in its place.
static std::string lane(const CudaElementType &type, const Access &access,
                        int k, int i) {
  return type.dtype == DType::BF16 ? absl::StrCat("%f", k * access.lanes + i)
                                   : loaded(access, k, i);
}

static std::string inMemory(const Access &access, int k) {
  std::string text = loaded(access, k, 0);
  for (int i = 1; i < access.registers; ++i)
    absl::StrAppend(&text, ", ", loaded(access, k, i));
  return access.registers > 1 ? absl::StrCat("{", text, "}") : text;
}

/// The instructions that make `a` of `a` and `b`, where `guard` (a predicate,
/// or empty) holds.
static std::string combine(const CudaElementType &type, Reduction reduction,
                           const std::string &a, const std::string &b,
                           const std::string &guard) {
  // A NaN on either side stays.
  const char *maximumOfFloats = "\n  setp.nan.$type %isNan, $b, $b;"
                                "\n  setp.gt.$type %isGreater, $b, $a;"
                                "\n  or.pred %isGreater, %isGreater, %isNan;"
                                "$and"
                                "\n  @%isGreater mov.b$bits $a, $b;";
  const char *text = reduction == Reduction::Sum ? "\n  $guard$sum $a, $a, $b;"
                     : type.dtype == DType::Bool
                         ? "\n  $guardor.b32 $a, $a, $b;"
                     : isFloat(type.dtype) ? maximumOfFloats
                                           : "\n  $guardmax.$type $a, $a, $b;";
  return absl::StrReplaceAll(
      text, {{"$guard", guard.empty() ? "" : absl::StrCat("@", guard, " ")},
             {"$and", guard.empty() ? ""
                                    : absl::StrCat("\n  and.pred %isGreater, "
                                                   "%isGreater, ",
                                                   guard, ";")},
             {"$sum", type.sum ? type.sum : ""},
             {"$type", type.arithmetic},
             {"$bits", type.bits},
             {"$a", a},
             {"$b", b}});
}

/// The instructions that make lanes of what operand `k` was loaded to. bf16 is
/// the upper half of an f32.
static std::string unpack(const CudaElementType &type, const Access &access,
                          int k) {
  std::string text;
  if (type.dtype == DType::BF16)
    for (int i = 0; i < access.lanes; ++i)
      absl::StrAppend(&text, i % 2 ? "\n  and.b32 " : "\n  shl.b32 ",
                      lane(type, access, k, i), ", ", loaded(access, k, i / 2),
                      i % 2 ? ", 4294901760;" : ", 16;");
  return text;
}

/// The inverse, of operand 0. The other half of a single element is not stored.
static std::string pack(const CudaElementType &type, const Access &access) {
  std::string text;
  if (type.dtype == DType::BF16)
    for (int i = 0; i < access.lanes; i += 2)
      absl::StrAppend(&text, "\n  cvt.rn.bf16x2.f32 ", loaded(access, 0, i / 2),
                      ", ",
                      lane(type, access, 0, std::min(i + 1, access.lanes - 1)),
                      ", ", lane(type, access, 0, i), ";");
  return text;
}

/// The instructions that reduce the operands [first, first + leaves) of a
/// chunk to the first, in the order of the tree (base/ReductionTree.h): a right
/// child is there if its first operand is.
static std::string reduceNode(const CudaElementType &type, Reduction reduction,
                              const Access &access, int first, int leaves) {
  if (leaves == 1)
    return unpack(type, access, first);
  const int right = first + leaves / 2;
  std::string text = reduceNode(type, reduction, access, first, leaves / 2) +
                     reduceNode(type, reduction, access, right, leaves / 2);
  for (int i = 0; i < access.lanes; ++i)
    text += combine(type, reduction, lane(type, access, first, i),
                    lane(type, access, right, i), absl::StrCat("%has", right));
  return text;
}

/// The instructions that combine chunk %chunk with the nodes that it completes,
/// and behind the last chunk with all others. If there are more chunks they
/// keep the value and go on with the next. Before chunk k, the node of level l
/// has 2^l chunks if bit l of k is set.
static std::string combineChunks(const CudaElementType &type,
                                 Reduction reduction, const Access &access) {
  std::string text;
  for (int level = 0; level <= maxLevel; ++level) {
    std::string combined, kept;
    for (int i = 0; i < access.lanes; ++i) {
      const std::string value = lane(type, access, 0, i);
      const std::string node = absl::StrCat("%node", level * access.lanes + i);
      absl::StrAppend(&combined, "\n  mov.b", type.bits, " %right, ", value,
                      ";\n  mov.b", type.bits, " ", value, ", ", node, ";",
                      combine(type, reduction, value, "%right", ""));
      absl::StrAppend(&kept, "\n  mov.b", type.bits, " ", node, ", ", value,
                      ";");
    }
    text += absl::StrReplaceAll("\n  and.b32 %bits, %chunk, $bit;"
                                "\n  setp.eq.u32 %isFree, %bits, 0;"
                                "\n  @%isFree bra $name_keep$level;$combined"
                                "\n  bra $name_kept$level;"
                                "\n$name_keep$level:$kept"
                                "\n  @%isMore bra $name_more;"
                                "\n$name_kept$level:",
                                {{"$bit", absl::StrCat(1 << level)},
                                 {"$name", access.name},
                                 {"$level", absl::StrCat(level)},
                                 {"$combined", combined},
                                 {"$kept", kept}});
  }
  return text;
}

/// The loop of a thread over its units.
static std::string reduceSource(const CudaElementType &type,
                                Reduction reduction, const Access &access) {
  std::string loads;
  for (int k = 0; k < chunk; ++k)
    loads +=
        absl::StrReplaceAll("\n  setp.gt.u32 %has$k, %left, $k;"
                            "\n  @%has$k ld.global.u64 %from$k, [%list+$bytes];"
                            "\n  add.u64 %from$k, %from$k, %inOffset;"
                            "\n  @%has$k ld.global.$memory $value, [%from$k];",
                            {{"$k", absl::StrCat(k)},
                             {"$bytes", absl::StrCat(8 * k)},
                             {"$memory", access.memory},
                             {"$value", inMemory(access, k)}});
  const char *text = R"(
$name:
  setp.ge.u64 %isMore, %row, %height;
  @%isMore bra end;
  shl.b64 %wide, %column, $shift;
  mad.lo.u64 %inOffset, %row, %inPitch, %wide;
  mad.lo.u64 %outOffset, %row, %outPitch, %wide;$step
  add.u64 %list, %entry, 56;
  mov.u32 %left, %operands;
  mov.u32 %chunk, 0;
$name_chunk:$loads
  setp.gt.u32 %isMore, %left, $operands;$reduce$combine
  add.u64 %list, %entry, 56;
  mul.wide.u32 %wide, %operands, 8;
  add.u64 %list, %list, %wide;
  mov.u32 %left, %results;$pack
$name_result:
  ld.global.u64 %address, [%list];
  add.u64 %address, %address, %outOffset;
  st.global.$memory [%address], $value;
  add.u64 %list, %list, 8;
  sub.u32 %left, %left, 1;
  setp.gt.u32 %isMore, %left, 0;
  @%isMore bra $name_result;
  bra $name;
$name_more:
  add.u64 %list, %list, $bytes;
  sub.u32 %left, %left, $operands;
  add.u32 %chunk, %chunk, 1;
  bra $name_chunk;)";
  return absl::StrReplaceAll(
      text, {{"$name", access.name},
             {"$shift", access.shift},
             {"$step", stepText},
             {"$loads", loads},
             {"$operands", absl::StrCat(chunk)},
             {"$bytes", absl::StrCat(8 * chunk)},
             {"$reduce", reduceNode(type, reduction, access, 0, chunk)},
             {"$combine", combineChunks(type, reduction, access)},
             {"$pack", pack(type, access)},
             {"$memory", access.memory},
             {"$value", inMemory(access, 0)}});
}

static std::string reducePtx(const CudaElementType &type, Reduction reduction) {
  const Access vector = vectorAccess(type), element = elementAccess(type);
  std::string registers = absl::StrReplaceAll(
      "  .reg .pred %isGreater, %isNan, %isFree, %has<$chunk>;\n"
      "  .reg .b32 %chunk, %bits;\n"
      "  .reg .b64 %inOffset, %outOffset, %from<$chunk>;\n"
      "  .reg .b$bits %right, %in<$loaded>, %f<$lanes>, %node<$nodes>;\n",
      {{"$chunk", absl::StrCat(chunk)},
       {"$bits", type.bits},
       {"$loaded", absl::StrCat(chunk * vector.registers)},
       {"$lanes", absl::StrCat(chunk * vector.lanes)},
       {"$nodes", absl::StrCat((maxLevel + 1) * vector.lanes)}});
  return absl::StrCat(
      absl::StrReplaceAll(startText,
                          {{"$name", reduceKernel(type.dtype, reduction)},
                           {"$registers", registers}}),
      "\n  setp.eq.u32 %isThis, %shift, ", vector.shift,
      ";\n  @%isThis bra vector;", reduceSource(type, reduction, element),
      reduceSource(type, reduction, vector), "\nend:\n  ret;\n}\n");
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

std::string shardc::rt::cuda::reduceKernel(DType dtype, Reduction reduction) {
  for (const CudaElementType &type : types)
    if (type.dtype == dtype && (reduction == Reduction::Max || type.sum))
      return absl::StrCat("shardc_reduce_",
                          reduction == Reduction::Sum ? "sum_" : "max_",
                          type.name);
  return "";
}

std::vector<std::string> shardc::rt::cuda::collectiveKernels() {
  std::vector<std::string> names = {copyKernel};
  for (const CudaElementType &type : types)
    for (Reduction reduction : {Reduction::Sum, Reduction::Max})
      if (std::string name = reduceKernel(type.dtype, reduction); !name.empty())
        names.push_back(name);
  return names;
}

std::string shardc::rt::cuda::collectivePtx() {
  std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n";
  text += copyPtx();
  for (const CudaElementType &type : types)
    for (Reduction reduction : {Reduction::Sum, Reduction::Max})
      if (!reduceKernel(type.dtype, reduction).empty())
        text += reducePtx(type, reduction);
  return text;
}
