//===- Trace.cpp - A record of what ran, and when -------------------------===//

#include "shardc-rt/Trace.h"

#include "checkpoint/Files.h"
#include "comm/Transport.h"
#include "shardc-rt/Processes.h"
#include "trace/ChromeTrace.h"
#include "trace/Recording.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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
                                int workers) {
  if (!this->workers.empty())
    return absl::FailedPreconditionError("a trace is of one executor");
  // A run may round parameters first.
  int64_t perRun = 1;
  for (const TracedProgram &program : programs)
    perRun += program.spansPerRun;
  const int64_t most =
      std::max<int64_t>(1, options.bytesPerWorker / sizeof(StepSpan));
  const bool isBounded = options.runs > most / perRun;
  this->programs = std::move(programs);
  this->workers.assign(workers,
                       SpanRing(isBounded ? most : options.runs * perRun));
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

absl::Status Trace::write(const std::string &path, Processes *processes) const {
  TracedProcess own;
  std::vector<std::string> events;
  if (!processes) {
    events.push_back(chromeEvents(*state, own));
  } else {
    Transport &transport = processes->transport();
    absl::StatusOr<int64_t> offset = clockOffset(transport);
    if (!offset.ok())
      return offset.status();
    own = {processes->rank(),
           absl::StrCat("rank ", processes->rank(), " on ", processes->host()),
           *offset};
    absl::StatusOr<std::vector<std::string>> all =
        transport.gatherAll(chromeEvents(*state, own));
    if (!all.ok())
      return all.status();
    if (processes->rank() != 0)
      return absl::OkStatus();
    events = *std::move(all);
  }
  std::string text = chromeTrace(events, state->plan);
  if (absl::EndsWith(path, ".gz")) {
    absl::StatusOr<std::string> compressed = compress(text);
    if (!compressed.ok())
      return compressed.status();
    text = *std::move(compressed);
  }
  return replaceFile(path,
                     [&](WritableFile &file) { return file.write(0, text); });
}
