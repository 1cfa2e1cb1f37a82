//===- ReadCompute.cpp - Commands that compute ----------------------------===//

#include "plan/CommandReader.h"

#include "shardc-rt/HostArray.h"

#include <numeric>

using namespace shardc::rt;

absl::Status CommandReader::readLaunch(const fb::Launch &file,
                                       LaunchCommand &launch) const {
  launch.kernel = file.kernel();
  launch.extent = file.extent();
  launch.grain = file.grain();
  launch.writes = file.writes();
  launch.threads = file.threads();
  if (launch.kernel >= plan.kernels.size())
    return bad("kernel ", launch.kernel, " of ", plan.kernels.size());
  if (launch.extent < 0 || launch.grain < 1)
    return bad("extent ", launch.extent, " in grains of ", launch.grain);
  // A launch of a GPU has whole warps, within the limits of a grid and a block.
  bool isGrid = launch.threads % 32 == 0 && launch.threads >= 32 &&
                launch.threads <= 1024 && launch.extent >= 1 &&
                launch.extent < int64_t(1) << 31;
  if (plan.gpuTarget.empty() ? launch.threads != 0 : !isGrid)
    return bad("a kernel for ",
               plan.gpuTarget.empty() ? "the CPU" : plan.gpuTarget, " has ",
               launch.extent, " blocks of ", launch.threads, " threads");
  for (uint32_t buffer : *file.buffers()) {
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
    launch.buffers.push_back(buffer);
  }
  if (launch.writes > launch.buffers.size())
    return bad("writes ", launch.writes, " of ", launch.buffers.size(),
               " buffers");
  return readParts(file, launch);
}

absl::Status CommandReader::readParts(const fb::Launch &file,
                                      LaunchCommand &launch) const {
  if (!file.parts()) {
    LaunchPart &whole = launch.parts.emplace_back();
    whole.extent = launch.extent;
    whole.buffers.resize(launch.buffers.size());
    std::iota(whole.buffers.begin(), whole.buffers.end(), 0);
    whole.coordinateAxes.resize(plan.mesh.axes().size());
    std::iota(whole.coordinateAxes.begin(), whole.coordinateAxes.end(), 0);
    return absl::OkStatus();
  }
  int64_t left = launch.extent;
  for (const fb::LaunchPart *entry : *file.parts()) {
    LaunchPart &part = launch.parts.emplace_back();
    part.extent = entry->extent();
    left -= part.extent;
    if (part.extent < 0 || left < 0 ||
        (left > 0 && part.extent % launch.grain != 0))
      return bad("a part of ", part.extent, " iterations out of ",
                 launch.extent, " in grains of ", launch.grain);
    if (entry->buffers())
      part.buffers.assign(entry->buffers()->begin(), entry->buffers()->end());
    for (uint32_t position : part.buffers)
      if (position >= launch.buffers.size())
        return bad("a part touches buffer ", position, " of ",
                   launch.buffers.size());
    if (absl::Status s =
            readAxes(entry->coordinate_axes(), part.coordinateAxes);
        !s.ok())
      return s;
  }
  if (left > 0)
    return bad("parts leave out ", left, " of ", launch.extent, " iterations");
  return absl::OkStatus();
}

