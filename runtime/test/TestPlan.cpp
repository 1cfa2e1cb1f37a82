//===- TestPlan.cpp - A small plan made by hand ---------------------------===//

#include "TestPlan.h"

#include "shardc-rt/Plan.h"

#include <cstring>
#include <fstream>
#include <sstream>

using namespace shardc::rt;

namespace {

std::unique_ptr<fb::ShardingT>
sharding(std::vector<std::vector<uint16_t>> dims) {
  auto result = std::make_unique<fb::ShardingT>();
  for (std::vector<uint16_t> &axes : dims) {
    auto dim = std::make_unique<fb::DimShardingT>();
    dim->axes = std::move(axes);
    result->dims.push_back(std::move(dim));
  }
  return result;
}

std::unique_ptr<fb::CommandT> command(fb::OperationUnion operation) {
  auto result = std::make_unique<fb::CommandT>();
  result->operation = std::move(operation);
  return result;
}

template <typename T>
fb::OperationUnion wrap(T table) {
  fb::OperationUnion operation;
  operation.Set(std::move(table));
  return operation;
}

/// Gives out regions of the arena.
struct Layout {
  uint64_t next = 0;

  uint64_t take(uint64_t bytes) {
    uint64_t offset = next;
    next += (bytes + 63) / 64 * 64;
    return offset;
  }
};

} // namespace

std::string test::withFingerprint(std::string bytes) {
  const fb::Plan *plan = fb::GetPlan(bytes.data());
  const uint8_t *field =
      reinterpret_cast<const flatbuffers::Table *>(plan)->GetAddressOf(
          fb::Plan::VT_FINGERPRINT);
  if (!field)
    return bytes;
  size_t at = field - reinterpret_cast<const uint8_t *>(bytes.data());
  std::memset(&bytes[at], 0, 8);
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  std::memcpy(&bytes[at], &hash, 8);
  return bytes;
}

/// Puts a command before command `at`, to which waits may refer.
static void insert(fb::ProgramT &program, size_t at,
                   fb::OperationUnion operation) {
  for (std::unique_ptr<fb::CommandT> &other : program.commands)
    if (fb::CollectiveWaitT *wait = other->operation.AsCollectiveWait())
      wait->start += wait->start >= at;
  program.commands.insert(program.commands.begin() + at,
                          command(std::move(operation)));
}

void test::addLoop(fb::PlanT &plan, size_t at, int64_t runs) {
  fb::LoopT loop;
  loop.runs = runs;
  loop.commands = 1;
  insert(*plan.programs[0], at, wrap(loop));
}

void test::addEarlyAllReduce(fb::PlanT &plan) {
  auto item = std::make_unique<fb::CollectiveItemT>();
  item->in = addOwnBuffer(plan, fb::DType::F32, {4});
  item->out = addOwnBuffer(plan, fb::DType::F32, {4});
  fb::CollectiveStartT start;
  start.kind = fb::CollectiveKind::AllReduce;
  start.axes = {0};
  start.items.push_back(std::move(item));
  insert(*plan.programs[0], 0, wrap(std::move(start)));
  fb::CollectiveWaitT wait;
  wait.start = 0;
  insert(*plan.programs[0], 2, wrap(wait));
}

int32_t test::addOwnBuffer(fb::PlanT &plan, fb::DType dtype,
                           std::vector<int64_t> shape) {
  auto buffer = std::make_unique<fb::BufferT>();
  buffer->offset = plan.arena_bytes;
  buffer->bytes = 4;
  for (int64_t size : shape)
    buffer->bytes *= size;
  buffer->dtype = dtype;
  buffer->shape = std::move(shape);
  plan.arena_bytes += (buffer->bytes + 63) / 64 * 64;
  fb::ProgramT &step = *plan.programs[0];
  step.buffers.push_back(std::move(buffer));
  return step.buffers.size() - 1;
}

