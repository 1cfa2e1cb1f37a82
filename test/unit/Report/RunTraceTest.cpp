//===- RunTraceTest.cpp - Reading the traces of runs ----------------------===//

#include "shardc/Report/RunTrace.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace llvm;
using namespace shardc;

namespace {

/// The trace file of the events that a test adds.
class RunTraceTest : public testing::Test {
protected:
  void name(int process, int track, StringRef kind, StringRef name) {
    add(formatv("{{\"pid\":{0},\"tid\":{1},\"ph\":\"M\",\"name\":\"{2}\","
                "\"args\":{{\"name\":\"{3}\"}}",
                process, track, kind, name));
  }

  void span(int process, int track, StringRef name, StringRef category,
            double begin, double duration, StringRef arguments) {
    add(formatv("{{\"pid\":{0},\"tid\":{1},\"ph\":\"X\",\"name\":\"{2}\","
                "\"cat\":\"{3}\",\"ts\":{4},\"dur\":{5},\"args\":{{{6}}}",
                process, track, name, category, begin, duration, arguments));
  }

  void step(int process, StringRef name, double begin, double duration) {
    span(process, 1, name, "run", begin, duration,
         "\"program\":\"train_step\"");
  }

  /// A process with a track of its steps and one of a worker.
  void process(int number) {
    name(number, 0, "process_name", formatv("rank {0}", number).str());
    name(number, 1, "thread_name", "steps");
    name(number, 2, "thread_name", "worker 0");
  }

  Expected<RunTrace> read() {
    SmallString<128> path;
    int file;
    EXPECT_FALSE(sys::fs::createTemporaryFile("trace", "json", file, path));
    {
      raw_fd_ostream os(file, /*shouldClose=*/true);
      os << "{\"otherData\":{\"plan\":{\"model\":\"mlp\"}},\"traceEvents\":["
         << events << "]}";
    }
    Expected<RunTrace> trace = readRunTrace(path.str().str());
    sys::fs::remove(path);
    return trace;
  }

private:
  void add(const formatv_object_base &event) {
    events += (events.empty() ? "" : ",") + event.str();
  }