absl::Status CommandReader::readGemm(const fb::Gemm &file,
                                     GemmCommand &gemm) const {
  gemm = {file.a(),
          file.b(),
          file.c(),
          file.bias(),
          file.batch(),
          file.m(),
          file.n(),
          file.k(),
          file.transpose_a(),
          file.transpose_b(),
          file.accumulate(),
          static_cast<Activation>(file.activation()),
          static_cast<Precision>(file.precision()),
          file.column_sums(),
          static_cast<Summed>(file.column_sums_of()),
          file.mask()};
  if (file.activation() > fb::Activation::MAX ||
      file.activation() < fb::Activation::MIN)
    return bad("unknown activation");
  if (file.precision() > fb::Precision::MAX ||
      file.precision() < fb::Precision::MIN)
    return bad("unknown precision");
  if (file.column_sums_of() > fb::Summed::MAX ||
      file.column_sums_of() < fb::Summed::MIN)
    return bad("unknown operand whose columns are summed");
  constexpr int64_t limit = int64_t(1) << 31;
  for (int64_t size : {gemm.batch, gemm.m, gemm.n, gemm.k})
    if (size < 0 || size >= limit)
      return bad("GEMM of size ", size);
  for (uint32_t buffer : {gemm.a, gemm.b, gemm.c})
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  auto elements = [&](uint32_t buffer) {
    return numElements(program.buffers[buffer].shape);
  };
  auto is = [&](uint32_t buffer, int64_t batch, int64_t rows, int64_t columns) {
    int64_t count = elements(buffer);
    return rows == 0 || columns == 0 || batch == 0
               ? count == 0
               : count / rows / columns == batch &&
                     count % (rows * columns) == 0;
  };
  if (!is(gemm.a, gemm.batch, gemm.m, gemm.k) ||
      !is(gemm.b, gemm.batch, gemm.k, gemm.n) ||
      !is(gemm.c, gemm.batch, gemm.m, gemm.n))
    return bad("the buffers of a GEMM of m=", gemm.m, " n=", gemm.n,
               " k=", gemm.k, " batch=", gemm.batch, " have other sizes");
  auto [factors, result] = program.typesOf(gemm);
  bool isHalf = factors == DType::BF16;
  if ((factors != DType::F32 && !isHalf) ||
      program.buffers[gemm.b].dtype != factors ||
      (result != factors && !(isHalf && result == DType::F32)))
    return bad("a GEMM needs factors of one type, f32 or bf16, and a "
               "result of that type or of f32");
  if (gemm.bias >= 0) {
    if (absl::Status s = checkBuffer(gemm.bias); !s.ok())
      return s;
    const BufferSpec &bias = program.buffers[gemm.bias];
    if (elements(gemm.bias) != gemm.n || bias.dtype != result)
      return bad("the bias is ", describe(bias.dtype, bias.shape),
                 ", expected ", describe(result, {gemm.n}));
  }
  if (absl::Status s = checkColumnSums(gemm); !s.ok())
    return s;
  if (absl::Status s = checkMask(gemm); !s.ok())
    return s;
  if ((overlap(gemm.a, gemm.c) || overlap(gemm.b, gemm.c)) &&
      elements(gemm.c) != 0)
    return bad("the result of a GEMM overlaps an operand");
  return absl::OkStatus();
}

absl::Status CommandReader::checkColumnSums(const GemmCommand &gemm) const {
  if (gemm.columnSums < 0)
    return absl::OkStatus();
  uint32_t buffer = gemm.columnSums;
  if (absl::Status s = checkBuffer(buffer); !s.ok())
    return s;
  bool ofC = gemm.columnSumsOf == Summed::C;
  Activation expected = ofC ? Activation::ReluGradient : Activation::None;
  if (gemm.batch != 1 || gemm.bias >= 0 || gemm.activation != expected)
    return bad("sums of columns need one GEMM without bias and ",
               ofC ? "with the gradient of a relu" : "activation");
  if (!ofC &&
      (gemm.columnSumsOf == Summed::A ? !gemm.transposeA : gemm.transposeB))
    return bad("the rows of the factor whose columns are summed are not along "
               "k");
  const BufferSpec &sums = program.buffers[buffer];
  DType result = program.typesOf(gemm).result;
  int64_t columns = gemm.numColumnSums();
  if (numElements(sums.shape) != columns || sums.dtype != result)
    return bad("the sums of columns are ", describe(sums.dtype, sums.shape),
               ", expected ", describe(result, {columns}));
  if (columns == 0)
    return absl::OkStatus();
  for (uint32_t other : {gemm.a, gemm.b, gemm.c})
    if (overlap(buffer, other))
      return bad("the sums of columns overlap a matrix of the GEMM");
  return absl::OkStatus();
}

absl::Status CommandReader::checkMask(const GemmCommand &gemm) const {
  bool isGradient = gemm.activation == Activation::ReluGradient;
  if (gemm.mask < 0)
    return isGradient ? bad("the gradient of a relu needs its mask")
                      : absl::OkStatus();
  uint32_t buffer = gemm.mask;
  if (absl::Status s = checkBuffer(buffer); !s.ok())
    return s;
  if (gemm.activation == Activation::None || gemm.batch != 1 ||
      gemm.accumulate || (isGradient && gemm.bias >= 0))
    return bad("a mask needs one GEMM that does not accumulate, with "
               "a relu or, without bias, with the gradient of one");
  const BufferSpec &mask = program.buffers[buffer];
  std::vector<int64_t> expected = {gemm.m, gemm.maskWords()};
  if (mask.shape != expected || mask.dtype != DType::I32)
    return bad("the mask is ", describe(mask.dtype, mask.shape), ", expected ",
               describe(DType::I32, expected));
  constexpr uint64_t unit = 16;
  if (mask.offset % unit != 0 || mask.stride % unit != 0)
    return bad("the mask lies at byte ", mask.offset, ", ", mask.stride,
               " further on in each run, not at multiples of ", unit);
  if (mask.bytes == 0)
    return absl::OkStatus();
  for (int64_t other : {int64_t(gemm.a), int64_t(gemm.b), int64_t(gemm.c),
                        int64_t(gemm.bias), int64_t(gemm.columnSums)})
    if (other >= 0 && overlap(buffer, other))
      return bad("the mask overlaps another operand of the GEMM");
  return absl::OkStatus();
}
