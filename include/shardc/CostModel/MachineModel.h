//===- MachineModel.h - The rates of devices and links ----------*- C++ -*-===//
//
// The rates of a device's arithmetic and memory, and of the links between
// devices: the numbers behind every estimate of time. Plain values, no IR;
// thread-safe to read. docs/Machines.md has the file format and the sources of
// the built-in numbers.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COSTMODEL_MACHINEMODEL_H
#define SHARDC_COSTMODEL_MACHINEMODEL_H

#include "shardc/CostModel/WireBytes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// How the devices along a mesh axis are connected.
struct Link {
  /// The rate at which one device sends, in one direction, while it receives at
  /// the same rate.
  double bytesPerSecond = 0;
  /// The latency of one step of a collective, in which every device sends one
  /// message.
  double latencySeconds = 0;
};

/// Type of computation with a rate of its own. NVIDIA's tensor cores multiply
/// f32 in TF32.
enum class ComputeType { F64, F32, TF32, BF16 };
constexpr unsigned numComputeTypes = 4;

/// The links along a mesh axis.
struct LinkAxis {
  llvm::StringRef name;
  /// Devices along it.
  int64_t size;
  /// The distance of neighbours along it, in devices of the mesh.
  int64_t apart = 1;
};

/// The time of one kind of collective in groups of `devices` devices, of which
/// neighbours are `apart` devices apart, as it was measured.
struct MeasuredCollective {
  CollectiveKind kind;
  int64_t devices, apart;
  /// Bytes that a device sends (getWireBytes), ascending, and seconds.
  std::vector<std::pair<double, double>> seconds;

  /// The seconds of a collective of `wireBytes`: between two measured ones on
  /// the line through both in logarithms, below all the least, and above all in
  /// proportion to the bytes.
  double getSeconds(double wireBytes) const;
};

/// How much longer GEMMs take that have a short side, as it was measured.
struct ShortSides {
  /// The elements of a side, ascending, and by how much of the time of as many
  /// FLOPs of a large GEMM one takes longer that is so short there alone.
  using Side = std::vector<std::pair<double, double>>;
  Side rows, columns, terms;
  /// The elements of each side of a GEMM that is not short anywhere, and of the
  /// other sides of those that have been measured.
  static constexpr double usual = 1024;

  bool isEmpty() const {
    return rows.empty() && columns.empty() && terms.empty();
  }
  /// The time of a GEMM of `rows` by `columns` sums of `terms` products over
  /// that of its FLOPs, at least 1. What a short side costs is about the same
  /// for each product of the other two: it falls with the elements of the side,
  /// and is added up over sides. A side of `usual` elements costs nothing.
  double getSlowdown(double rows, double columns, double terms) const;
};

/// The rate of memory where `bytes` others are accessed before the same are
/// again.
struct MemoryRate {
  double bytes = 0, bytesPerSecond = 0;
};

/// The seconds of an access to a byte after `distance` bytes: in between those
/// of `rates`, at least one by ascending bytes, linear in the logarithm of the
/// distance.
double getSecondsPerByte(llvm::ArrayRef<MemoryRate> rates, double distance);

/// How a GEMM of the library reads its factors, and what it adds up besides.
struct GemmForm {
  bool transposeLhs = false, transposeRhs = false;
  /// The gradient of a bias: the columns of a factor.
  bool sumsColumns = false;
};

/// The times of GEMMs of one type, from the start of the command to that of the
/// next, as they were measured with all combinations of some sides.
struct GemmTimes {
  /// The elements of a side, ascending, and the time of a GEMM of three such
  /// sides over that of one of the same sides without anything of GemmForm.
  using Factors = std::vector<std::pair<double, double>>;

  /// Elements of rows, columns and terms, ascending.
  std::array<std::vector<double>, 3> sides;
  /// Seconds, those of consecutive terms next to each other.
  std::vector<double> seconds;
  /// With the left factor transposed, the right one, and the left one and sums
  /// of columns of the right one. Empty: 1, or as without the sums.
  Factors transposeLhs, transposeRhs, sumsRhs;

  bool isEmpty() const { return seconds.empty(); }
  /// The seconds of a GEMM of `rows` by `columns` sums of `terms` products:
  /// between measured sides linear in the logarithms of both, below the least
  /// side its time, and above the largest in proportion to the elements. Times
  /// the factor of its form, which is linear in the logarithm of the geometric
  /// mean of its sides, and beyond those measured that of the nearest.
  double getSeconds(double rows, double columns, double terms,
                    const GemmForm &form = {}) const;
};

