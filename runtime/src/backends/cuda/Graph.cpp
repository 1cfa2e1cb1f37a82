//===- Graph.cpp - Captured work that is launched as one ------------------===//

#include "backends/cuda/Graph.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::vector<Graph>>
Graph::capture(absl::Span<const Stream *const> streams,
               absl::FunctionRef<absl::Status()> issue) {
  auto enter = [&](const Stream &stream) {
    return streams.size() > 1 ? stream.context().makeCurrent()
                              : absl::OkStatus();
  };
  absl::Status status;
  size_t begun = 0;
  for (; begun < streams.size() && status.ok(); ++begun) {
    const cuda::Context &context = streams[begun]->context();
    status = enter(*streams[begun]);
    if (status.ok())
      status = context.check(
          context.driver().streamBeginCapture(
              streams[begun]->get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
    if (!status.ok())
      break;
  }
  if (status.ok())
    status = issue();
  // The first error is the reason for others; all captures end.
  std::vector<Owned<CUgraph, &Driver::graphDestroy>> graphs(begun);
  for (size_t i = 0; i < begun; ++i) {
    const cuda::Context &context = streams[i]->context();
    absl::Status ended = enter(*streams[i]);
    CUgraph raw = nullptr;
    ended.Update(context.check(
        context.driver().streamEndCapture(streams[i]->get(), &raw),
        "cuStreamEndCapture"));
    if (raw)
      graphs[i] = {context, raw};
    status.Update(ended);
  }
  if (!status.ok())
    return status;
  std::vector<Graph> results;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const cuda::Context &context = streams[i]->context();
    if (absl::Status s = enter(*streams[i]); !s.ok())
      return s;
    CUgraphExec executable = nullptr;
    if (absl::Status s = context.check(
            context.driver().graphInstantiate(&executable, graphs[i].get(), 0),
            "cuGraphInstantiateWithFlags");
        !s.ok())
      return s;
    Graph &result = results.emplace_back();
    result.owned = {context, executable};
  }
  return results;
}

absl::Status Graph::launch(const Stream &stream) const {
  return stream.context().check(
      stream.context().driver().graphLaunch(owned.get(), stream.get()),
      "cuGraphLaunch");
}
