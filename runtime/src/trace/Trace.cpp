//===- Trace.cpp - A record of what ran, and when -------------------------===//

#include "shardc-rt/Trace.h"

#include "checkpoint/Files.h"
#include "comm/Socket.h"
#include "comm/Transport.h"
#include "shardc-rt/Processes.h"
#include "shardc-rt/Store.h"
#include "trace/ChromeTrace.h"
#include "trace/Recording.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <zlib.h>

using namespace shardc::rt;

std::vector<StepSpan> SpanRing::inOrder() const {
  if (added < spans.size())
    return {spans.begin(), spans.begin() + next};
  std::vector<StepSpan> ordered(spans.begin() + next, spans.end());
  ordered.insert(ordered.end(), spans.begin(), spans.begin() + next);
  return ordered;
}

absl::Status Trace::State::open(std::vector<TracedProgram> programs,
                                std::vector<TracedWorker> workers,
                                const Mesh &mesh) {
  if (!this->workers.empty())
    return absl::FailedPreconditionError("a trace is of one executor");
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    std::string &name = devices.emplace_back();
    for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
      absl::StrAppend(&name, axis ? "," : "", mesh.axes()[axis].name, "=",
                      mesh.coordinate(device, axis));
  }
  // A run may round parameters first.
  int64_t perRun = 1;
  for (const TracedProgram &program : programs)
    perRun += program.spansPerRun;
  const int64_t most =
      std::max<int64_t>(1, options.bytesPerWorker / sizeof(StepSpan));
  const bool isBounded = options.runs > most / perRun;
  this->programs = std::move(programs);
  this->workers.assign(workers.size(),
                       SpanRing(isBounded ? most : options.runs * perRun));
  lanes = std::move(workers);
  return absl::OkStatus();
}

int32_t Trace::State::beginRun(uint32_t program) {
  const bool isTraining = programs[program].name == "train_step";
  int64_t step = isTraining ? options.firstStep + trainSteps++ : -1;
  runs.push_back({program, step, now(), 0});
  return runs.size() - 1;
}

Trace::Trace(const TraceOptions &options)
    : state(std::make_unique<State>(options)) {}

Trace::~Trace() = default;

void Trace::setRecording(bool on) {
  if (on == isRecording())
    return;
  if (on)
    state->from = std::min(state->from.load(), State::now());
  state->to = on ? std::numeric_limits<int64_t>::max() : State::now();
  state->isRecording = on;
}

bool Trace::isRecording() const { return state->isRecording; }

void Trace::add(absl::string_view track, absl::string_view name,
                Clock::time_point begin, Clock::time_point end) {
  auto toCount = [](Clock::time_point time) -> int64_t {
    return time.time_since_epoch() / std::chrono::nanoseconds(1);
  };
  if (toCount(end) < state->from || toCount(begin) > state->to)
    return;
  std::lock_guard<std::mutex> lock(state->hostMutex);
  state->host.push_back(
      {std::string(track), std::string(name), toCount(begin), toCount(end)});
}

int64_t Trace::numRuns() const { return state->runs.size(); }

uint64_t Trace::numLost() const {
  uint64_t lost = 0;
  for (const SpanRing &worker : state->workers)
    lost += worker.numLost();
  return lost;
}

/// The nanoseconds that the clock of rank 0 is ahead of this one: as Cristian's
/// algorithm finds them, from the quickest of several answers.
static absl::StatusOr<int64_t> clockOffset(Transport &transport) {
  constexpr int rounds = 16;
  int64_t offset = 0, quickest = std::numeric_limits<int64_t>::max();
  for (int other = 1; other < transport.size(); ++other)
    for (int round = 0; round < rounds; ++round) {
      char question = 0;
      int64_t answer = 0;
      auto pass = [&](int peer, void *data, uint64_t bytes, bool isReceived) {
        return transport.exchange({{peer, data, bytes, isReceived}});
      };
      absl::Status status;
      if (transport.rank() == 0) {
        status = pass(other, &question, 1, /*isReceived=*/true);
        answer = Trace::State::now();
        if (status.ok())
          status = pass(other, &answer, sizeof(answer), /*isReceived=*/false);
      } else if (transport.rank() == other) {
        int64_t asked = Trace::State::now();
        status = pass(0, &question, 1, /*isReceived=*/false);
        if (status.ok())
          status = pass(0, &answer, sizeof(answer), /*isReceived=*/true);
        int64_t answered = Trace::State::now();
        if (answered - asked < quickest) {
          quickest = answered - asked;
          offset = answer - (asked + quickest / 2);
        }
      }
      if (!status.ok())
        return status;
    }
  return offset;
}

