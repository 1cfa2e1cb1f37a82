//===- Graph.h - Captured work that is launched as one ----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GRAPH_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GRAPH_H

#include "backends/cuda/Stream.h"

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include <vector>

namespace shardc::rt::cuda {

/// An executable graph.
class Graph {
public:
  /// Captures the work that `issue` gives to `streams`, into one graph for
  /// each, instead of running it. The streams are of different GPUs. Streams
  /// that wait for their events, and that they wait for at the end, are
  /// captured, too. An error of `issue` ends the captures and is returned.
  [[nodiscard]] static absl::StatusOr<std::vector<Graph>>
  capture(absl::Span<const Stream *const> streams,
          absl::FunctionRef<absl::Status()> issue);

  /// Runs all of it, behind the earlier work of `stream`.
  [[nodiscard]] absl::Status launch(const Stream &stream) const;

private:
  Owned<CUgraphExec, &Driver::graphExecDestroy> owned;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GRAPH_H