/// What a computer attains on the work of all virtual devices together, as
/// `shardc-run --measure-machine` finds out.
struct ComputerRates {
  /// The threads that share the work of a command.
  double workers = 1;
  /// Elements of f32 in a vector.
  double vectorLanes = 1;
  /// A GEMM loads and stores each vector of its result once. It takes as long
  /// as so many multiply-adds of that vector; the second is for the part of a
  /// vector at the end of a row.
  double vectorTerms = 0, partialVectorTerms = 0;
  /// From one command to the next, which all cores begin together.
  double commandSeconds = 0;
  /// A collective takes so long for each run of adjacent elements that it moves
  /// or adds up, however short.
  double pieceSeconds = 0;
  /// By ascending bytes; at least one.
  std::vector<MemoryRate> memory;
  /// The same of what is read and replaced, both counted; empty: as `memory`.
  std::vector<MemoryRate> replacing;
  /// A GEMM takes so much longer for its right factor: its arithmetic does not
  /// hide all of the first access. Empty: it does.
  std::vector<MemoryRate> factors;
  /// What other workers have read since then is written so much later. Empty:
  /// no later.
  std::vector<MemoryRate> exchange;
  /// By CollectiveKind: bytes that all devices read and write together,
  /// ascending, and the seconds of a collective whose workers have its operands
  /// in their caches. Empty: not measured.
  std::array<std::vector<std::pair<double, double>>,
             getMaxEnumValForCollectiveKind() + 1>
      collectives;

  /// The least seconds of a collective of `kind`: as MeasuredCollective has
  /// them; 0: not measured.
  double getLeastSeconds(CollectiveKind kind, double bytes) const;

  /// The seconds of an access to a byte after `distance` bytes.
  double getSecondsPerByte(double distance) const {
    return shardc::getSecondsPerByte(memory, distance);
  }
  /// The same where what is read is replaced.
  double getReplacingSecondsPerByte(double distance) const {
    return shardc::getSecondsPerByte(replacing.empty() ? memory : replacing,
                                     distance);
  }
  /// What writing `bytes` that other workers have read takes beyond an access
  /// after `distance` bytes.
  double getExchangeSeconds(double bytes, double distance) const {
    return exchange.empty()
               ? 0
               : bytes * shardc::getSecondsPerByte(exchange, distance);
  }
  /// What `bytes` of right factors take beyond an access after `distance`
  /// bytes.
  double getFactorSeconds(double bytes, double distance) const;
  /// Multiply-adds of one element in whose time a GEMM computes `rows` rows of
  /// `columns` sums of `terms` products: vectors lie along the rows. Where
  /// `storesPieces`, the part of a vector at the end of a row is stored in
  /// pieces of 1, 2, 4 … elements, if these take less time, each as long as a
  /// whole vector.
  double getMultiplyAdds(double rows, double columns, double terms,
                         bool storesPieces) const;
  /// The same with lanes over pairs of columns of rows: a vector of a result
  /// has two columns of four rows, and one shuffle,
  /// which takes as long as a multiply-add, makes the factor of a term for all
  /// pairs of these rows.
  double getPairedMultiplyAdds(double rows, double columns, double terms) const;
};

/// A device and the links to its peers. All rates are of one device.
struct Machine {
  std::string name;
  /// The source of the numbers.
  std::string source;
  /// Floating-point operations per second, by ComputeType; a fused multiply-add
  /// is two. 0: the device does not compute in it.
  double flopsPerSecond[numComputeTypes] = {};
  /// The type in which GEMMs of f32 compute: F32, or TF32 if the machine file
  /// says so.
  ComputeType f32MatmulType = ComputeType::F32;
  double memoryBytes = 0;
  double memoryBytesPerSecond = 0;
  /// Whether all devices of the mesh are virtual ones on one such device and
  /// divide its rates; see shareAmong.
  bool isShared = false;
  /// The virtual devices that the rates have been divided by.
  int64_t numSharing = 1;
  /// If it has been measured, the rates of a shared machine that computes once
  /// what is the same on several devices.
  std::optional<ComputerRates> computer;
  /// The link of axes that `axisLinks` does not name, inside of a host.
  Link defaultLink;
  std::vector<std::pair<std::string, Link>> axisLinks;
  /// The devices of a host; 0: all devices are in one.
  int64_t devicesPerHost = 0;
  /// One port of a host to others, and the ports that its devices share.
  Link hostLink;
  int64_t portsPerHost = 1;
  /// In place of links, where they have been measured in groups of that size;
  /// of a shared machine with all devices in one group.
  std::vector<MeasuredCollective> collectives;
  /// The part of the time of a collective in which a device can compute; none
  /// if `isShared`.
  double overlap = 1;
  /// By ComputeType; empty: GEMMs take the time of their FLOPs.
  ShortSides shortSides[numComputeTypes];
  /// The same, as times of one device alone.
  GemmTimes gemmTimes[numComputeTypes];
  /// By ascending distance; empty: the rate is `memoryBytesPerSecond` after
  /// any.
  std::vector<MemoryRate> memory;
  /// From one command to the next, of all devices if `isShared`, and what a
  /// step takes besides its commands.
  double commandSeconds = 0, stepSeconds = 0;
  /// Of a shared machine: from one command to the next if they are of devices
  /// that do not wait for each other; 0: as long as if they did.
  double concurrentCommandSeconds = 0;
  /// The rate at which inputs come from the host while the device works, those
  /// of all devices if `isShared`; 0: they take no time.
  double hostBytesPerSecond = 0;