void test::addPrediction(fb::PlanT &plan) {
  const fb::ProgramT &step = *plan.programs[0];
  const fb::ResultT &y = *step.results[1];
  fb::LaunchT scale = *step.commands[0]->operation.AsLaunch();
  auto program = std::make_unique<fb::ProgramT>();
  program->name = "predict";
  for (uint32_t &buffer : scale.buffers) {
    program->buffers.push_back(
        std::make_unique<fb::BufferT>(*step.buffers[buffer]));
    buffer = program->buffers.size() - 1;
  }
  program->commands.push_back(command(wrap(std::move(scale))));
  auto prediction = std::make_unique<fb::ResultT>(y);
  prediction->name = "prediction";
  prediction->buffer = 1;
  program->results.push_back(std::move(prediction));
  plan.programs.push_back(std::move(program));
}

void test::addLoops(fb::PlanT &plan) {
  fb::ProgramT &program = *plan.programs[0];
  fb::GemmT *gemm = program.commands[5]->operation.AsGemm();
  gemm->accumulate = true;
  fb::ClearT clear;
  clear.buffer = gemm->c;
  addLoop(plan, 5, /*runs=*/2);
  insert(program, 5, wrap(clear));

  fb::LaunchT *scale = program.commands[0]->operation.AsLaunch();
  scale->extent /= 3;
  for (uint32_t &buffer : scale->buffers) {
    auto part = std::make_unique<fb::BufferT>(*program.buffers[buffer]);
    part->shape[0] /= 3;
    part->bytes /= 3;
    part->stride = part->bytes;
    buffer = program.buffers.size();
    program.buffers.push_back(std::move(part));
  }
  addLoop(plan, 0, /*runs=*/3);
}

void test::onGpu(fb::PlanT &plan) {
  plan.gpu_target = "sm_90";
  fb::ProgramT &program = *plan.programs[0];
  std::vector<std::unique_ptr<fb::CommandT>> commands;
  auto add = [&](std::unique_ptr<fb::CommandT> added, fb::Stream stream,
                 std::vector<uint32_t> after) {
    added->stream = stream;
    added->after = std::move(after);
    if (fb::LaunchT *launch = added->operation.AsLaunch())
      launch->threads = 64;
    commands.push_back(std::move(added));
  };
  fb::UploadT upload;
  upload.tensor = 2;
  add(command(wrap(upload)), fb::Stream::Copies, {});
  std::vector<std::unique_ptr<fb::CommandT>> &old = program.commands;
  add(std::move(old[0]), fb::Stream::Compute, {0});
  add(std::move(old[1]), fb::Stream::Communication, {1});
  add(std::move(old[3]), fb::Stream::Communication, {});
  add(std::move(old[5]), fb::Stream::Compute, {3});
  add(std::move(old[6]), fb::Stream::Compute, {});
  for (uint32_t result = 0; result < 3; ++result) {
    fb::DownloadT download;
    download.result = result;
    // All are there with the first, the loss.
    add(command(wrap(download)), fb::Stream::Copies,
        result == 0 ? std::vector<uint32_t>{5} : std::vector<uint32_t>{});
  }
  program.commands = std::move(commands);
}

