//===- Graph.cpp - Captured work that is launched as one ------------------===//

#include "backends/cuda/Graph.h"

using namespace shardc::rt::cuda;

absl::StatusOr<Graph> Graph::capture(const Stream &stream,
                                     absl::FunctionRef<absl::Status()> issue) {
  const Context &context = stream.context();
  const Driver &driver = context.driver();
  if (absl::Status s =
          context.check(driver.streamBeginCapture(
                            stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        "cuStreamBeginCapture");
      !s.ok())
    return s;
  absl::Status issued = issue();
  CUgraph raw = nullptr;
  absl::Status ended = context.check(
      driver.streamEndCapture(stream.get(), &raw), "cuStreamEndCapture");
  Owned<CUgraph, &Driver::graphDestroy> graph;
  if (raw)
    graph = {context, raw};
  // The first error is the reason for the second.
  if (!issued.ok())
    return issued;
  if (!ended.ok())
    return ended;
  CUgraphExec executable = nullptr;
  if (absl::Status s =
          context.check(driver.graphInstantiate(&executable, raw, 0),
                        "cuGraphInstantiateWithFlags");
      !s.ok())
    return s;
  Graph result;
  result.owned = {context, executable};
  return result;
}

absl::Status Graph::launch(const Stream &stream) const {
  return stream.context().check(
      stream.context().driver().graphLaunch(owned.get(), stream.get()),
      "cuGraphLaunch");
}