  double getFlopsPerSecond(ComputeType computeType) const {
    return flopsPerSecond[static_cast<unsigned>(computeType)];
  }
  /// The rate of GEMMs of elements of type `computeType`.
  double getMatmulFlopsPerSecond(ComputeType computeType) const {
    return getFlopsPerSecond(computeType == ComputeType::F32 ? f32MatmulType
                                                             : computeType);
  }
  /// Of GEMMs of elements of type `computeType`.
  const ShortSides &getShortSides(ComputeType computeType) const {
    return shortSides[static_cast<unsigned>(
        computeType == ComputeType::F32 ? f32MatmulType : computeType)];
  }
  const GemmTimes &getGemmTimes(ComputeType computeType) const {
    return gemmTimes[static_cast<unsigned>(
        computeType == ComputeType::F32 ? f32MatmulType : computeType)];
  }
  /// Whether the starts of commands, or the places of what they access, count.
  bool hasCommandTimes() const {
    return commandSeconds > 0 || stepSeconds > 0 || !memory.empty() ||
           llvm::any_of(gemmTimes,
                        [](const GemmTimes &one) { return !one.isEmpty(); });
  }
  const Link &getLink(llvm::StringRef axis) const;
  /// What has been measured of `kind` in groups along `axes`, outermost first:
  /// of those with as many devices the one whose neighbours are apart most
  /// nearly as far. Null: nothing, or the axes are not next to each other. Of a
  /// shared machine the one with most nearly as many devices.
  const MeasuredCollective *findMeasured(CollectiveKind kind,
                                         llvm::ArrayRef<LinkAxis> axes) const;
  /// With links by which no collective takes longer than on this machine.
  Machine withFastestLinks() const;

  /// If devices share one device (`isShared`), divides rates, memory and
  /// bandwidths, those of links included, by `devices`; latencies stay. What is
  /// between two accesses of a device is so often between them, and a command
  /// takes as long as that of each device to start, one beside or after the
  /// other. Otherwise does nothing.
  void shareAmong(int64_t devices);

  /// Places the devices of a mesh with `axes`, outermost first, on hosts one
  /// after the other, and gives a link to each axis that leaves a host, unless
  /// `axisLinks` names it. A ring along such an axis passes all ports of the
  /// host if all devices of the host are in it; otherwise the rings that begin
  /// at the other devices share them.
  void placeOnHosts(llvm::ArrayRef<LinkAxis> axes);

  /// Whether every axis of any mesh of `devices` devices has the same link.
  bool hasOneLink(int64_t devices) const {
    return axisLinks.empty() && collectives.empty() &&
           (devicesPerHost == 0 || devices <= devicesPerHost);
  }
};

/// The built-in machine `nameOrFile` if there is one of that name, else the
/// machine that the JSON file of that name describes. Errors name the file, the
/// line or the key, the expected and the found value.
llvm::Expected<Machine> loadMachine(llvm::StringRef nameOrFile);

/// The machine that the JSON `text` describes (docs/Machines.md); `file` names
/// it in errors.
llvm::Expected<Machine> parseMachine(llvm::StringRef text,
                                     llvm::StringRef file);

/// The built-in machines, in the order of docs/Machines.md.
llvm::ArrayRef<Machine> getBuiltInMachines();

/// A link of the built-in list.
struct NamedLink {
  llvm::StringLiteral name;
  Link link;
  llvm::StringLiteral source;
};
/// The built-in links, in the order of docs/Machines.md.
llvm::ArrayRef<NamedLink> getBuiltInLinks();

/// Seconds in which one device sends `wireBytes` (getWireBytes) of a collective
/// over `axes`: all of them over the slowest link of the axes of more than one
/// device. Proportional to the bytes, so sums of bytes have sums of seconds.
double getWireSeconds(const Machine &machine, int64_t wireBytes,
                      llvm::ArrayRef<LinkAxis> axes);

/// Seconds of a collective of no bytes over `axes`: its steps along each axis
/// times the axis's latency. Steps along an axis of n devices are those of the
/// algorithms that send no more than getWireBytes (Thakur, Rabenseifner, Gropp:
/// Optimization of Collective Communication Operations in MPICH, 2005):
/// ceil(log2 n) for all-gather and reduce-scatter, twice that for all-reduce,
/// n - 1 for all-to-all, 1 for a permute or a send; none if n is 1.
double getLatencySeconds(const Machine &machine, CollectiveKind kind,
                         llvm::ArrayRef<LinkAxis> axes);

/// The seconds of a collective that sends `wireBytes` over `axes`, outermost
/// first: as measured (findMeasured), or else the sum of getLatencySeconds and
/// getWireSeconds. On a shared machine those of all groups together, which are
/// the seconds of a measured group that sends as many bytes as all of them.
double getCollectiveSeconds(const Machine &machine, CollectiveKind kind,
                            int64_t wireBytes, llvm::ArrayRef<LinkAxis> axes);

} // namespace shardc

#endif // SHARDC_COSTMODEL_MACHINEMODEL_H
