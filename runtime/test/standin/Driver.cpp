//===- Driver.cpp - The stand-in's libcuda --------------------------------===//

#include "State.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>

using namespace shardc::rt::test;

namespace {

constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE;
constexpr CUresult injected = 999;     // CUDA_ERROR_UNKNOWN
constexpr CUresult unjoined = 904;     // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
constexpr CUresult isolation = 905;    // CUDA_ERROR_STREAM_CAPTURE_ISOLATION
constexpr CUresult notPermitted = 900; // ..._STREAM_CAPTURE_UNSUPPORTED

std::map<uintptr_t, uint64_t> deviceMemory, pinnedMemory;
CUcontext current = nullptr;

bool covers(const std::map<uintptr_t, uint64_t> &memory, uintptr_t address,
            uint64_t bytes) {
  auto next = memory.upper_bound(address);
  if (next == memory.begin())
    return false;
  --next;
  return address + bytes <= next->first + next->second;
}

} // namespace

// Handles are objects of the types that the driver declares.
namespace shardc::rt::cuda {
struct CUctx_st {};
struct CUfunc_st {
  std::string name;
  std::vector<size_t> parameters;
  KernelBody body;
};
struct CUmod_st {
  std::string ptx;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};
struct CUgraph_st {
  struct Node {
    std::function<void()> work;
    std::set<size_t> after;
  };
  std::vector<Node> nodes;
  std::set<CUstream> streams; ///< That take part in the capture.
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  CUgraph capturing = nullptr;
  bool isOrigin = false;
  std::set<size_t> after; ///< Of the next node.
};
struct CUevent_st {
  CUgraph captured = nullptr; ///< In which it was recorded last.
  std::set<size_t> nodes;
  int64_t queriesLeft = 0;
};
} // namespace shardc::rt::cuda

StandIn &shardc::rt::test::state() {
  static StandIn standIn = [] {
    StandIn initial;
    if (const char *path = std::getenv("SHARDC_STANDIN_KERNELS"))
      initial.kernelLibrary = path;
    return initial;
  }();
  return standIn;
}

extern "C" StandIn *shardcStandIn() { return &state(); }

bool shardc::rt::test::enter(const std::string &name,
                             const std::string &arguments) {
  StandIn &standIn = state();
  standIn.calls.push_back(name);
  standIn.details.push_back(name + "(" + arguments + ")");
  return static_cast<int64_t>(standIn.calls.size()) == standIn.failAt;
}

bool shardc::rt::test::isDevice(CUdeviceptr address, uint64_t bytes) {
  return covers(deviceMemory, address, bytes);
}

bool shardc::rt::test::isPinned(const void *address, uint64_t bytes) {
  return covers(pinnedMemory, reinterpret_cast<uintptr_t>(address), bytes);
}

CUresult shardc::rt::test::addWork(CUstream stream,
                                   std::function<void()> work) {
  if (!current)
    return invalid;
  if (!stream->capturing) {
    work();
    return CUDA_SUCCESS;
  }
  CUgraph graph = stream->capturing;
  graph->nodes.push_back({std::move(work), stream->after});
  stream->after = {graph->nodes.size() - 1};
  return CUDA_SUCCESS;
}

static std::string text(uint64_t number) { return std::to_string(number); }

/// A handle of `kind` that now lives.
template <typename T>
static CUresult give(T **place, const char *kind, std::unique_ptr<T> made) {
  *place = made.release();
  ++state().live[kind];
  return CUDA_SUCCESS;
}

/// Ends a handle even where the call is to fail, as drivers do, whose errors
/// are those of earlier work.
template <typename T>
static CUresult take(T *handle, const char *kind, bool fails) {
  delete handle;
  --state().live[kind];
  return fails ? injected : CUDA_SUCCESS;
}

/// No allocation, compilation or wait while something is captured.
static bool anyCapture = false;

extern "C" {

CUresult cuInit(unsigned) { return enter("cuInit") ? injected : 0; }

CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return enter("cuDriverGetVersion") ? injected : 0;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == injected               ? "CUDA_ERROR_UNKNOWN"
          : error == CUDA_ERROR_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
                                            : "CUDA_ERROR_OF_THE_STAND_IN";
  return 0;
}

CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "said by the stand-in";
  return 0;
}

