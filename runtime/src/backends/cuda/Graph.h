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
  /// What `issue` gives to each of `streams`, which are of different GPUs, and
  /// to streams that wait for its events and that it waits for at the end, is
  /// captured instead of run, into a graph for each. An error of `issue` ends
  /// the captures and is returned.
  [[nodiscard]] static absl::StatusOr<std::vector<Graph>>
  capture(absl::Span<const Stream *const> streams,
          absl::FunctionRef<absl::Status()> issue);

  /// Runs all of it, behind what `stream` has been given.
  [[nodiscard]] absl::Status launch(const Stream &stream) const;

private:
  Owned<CUgraphExec, &Driver::graphExecDestroy> owned;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GRAPH_H
