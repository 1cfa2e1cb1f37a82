//===- Streams.cpp - The fake's streams, events and graphs ----------------===//

#include "State.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>
#include <utility>

using namespace shardc::rt::test;
using Clock = std::chrono::steady_clock;

// Handles are objects of the types that the driver declares.
namespace shardc::rt::cuda {
struct CUgraph_st {
  struct Node {
    std::function<void()> work;
    std::set<size_t> after;
    CUevent recorded = nullptr; ///< By this node.
  };
  std::vector<Node> nodes;
  std::set<CUstream> streams; ///< That take part in the capture.
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  CUcontext context = nullptr;
  CUgraph capturing = nullptr;
  bool isOrigin = false;
  std::set<size_t> after; ///< Of the next node.
};
struct CUevent_st {
  CUcontext context = nullptr;
  bool isTimed = false;
  std::chrono::steady_clock::time_point reached{}; ///< If it is timed.
  CUgraph captured = nullptr; ///< In which it was recorded last.
  std::set<size_t> nodes;
  int64_t queriesLeft = 0;
};
} // namespace shardc::rt::cuda

int shardc::rt::test::captures = 0;

void shardc::rt::test::drain() {
  std::vector<std::thread> threads;
  for (CUdevice device = 0; device < state().gpus; ++device)
    if (auto &works = contextOf(device)->works; !works.empty())
      threads.emplace_back([works = std::exchange(works, {})] {
        for (const std::function<void()> &work : works)
          if (!isStuck())
            work();
      });
  for (std::thread &thread : threads)
    thread.join();
}

CUresult shardc::rt::test::addWork(CUstream stream,
                                   std::function<void()> work) {
  if (!current || stream->context != current)
    return otherContext;
  if (!stream->capturing) {
    if (state().gpus > 1)
      current->works.push_back(std::move(work));
    else if (!isStuck())
      work();
    return CUDA_SUCCESS;
  }
  CUgraph graph = stream->capturing;
  graph->nodes.push_back({std::move(work), stream->after});
  stream->after = {graph->nodes.size() - 1};
  return CUDA_SUCCESS;
}

extern "C" {

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  if (enter("cuStreamCreate"))
    return injected;
  CUresult result = give(stream, "stream", std::make_unique<CUstream_st>());
  (*stream)->context = current;
  return result;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return take(stream, "stream", enter("cuStreamDestroy"));
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  if (enter("cuStreamBeginCapture"))
    return injected;
  if (stream->capturing)
    return invalid;
  stream->capturing = new CUgraph_st;
  stream->capturing->streams = {stream};
  stream->isOrigin = true;
  stream->after.clear();
  ++captures;
  return 0;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *place) {
  bool fails = enter("cuStreamEndCapture");
  *place = nullptr;
  CUgraph graph = stream->capturing;
  if (!graph || !stream->isOrigin)
    return invalid;
  // All that was captured has to come before the end.
  std::set<size_t> reached;
  std::vector<size_t> open(stream->after.begin(), stream->after.end());
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (reached.insert(node).second)
      open.insert(open.end(), graph->nodes[node].after.begin(),
                  graph->nodes[node].after.end());
  }
  bool isJoined = reached.size() == graph->nodes.size();
  for (CUstream other : graph->streams) {
    other->capturing = nullptr;
    other->isOrigin = false;
    other->after.clear();
  }
  --captures;
  if (fails || !isJoined) {
    delete graph;
    return fails ? injected : unjoined;
  }
  *place = graph;
  ++state().live["graph"];
  return 0;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (enter("cuStreamWaitEvent"))
    return injected;
  if (stream->context != current || event->context != current)
    return otherContext;
  if (!event->captured)
    return stream->capturing ? isolation : 0;
  if (stream->capturing && stream->capturing != event->captured)
    return isolation;
  stream->capturing = event->captured;
  event->captured->streams.insert(stream);
  stream->after.insert(event->nodes.begin(), event->nodes.end());
  return 0;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  if (enter("cuEventCreate"))
    return injected;
  CUresult result = give(event, "event", std::make_unique<CUevent_st>());
  (*event)->context = current;
  (*event)->isTimed = flags != CU_EVENT_DISABLE_TIMING;
  return result;
}

CUresult cuEventDestroy_v2(CUevent event) {
  return take(event, "event", enter("cuEventDestroy"));
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (enter("cuEventRecord"))
    return injected;
  if (stream->context != current || event->context != current)
    return otherContext;
  event->captured = stream->capturing;
  event->nodes = stream->after;
  event->queriesLeft = state().queriesNotReady;
  event->reached = {};
  if (event->isTimed && !stream->capturing)
    return addWork(stream, [event] { event->reached = Clock::now(); });
  return 0;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                unsigned flags) {
  if (enter("cuEventRecordWithFlags"))
    return injected;
  if (stream->context != current || event->context != current)
    return otherContext;
  if (flags != CU_EVENT_RECORD_EXTERNAL || !stream->capturing ||
      !event->isTimed)
    return invalid;
  CUresult added = addWork(stream, [event] { event->reached = Clock::now(); });
  if (added == CUDA_SUCCESS)
    stream->capturing->nodes.back().recorded = event;
  return added;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  if (enter("cuEventElapsedTime"))
    return injected;
  if (!from->isTimed || !to->isTimed || from->context != to->context)
    return otherContext;
  if (from->reached == Clock::time_point() ||
      to->reached == Clock::time_point())
    return CUDA_ERROR_NOT_READY;
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->reached - from->reached)
          .count();
  return 0;
}

CUresult cuEventQuery(CUevent event) {
  if (enter("cuEventQuery"))
    return injected;
  if (event->captured)
    return notPermitted;
  drain();
  return event->queriesLeft-- > 0 || isStuck() ? CUDA_ERROR_NOT_READY : 0;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *place, CUgraph graph,
                                     unsigned long long) {
  if (enter("cuGraphInstantiateWithFlags", text(graph->nodes.size())))
    return injected;
  auto made = std::make_unique<CUgraphExec_st>();
  made->graph = *graph;
  return give(place, "executable graph", std::move(made));
}

CUresult cuGraphDestroy(CUgraph graph) {
  return take(graph, "graph", enter("cuGraphDestroy"));
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  bool fails = enter("cuGraphExecDestroy");
  drain();
  return take(executable, "executable graph", fails);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (enter("cuGraphLaunch"))
    return injected;
  for (const CUgraph_st::Node &node : executable->graph.nodes)
    if (node.recorded)
      node.recorded->reached = {};
  return addWork(stream, [executable, seed = state().seed++] {
    const auto &nodes = executable->graph.nodes;
    std::mt19937 random(seed);
    std::vector<size_t> missing, ready;
    std::vector<std::vector<size_t>> followers(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      missing.push_back(nodes[i].after.size());
      for (size_t other : nodes[i].after)
        followers[other].push_back(i);
      if (nodes[i].after.empty())
        ready.push_back(i);
    }
    // Mostly continues from the last node, so that streams get far ahead of
    // each other.
    while (!ready.empty() && !isStuck()) {
      if (random() % 4 == 0)
        std::swap(ready[random() % ready.size()], ready.back());
      size_t node = ready.back();
      ready.pop_back();
      nodes[node].work();
      for (size_t next : followers[node])
        if (--missing[next] == 0)
          ready.push_back(next);
    }
  });
}

} // extern "C"