CUresult cuDeviceGetCount(int *count) {
  *count = state().gpus;
  return enter("cuDeviceGetCount") ? injected : 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet") ? injected : 0;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  if (enter("cuDeviceGetName"))
    return injected;
  std::strncpy(name, "Stand-in GPU", length);
  return 0;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  if (enter("cuDeviceGetAttribute"))
    return injected;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
               ? state().architecture / 10
               : state().architecture % 10;
  return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  static CUctx_st primary;
  if (enter("cuDevicePrimaryCtxRetain"))
    return injected;
  *context = &primary;
  ++state().live["context"];
  return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  bool fails = enter("cuDevicePrimaryCtxRelease");
  --state().live["context"];
  return fails ? injected : 0;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (enter("cuCtxSetCurrent"))
    return injected;
  current = context;
  return 0;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                            unsigned options, int *names, void **values) {
  if (enter("cuModuleLoadDataEx"))
    return injected;
  if (anyCapture)
    return notPermitted;
  if (!state().jitError.empty()) {
    for (unsigned i = 0; i < options; ++i)
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char *>(values[i]), state().jitError.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  auto made = std::make_unique<CUmod_st>();
  made->ptx = static_cast<const char *>(image);
  return give(module, "module", std::move(made));
}

CUresult cuModuleUnload(CUmodule module) {
  return take(module, "module", enter("cuModuleUnload"));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  if (enter("cuModuleGetFunction", name))
    return injected;
  auto made = std::make_unique<CUfunc_st>();
  made->name = name;
  made->parameters = parameterSizes(module->ptx, name);
  made->body = findKernel(name);
  if (made->parameters.empty() || !made->body)
    return CUDA_ERROR_NOT_FOUND;
  *function = made.get();
  module->functions.push_back(std::move(made));
  return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (enter("cuMemAlloc", text(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!current || anyCapture)
    return notPermitted;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0x55, bytes);
  *address = reinterpret_cast<uintptr_t>(memory);
  deviceMemory[*address] = bytes;
  state().bytesAllocated += bytes;
  ++state().live["device memory"];
  return 0;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  bool fails = enter("cuMemFree");
  auto found = deviceMemory.find(address);
  if (found == deviceMemory.end())
    return invalid;
  state().bytesAllocated -= found->second;
  deviceMemory.erase(found);
  std::free(pointer(address));
  --state().live["device memory"];
  return fails ? injected : 0;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  if (enter("cuMemHostAlloc", text(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!current || anyCapture)
    return notPermitted;
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  pinnedMemory[reinterpret_cast<uintptr_t>(*address)] = bytes;
  ++state().live["pinned memory"];
  return 0;
}

CUresult cuMemFreeHost(void *address) {
  bool fails = enter("cuMemFreeHost");
  if (!pinnedMemory.erase(reinterpret_cast<uintptr_t>(address)))
    return invalid;
  std::free(address);
  --state().live["pinned memory"];
  return fails ? injected : 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyHtoDAsync", text(bytes)))
    return injected;
  if (!isDevice(to, bytes) || !isPinned(from, bytes))
    return invalid;
  return addWork(stream, [=] { std::memcpy(pointer(to), from, bytes); });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyDtoHAsync", text(bytes)))
    return injected;
  if (!isDevice(from, bytes) || !isPinned(to, bytes))
    return invalid;
  return addWork(stream, [=] { std::memcpy(to, pointer(from), bytes); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyDtoDAsync", text(bytes)))
    return injected;
  if (!isDevice(to, bytes) || !isDevice(from, bytes))
    return invalid;
  return addWork(stream,
                 [=] { std::memcpy(pointer(to), pointer(from), bytes); });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
  if (enter("cuMemcpy2DAsync",
            text(copy->WidthInBytes) + " x " + text(copy->Height)))
    return injected;
  CUDA_MEMCPY2D c = *copy;
  if (c.srcMemoryType != CU_MEMORYTYPE_DEVICE ||
      c.dstMemoryType != CU_MEMORYTYPE_DEVICE || c.srcPitch < c.WidthInBytes ||
      c.dstPitch < c.WidthInBytes ||
      !isDevice(c.srcDevice, (c.Height - 1) * c.srcPitch + c.WidthInBytes) ||
      !isDevice(c.dstDevice, (c.Height - 1) * c.dstPitch + c.WidthInBytes))
    return invalid;
  return addWork(stream, [=] {
    for (size_t row = 0; row < c.Height; ++row)
      std::memcpy(pointer(c.dstDevice + row * c.dstPitch),
                  pointer(c.srcDevice + row * c.srcPitch), c.WidthInBytes);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  if (enter("cuMemsetD8Async", text(value) + ", " + text(count)))
    return injected;
  if (!isDevice(to, count))
    return invalid;
  return addWork(stream, [=] { std::memset(pointer(to), value, count); });
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  if (enter("cuStreamCreate"))
    return injected;
  return give(stream, "stream", std::make_unique<CUstream_st>());
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
  anyCapture = true;
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
  anyCapture = false;
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
  if (!event->captured)
    return stream->capturing ? isolation : 0;
  if (stream->capturing && stream->capturing != event->captured)
    return isolation;
  stream->capturing = event->captured;
  event->captured->streams.insert(stream);
  stream->after.insert(event->nodes.begin(), event->nodes.end());
  return 0;
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  if (enter("cuEventCreate"))
    return injected;
  return give(event, "event", std::make_unique<CUevent_st>());
}

CUresult cuEventDestroy_v2(CUevent event) {
  return take(event, "event", enter("cuEventDestroy"));
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (enter("cuEventRecord"))
    return injected;
  event->captured = stream->capturing;
  event->nodes = stream->after;
  event->queriesLeft = state().queriesNotReady;
  return 0;
}

CUresult cuEventQuery(CUevent event) {
  if (enter("cuEventQuery"))
    return injected;
  if (event->captured)
    return notPermitted;
  return event->queriesLeft-- > 0 ? CUDA_ERROR_NOT_READY : 0;
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
  return take(executable, "executable graph", enter("cuGraphExecDestroy"));
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (enter("cuGraphLaunch"))
    return injected;
  return addWork(stream, [executable] {
    const auto &nodes = executable->graph.nodes;
    std::mt19937 random(state().seed++);
    std::vector<size_t> missing, ready;
    std::vector<std::vector<size_t>> followers(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      missing.push_back(nodes[i].after.size());
      for (size_t other : nodes[i].after)
        followers[other].push_back(i);
      if (nodes[i].after.empty())
        ready.push_back(i);
    }
    // Mostly as far as it goes from the last node, so that streams get far
    // ahead of each other.
    while (!ready.empty()) {
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

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **) {
  if (enter("cuLaunchKernel",
            function->name + ", " + text(gridX) + ", " + text(blockX)))
    return injected;
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes ||
      gridX == 0 || blockX == 0 || blockX > 1024)
    return invalid;
  std::vector<std::vector<char>> arguments;
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    const char *from = static_cast<const char *>(parameters[i]);
    arguments.emplace_back(from, from + function->parameters[i]);
  }
  return addWork(stream, [body = function->body, arguments, gridX] {
    body(arguments, gridX);
  });
}

} // extern "C"