  std::string events;
};

TEST_F(RunTraceTest, StepsOfWorkers) {
  process(0);
  step(0, "step 2", 100, 50);
  step(0, "step 3", 200, 60);
  // Another program, a failed step, and one that was interrupted.
  span(0, 1, "evaluate", "run", 300, 10, "\"program\":\"evaluate\"");
  step(0, "step 4, failed", 400, 50);
  step(0, "step 5", 500, 1000);
  span(0, 2, "gemm", "compute", 110, 10,
       "\"part\":\"forward\",\"source\":\"m.mlir:1:2\",\"task\":\"F0 of "
       "stage 1\"");
  span(0, 2, "wait", "wait", 120, 5, "\"before\":\"gemm\"");
  span(0, 2, "all_reduce over data", "communication", 210, 7,
       "\"part\":\"backward\"");
  span(0, 2, "gemm", "compute", 305, 5, "");
  Expected<RunTrace> trace = read();
  ASSERT_TRUE(bool(trace)) << toString(trace.takeError());
  ASSERT_EQ(trace->steps.size(), 2u);
  EXPECT_EQ(trace->numSlow, 1);
  EXPECT_EQ(trace->getStepMicroseconds(), 55);
  EXPECT_EQ(trace->getMedian().name, "step 3");
  EXPECT_EQ(trace->workers, std::vector<std::string>{"worker 0"});
  const RunStep &first = trace->steps[0];
  ASSERT_EQ(first.spans.size(), 2u);
  EXPECT_EQ(first.spans[0].name, "gemm");
  EXPECT_EQ(first.spans[0].source, "m.mlir:1:2");
  EXPECT_EQ(first.spans[0].part, "forward");
  EXPECT_EQ(first.spans[0].task, "F0 of stage 1");
  EXPECT_EQ(first.spans[0].startMicroseconds, 10);
  EXPECT_EQ(first.spans[0].microseconds, 10);
  EXPECT_EQ(first.spans[1].kind, RunSpan::Kind::Wait);
  EXPECT_EQ(first.spans[1].name, "gemm");
  ASSERT_EQ(trace->steps[1].spans.size(), 1u);
  EXPECT_EQ(trace->steps[1].spans[0].kind, RunSpan::Kind::Communication);
}

TEST_F(RunTraceTest, ProcessesShareSteps) {
  for (int rank : {0, 1}) {
    process(rank);
    step(rank, "step 1", 100 + 10 * rank, 50);
    span(rank, 2, "gemm", "compute", 120, 5, "\"part\":\"forward\"");
  }
  Expected<RunTrace> trace = read();
  ASSERT_TRUE(bool(trace)) << toString(trace.takeError());
  ASSERT_EQ(trace->steps.size(), 1u);
  EXPECT_EQ(trace->steps[0].microseconds, 60);
  EXPECT_EQ(trace->workers,
            (std::vector<std::string>{"rank 0, worker 0", "rank 1, worker 0"}));
  ASSERT_EQ(trace->steps[0].spans.size(), 2u);
  EXPECT_EQ(trace->steps[0].spans[1].worker, 1u);
  EXPECT_EQ(trace->steps[0].spans[1].startMicroseconds, 20);
}

TEST_F(RunTraceTest, StreamsOfGpus) {
  name(0, 0, "process_name", "shardc");
  name(0, 1, "thread_name", "steps");
  name(0, 2, "thread_name", "stream of device 0: compute");
  name(0, 3, "thread_name", "stream of device 0: communication");
  name(0, 4, "thread_name", "stream of device 0: copies");
  step(0, "step 1", 100, 50);
  span(0, 2, "gemm", "compute", 100, 10, "\"part\":\"forward\"");
  span(0, 2, "wait", "wait", 110, 5, "\"before\":\"gemm\"");
  span(0, 3, "wait", "wait", 100, 8, "\"before\":\"all_reduce over data\"");
  span(0, 3, "all_reduce over data", "communication", 108, 7,
       "\"part\":\"backward\"");
  span(0, 4, "upload x", "compute", 100, 2, "\"part\":\"forward\"");
  Expected<RunTrace> trace = read();
  ASSERT_TRUE(bool(trace)) << toString(trace.takeError());
  EXPECT_EQ(trace->workers,
            (std::vector<std::string>{"stream of device 0: compute",
                                      "stream of device 0: communication"}));
  EXPECT_TRUE(trace->isOfStreams());
  EXPECT_EQ(trace->getNumWorkers(/*isBeside=*/false), 1u);
  // Neither copies nor the wait of the communication.
  ASSERT_EQ(trace->steps[0].spans.size(), 3u);
  EXPECT_EQ(trace->steps[0].spans[2].kind, RunSpan::Kind::Communication);
}

TEST_F(RunTraceTest, SaysWhatIsMissing) {
  process(0);
  step(0, "step 4, failed", 400, 50);
  std::string error = toString(read().takeError());
  EXPECT_NE(error.find("no train step that has ended"), error.npos) << error;
}

TEST_F(RunTraceTest, KnowsItsPlan) {
  process(0);
  step(0, "step 1", 100, 50);
  Expected<RunTrace> trace = read();
  ASSERT_TRUE(bool(trace)) << toString(trace.takeError());
  json::Object report{{"model", "mlp"}, {"more", 1}};
  EXPECT_EQ(checkPlanOf(*trace, report), "");
  report["batch_size"] = 32;
  EXPECT_EQ(checkPlanOf(*trace, report),
            "is a trace of another plan: 'batch_size' is unknown there and 32 "
            "here");
  report["model"] = "other";
  EXPECT_EQ(checkPlanOf(*trace, report),
            "is a trace of another plan: 'model' is \"mlp\" there and "
            "\"other\" here");
}

} // namespace