static absl::StatusOr<std::string> compress(const std::string &text) {
  z_stream stream = {};
  // 16 more than the window's bits: with the header of gzip.
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return absl::ResourceExhaustedError("out of memory: cannot compress");
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef *>(&result[0]);
  stream.avail_out = result.size();
  int code = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END)
    return absl::InternalError("a trace of 4 GiB or more cannot be compressed");
  return result;
}

/// The same without messages between two processes: what all ranks give is
/// there for each of them, and for rank 0, between two readings of its own
/// clock.
static absl::StatusOr<int64_t> clockOffset(Store &store) {
  constexpr int rounds = 16;
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  const absl::Duration deadline = store.options().deadline;
  std::string mine;
  for (int round = 0; round < rounds; ++round) {
    const int64_t before = Trace::State::now();
    absl::StatusOr<std::vector<std::string>> all =
        store.gatherAll("clocks", "", deadline);
    if (!all.ok())
      return all.status();
    const int64_t after = Trace::State::now();
    absl::StatusOr<std::string> first = store.broadcast(
        "the clock of rank 0", absl::StrCat(before, " ", after), deadline);
    if (!first.ok())
      return first.status();
    std::pair<absl::string_view, absl::string_view> times =
        absl::StrSplit(*first, ' ');
    int64_t begin = 0, end = 0;
    if (!absl::SimpleAtoi(times.first, &begin) ||
        !absl::SimpleAtoi(times.second, &end))
      return absl::InternalError("the clock of rank 0 is no number");
    least = std::max(least, begin - after);
    most = std::min(most, end - before);
  }
  return store.ranks().rank == 0 ? 0 : least + (most - least) / 2;
}

static absl::Status writeEvents(const std::string &path,
                                const std::vector<std::string> &events,
                                const std::string &plan) {
  std::string text = chromeTrace(events, plan);
  if (absl::EndsWith(path, ".gz")) {
    absl::StatusOr<std::string> compressed = compress(text);
    if (!compressed.ok())
      return compressed.status();
    text = *std::move(compressed);
  }
  return replaceFile(path,
                     [&](WritableFile &file) { return file.write(0, text); });
}

static TracedProcess tracedProcess(int rank, const std::string &host,
                                   int64_t clockOffset) {
  return {rank, absl::StrCat("rank ", rank, " on ", host), clockOffset};
}

absl::Status Trace::write(const std::string &path, Processes *processes) const {
  if (!processes)
    return writeEvents(path, {chromeEvents(*state, {})}, state->plan);
  Transport &transport = processes->transport();
  absl::StatusOr<int64_t> offset = clockOffset(transport);
  if (!offset.ok())
    return offset.status();
  absl::StatusOr<std::vector<std::string>> all = transport.gatherAll(
      chromeEvents(*state, tracedProcess(processes->rank(), processes->host(),
                                         *offset)));
  if (!all.ok())
    return all.status();
  return processes->rank() == 0 ? writeEvents(path, *all, state->plan)
                                : absl::OkStatus();
}

absl::Status Trace::write(const std::string &path, Store &store) const {
  absl::StatusOr<int64_t> offset = clockOffset(store);
  if (!offset.ok())
    return offset.status();
  const int rank = store.ranks().rank;
  absl::StatusOr<std::vector<std::string>> all = store.gatherAll(
      "the trace",
      chromeEvents(*state, tracedProcess(rank, hostName(), *offset)),
      store.options().deadline);
  if (!all.ok())
    return all.status();
  return rank == 0 ? writeEvents(path, *all, state->plan) : absl::OkStatus();
}