std::string test::makePlan(int devices,
                           const std::function<void(fb::PlanT &)> &edit) {
  fb::PlanT plan;
  Layout layout;
  plan.version = planVersion;
  plan.model = "test";
  plan.fingerprint = 1; // present, and made right below
  plan.batch_size = 12;
  plan.mesh = std::make_unique<fb::MeshT>();
  auto axis = std::make_unique<fb::AxisT>();
  axis->name = "d";
  axis->size = devices;
  plan.mesh->axes.push_back(std::move(axis));
  plan.kernels = {"test_scale", "test_update"};
  std::ifstream file(TEST_KERNELS, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  std::string code = content.str();
  plan.code.assign(code.begin(), code.end());

  int64_t shard = (12 + devices - 1) / devices;
  auto tensor = [&](const char *name, fb::Role role, std::vector<int64_t> shape,
                    std::unique_ptr<fb::ShardingT> of, uint64_t bytes) {
    auto result = std::make_unique<fb::TensorT>();
    result->name = name;
    result->role = role;
    result->shape = std::move(shape);
    result->sharding = std::move(of);
    result->bytes = bytes;
    result->offset = layout.take(bytes);
    if (role == fb::Role::Parameter) {
      result->init = std::make_unique<fb::InitializerT>();
      result->init->kind = fb::InitKind::Uniform;
      result->init->b = 1;
    }
    plan.tensors.push_back(std::move(result));
    return plan.tensors.back()->offset;
  };
  uint64_t w = tensor("w", fb::Role::Parameter, {4}, sharding({{}}), 16);
  uint64_t m =
      tensor("m", fb::Role::Parameter, {12, 4}, sharding({{}, {}}), 192);
  uint64_t x = tensor("x", fb::Role::Input, {12}, sharding({{0}}), 4 * shard);

  auto program = std::make_unique<fb::ProgramT>();
  program->name = "train_step";
  auto buffer = [&](uint64_t offset, std::vector<int64_t> shape) {
    auto result = std::make_unique<fb::BufferT>();
    result->offset = offset;
    result->bytes = 4;
    for (int64_t size : shape)
      result->bytes *= size;
    result->shape = std::move(shape);
    program->buffers.push_back(std::move(result));
    return uint32_t(program->buffers.size() - 1);
  };
  uint32_t xBuffer = buffer(x, {shard}), wBuffer = buffer(w, {4});
  uint32_t mBuffer = buffer(m, {12, 4});
  uint32_t y = buffer(layout.take(4 * shard), {shard});
  uint32_t all = buffer(layout.take(48), {12});
  uint32_t g = buffer(layout.take(48), {12});
  uint32_t h = buffer(layout.take(16), {4});
  uint32_t loss = buffer(layout.take(4), {});

  fb::LaunchT scale;
  scale.kernel = 0;
  scale.buffers = {xBuffer, y};
  scale.extent = shard;
  scale.writes = 1;
  program->commands.push_back(command(wrap(std::move(scale))));
  auto collective = [&](fb::CollectiveKind kind, uint32_t in, uint32_t out) {
    fb::CollectiveStartT result;
    result.kind = kind;
    result.axes = {0};
    auto item = std::make_unique<fb::CollectiveItemT>();
    item->in = in;
    item->out = out;
    result.items.push_back(std::move(item));
    fb::CollectiveWaitT wait;
    wait.start = program->commands.size();
    program->commands.push_back(command(wrap(std::move(result))));
    program->commands.push_back(command(wrap(wait)));
  };
  collective(fb::CollectiveKind::AllGather, y, all);
  collective(fb::CollectiveKind::AllReduce, all, g);
  fb::GemmT gemm;
  gemm.a = g;
  gemm.b = mBuffer;
  gemm.c = h;
  gemm.m = 1;
  gemm.n = 4;
  gemm.k = 12;
  program->commands.push_back(command(wrap(gemm)));
  fb::LaunchT update;
  update.kernel = 1;
  update.buffers = {h, wBuffer, loss};
  update.extent = 4;
  update.grain = 4;
  update.writes = 2;
  program->commands.push_back(command(wrap(std::move(update))));

  auto result = [&](const char *name, uint32_t from, std::vector<int64_t> shape,
                    std::unique_ptr<fb::ShardingT> of) {
    auto entry = std::make_unique<fb::ResultT>();
    entry->name = name;
    entry->buffer = from;
    entry->shape = std::move(shape);
    entry->sharding = std::move(of);
    program->results.push_back(std::move(entry));
  };
  result("loss", loss, {}, sharding({}));
  result("y", y, {12}, sharding({{0}}));
  result("h", h, {4}, sharding({{}}));
  plan.programs.push_back(std::move(program));
  plan.arena_bytes = layout.next;
  if (edit)
    edit(plan);

  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &plan), fb::PlanIdentifier());
  return withFingerprint(
      std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                  builder.GetSize()));
}
