//===- BuiltInMachines.cpp - Machines that are known by name --------------===//
//
// Published peak figures; docs/Machines.md has the derivations. Constant data:
// thread-safe.
//
//===----------------------------------------------------------------------===//

#include "shardc/CostModel/MachineModel.h"

using namespace shardc;

// The latency of one step of a ring with the Simple protocol in NCCL's tuner
// (hwLat in src/graph/tuning.cc, commit b647562).
static constexpr double ncclNvlinkSeconds = 3.4e-6;
static constexpr double ncclPciSeconds = 5.7e-6;
static constexpr double ncclNetworkSeconds = 14e-6;

// Marketed NVLink rates count both directions; these are of one.
static constexpr NamedLink links[] = {
    {"nvlink2",
     {150e9, ncclNvlinkSeconds},
     "NVIDIA V100 whitepaper: 300 GB/s, half per direction; latency: NCCL"},
    {"nvlink3",
     {300e9, ncclNvlinkSeconds},
     "NVIDIA A100 datasheet: 600 GB/s, half per direction; latency: NCCL"},
    {"nvlink4",
     {450e9, ncclNvlinkSeconds},
     "NVIDIA H100 datasheet: 900 GB/s, half per direction; latency: NCCL"},
    {"pcie4",
     {31.5e9, ncclPciSeconds},
     "PCI Express 4.0: 16 lanes of 16 GT/s, 128b/130b; latency: NCCL"},
    {"infiniband",
     {50e9, ncclNetworkSeconds},
     "NVIDIA ConnectX-7: NDR, 400 Gb/s per direction; latency: NCCL"},
    {"infiniband-hdr",
     {25e9, ncclNetworkSeconds},
     "NVIDIA ConnectX-6: HDR, 200 Gb/s per direction; latency: NCCL"},
    {"ethernet10",
     {1.25e9, 20e-6},
     "IEEE 802.3ae: 10 Gb/s per direction; latency: Hurwitz and Feng, Initial "
     "End-to-End Performance Evaluation of 10-Gigabit Ethernet (HOTI 2003)"},
};

llvm::ArrayRef<NamedLink> shardc::getBuiltInLinks() { return links; }

static Link getLink(llvm::StringRef name) {
  for (const NamedLink &link : links)
    if (link.name == name)
      return link.link;
  return {};
}

/// Eight GPUs in a host, each with a port of its own to others, as in NVIDIA's
/// DGX.
static Machine makeGpu(const char *name, const char *source, double f64,
                       double f32, double tf32, double bf16, double memory,
                       double bandwidth, llvm::StringRef link,
                       llvm::StringRef hostLink) {
  Machine machine;
  machine.name = name;
  machine.source = source;
  const double rates[] = {f64, f32, tf32, bf16};
  std::copy(std::begin(rates), std::end(rates), machine.flopsPerSecond);
  machine.memoryBytes = memory;
  machine.memoryBytesPerSecond = bandwidth;
  machine.defaultLink = getLink(link);
  machine.devicesPerHost = machine.portsPerHost = 8;
  machine.hostLink = getLink(hostLink);
  return machine;
}

/// All virtual devices of a mesh share its cores, so they divide its rates.
static Machine makeCpu() {
  Machine machine;
  machine.name = "cpu";
  machine.source =
      "shardc-run --measure-machine on 2 cores of an AMD EPYC 9004";
  const double rates[] = {100e9, 200e9, 0, 430e9};
  std::copy(std::begin(rates), std::end(rates), machine.flopsPerSecond);
  machine.memoryBytes = 25e9;
  machine.memoryBytesPerSecond = 42e9;
  machine.isShared = true;
  machine.defaultLink = {21e9, 55e-9};
  return machine;
}

llvm::ArrayRef<Machine> shardc::getBuiltInMachines() {
  static const Machine machines[] = {
      makeCpu(),
      makeGpu("a100-40", "NVIDIA A100 datasheet (SXM, 40 GB)", 19.5e12, 19.5e12,
              156e12, 312e12, 40e9, 1555e9, "nvlink3", "infiniband-hdr"),
      makeGpu("a100-80", "NVIDIA A100 datasheet (SXM, 80 GB)", 19.5e12, 19.5e12,
              156e12, 312e12, 80e9, 2039e9, "nvlink3", "infiniband-hdr"),
      makeGpu("h100", "NVIDIA H100 datasheet (SXM), without sparsity", 67e12,
              67e12, 494.5e12, 989.5e12, 80e9, 3350e9, "nvlink4", "infiniband"),
      makeGpu("h200", "NVIDIA H200 datasheet (SXM), without sparsity", 67e12,
              67e12, 494.5e12, 989.5e12, 141e9, 4800e9, "nvlink4",
              "infiniband"),
  };
  return machines;
}
