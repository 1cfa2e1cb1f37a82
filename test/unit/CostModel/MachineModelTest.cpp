//===- MachineModelTest.cpp - Machines and the costs of their links -------===//

#include "shardc/CostModel/MachineModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace shardc;
using llvm::StringRef;
using testing::HasSubstr;

static constexpr const char *example = R"({
  "name": "two nodes",
  "source": "the manual",
  "device": {
    "flops_per_second": {"f64": 1e12, "f32": 2e12, "tf32": 8e12, "bf16": 16e12},
    "memory_bytes": 80e9,
    "memory_bytes_per_second": 2e12
  },
  "f32_gemms": "tf32",
  "default_link": {"bytes_per_second": 100, "latency_seconds": 0.5},
  "axes": {
    "data": {"bytes_per_second": 10, "latency_seconds": 2},
    "model": "nvlink4"
  }
})";

static Machine parse(StringRef json) {
  llvm::Expected<Machine> machine = parseMachine(json, "m.json");
  EXPECT_TRUE(bool(machine)) << llvm::toString(machine.takeError());
  return machine ? *machine : Machine();
}

static std::string getError(StringRef json) {
  llvm::Expected<Machine> machine = parseMachine(json, "m.json");
  return machine ? "" : llvm::toString(machine.takeError());
}

/// The example with `from` replaced by `to`.
static std::string replaced(const std::string &from, const std::string &to) {
  std::string text = example;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineFile, ReadsEveryField) {
  Machine machine = parse(example);
  EXPECT_EQ(machine.name, "two nodes");
  EXPECT_EQ(machine.source, "the manual");
  EXPECT_EQ(machine.getFlopsPerSecond(ComputeType::F64), 1e12);
  EXPECT_EQ(machine.getFlopsPerSecond(ComputeType::F32), 2e12);
  EXPECT_EQ(machine.getMatmulFlopsPerSecond(ComputeType::F32), 8e12);
  EXPECT_EQ(machine.getMatmulFlopsPerSecond(ComputeType::BF16), 16e12);
  EXPECT_EQ(machine.memoryBytes, 80e9);
  EXPECT_EQ(machine.memoryBytesPerSecond, 2e12);
  EXPECT_FALSE(machine.isShared);
  EXPECT_EQ(machine.getLink("data").bytesPerSecond, 10);
  EXPECT_EQ(machine.getLink("data").latencySeconds, 2);
  EXPECT_EQ(machine.getLink("model").bytesPerSecond, 450e9);
  EXPECT_EQ(machine.getLink("other").bytesPerSecond, 100);
}

TEST(MachineFile, ReferencesBuiltInMachines) {
  Machine machine =
      parse(R"({"device": "h100", "axes": {"data": "infiniband"}})");
  EXPECT_EQ(machine.memoryBytes, 80e9);
  EXPECT_EQ(machine.getLink("data").bytesPerSecond, 50e9);
  EXPECT_EQ(machine.getLink("model").bytesPerSecond, 450e9);
}

static constexpr const char *twoLevels = R"({
  "device": "h100",
  "default_link": {"bytes_per_second": 1000, "latency_seconds": 1},
  "hosts": {"devices": 4, "link": {"bytes_per_second": 40, "latency_seconds": 8},
            "ports": 2}
})";

TEST(MachineFile, PlacesAxesOnHosts) {
  // Two ports of 40 for four devices.
  auto place = [](std::vector<LinkAxis> axes) {
    Machine machine = parse(twoLevels);
    machine.placeOnHosts(axes);
    return machine;
  };
  Machine inside = place({{"model", 4}});
  EXPECT_EQ(inside.getLink("model").bytesPerSecond, 1000);
  // Each of four rings has a quarter of the ports.
  Machine across = place({{"data", 2}, {"model", 4}});
  EXPECT_EQ(across.getLink("data").bytesPerSecond, 20);
  EXPECT_EQ(across.getLink("data").latencySeconds, 8);
  EXPECT_EQ(across.getLink("model").bytesPerSecond, 1000);
  EXPECT_EQ(across.getLink("model").latencySeconds, 1);
  // One ring has all ports; of two rings each has one.
  EXPECT_EQ(place({{"data", 8}}).getLink("data").bytesPerSecond, 80);
  Machine both = place({{"stage", 2}, {"data", 4}, {"model", 2}});
  EXPECT_EQ(both.getLink("stage").bytesPerSecond, 20);
  EXPECT_EQ(both.getLink("data").bytesPerSecond, 40);
  EXPECT_EQ(both.getLink("model").bytesPerSecond, 1000);
  // An axis of one device has no link, and crosses nothing.
  EXPECT_EQ(place({{"data", 1}, {"model", 4}}).getLink("data").bytesPerSecond,
            1000);
}

TEST(MachineFile, NamesOfAxesComeBeforeHosts) {
  Machine machine =
      parse(R"({"device": "a100-40", "axes": {"data": "pcie4"}})");
  EXPECT_EQ(machine.devicesPerHost, 8);
  machine.placeOnHosts({{"stage", 2}, {"data", 16}});
  EXPECT_EQ(machine.getLink("data").bytesPerSecond, 31.5e9);
  EXPECT_EQ(machine.getLink("stage").bytesPerSecond, 25e9);
  // A link for all other axes leaves no hosts.
  machine = parse(R"({"device": "a100-40", "default_link": "ethernet10"})");
  EXPECT_TRUE(machine.hasOneLink(1024));
  EXPECT_FALSE(parse(R"({"device": "a100-40"})").hasOneLink(16));
  EXPECT_TRUE(parse(R"({"device": "a100-40"})").hasOneLink(8));
}

static constexpr const char *measuredCollectives = R"({
  "device": "h100",
  "default_link": {"bytes_per_second": 1000, "latency_seconds": 1},
  "collectives": {
    "all_reduce": {
      "devices=4": {"100": 2, "10000": 8},
      "devices=4,apart=4": {"100": 5}
    }
  }
})";

TEST(MachineFile, TakesMeasuredCollectives) {
  Machine machine = parse(measuredCollectives);
  auto getSeconds = [&](CollectiveKind kind, int64_t bytes,
                        std::vector<LinkAxis> axes) {
    return getCollectiveSeconds(machine, kind, bytes, axes);
  };
  constexpr CollectiveKind reduce = CollectiveKind::AllReduce;
  // Between 100 and 10000 bytes, half way in logarithms, half way between 2
  // and 8 seconds.
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 1000, {{"model", 4}}), 4);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 100, {{"model", 4}}), 2);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 10000, {{"model", 4}}), 8);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 1, {{"model", 4}}), 2);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 30000, {{"model", 4}}), 24);
  // Neighbours apart: the nearest that has been measured.
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 200, {{"data", 4, 4}}), 10);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 200, {{"data", 4, 64}}), 10);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 100, {{"a", 2, 2}, {"b", 2, 1}}), 2);
  EXPECT_DOUBLE_EQ(
      getSeconds(reduce, 100, {{"a", 2, 8}, {"b", 1, 8}, {"c", 2, 4}}), 5);
  // Not measured: other sizes, other kinds, axes with one between them.
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 100, {{"model", 2}}), 2 + 0.1);
  EXPECT_DOUBLE_EQ(getSeconds(CollectiveKind::AllGather, 100, {{"model", 4}}),
                   2 + 0.1);
  EXPECT_DOUBLE_EQ(getSeconds(reduce, 100, {{"a", 2, 4}, {"b", 2, 1}}),
                   4 + 0.1);
  EXPECT_FALSE(machine.hasOneLink(4));
}

/// Bounds of times follow from links that are as fast as any collective.
TEST(MachineFile, NoMeasuredCollectiveIsFasterThanTheFastestLinks) {
  Machine machine = parse(measuredCollectives);
  Machine fastest = machine.withFastestLinks();
  EXPECT_EQ(fastest.defaultLink.latencySeconds, 0);
  EXPECT_EQ(fastest.defaultLink.bytesPerSecond, 1250);
  for (int64_t bytes = 1; bytes < 1'000'000; bytes *= 3)
    for (int64_t size : {2, 4})
      for (int64_t apart : {1, 4}) {
        std::vector<LinkAxis> axes = {{"x", size, apart}};
        // But for the last bit, where both are the fastest.
        constexpr double rounding = 1 + 1e-15;
        EXPECT_LE(getWireSeconds(fastest, bytes, axes),
                  rounding * getCollectiveSeconds(machine,
                                                  CollectiveKind::AllReduce,
                                                  bytes, axes));
      }
  EXPECT_EQ(parse(twoLevels).withFastestLinks().defaultLink.latencySeconds, 1);
}

TEST(MachineFile, SaysWhatIsWrongWithCollectives) {
  auto with = [](const std::string &collectives) {
    return getError(R"({"device": "h100", "default_link": )"
                    R"({"bytes_per_second": 1, "latency_seconds": 0}, )"
                    R"("collectives": )" +
                    collectives + "}");
  };
  EXPECT_THAT(with("8"), HasSubstr("collectives: expected an object, found 8"));
  EXPECT_THAT(with(R"({"allreduce": {}})"),
              HasSubstr("unknown key; did you mean 'all_reduce'?"));
  for (const char *group :
       {"4", "devices", "devices=1", "devices=4,away=2", "apart=2,devices=4"})
    EXPECT_THAT(
        with(std::string(R"({"all_reduce": {")") + group + R"(": {"8": 1}}})"),
        HasSubstr("collectives.all_reduce: expected groups such as "
                  "\"devices=4\" or \"devices=4,apart=2\", of at "
                  "least two devices, found '" +
                  std::string(group) + "'"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {}}})"),
              HasSubstr("collectives.all_reduce.devices=4: expected at least "
                        "one time"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {"1k": 1}}})"),
              HasSubstr("expected numbers of bytes as keys, found '1k'"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {"8": 0}}})"),
              HasSubstr("expected a number from 1e-12"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {"8": 1, "08": 2}}})"),
              HasSubstr("expected each number of bytes once"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {"8": 2, "16": 1}}})"),
              HasSubstr("expected that more bytes take no less time"));
  EXPECT_THAT(with(R"({"all_reduce": {"devices=4": {"8": 2},)"
                   R"( "devices=4,apart=1": {"8": 1}}})"),
              HasSubstr("collectives.all_reduce: expected each group once"));
  EXPECT_THAT(with(R"({"send": {"devices=2": {"8": 2}}})"),
              HasSubstr("unknown key"));
  // The times would hide what leaves a host.
  EXPECT_THAT(getError(R"({"device": "h100", "collectives": {}})"),
              HasSubstr("expected neither 'axes' nor hosts"));
  EXPECT_THAT(getError(R"({"device": "cpu", "computer": {"workers": 1,
                "vector_lanes": 8, "vector_terms": 0, "partial_vector_terms": 0,
                "command_seconds": 0, "memory_bytes_per_second": 1e9},
                "collectives": {}})"),
              HasSubstr("collectives: expected none"));
}

TEST(MachineFile, SaysWhatIsWrongWithHosts) {
  auto with = [](const std::string &hosts) {
    return getError("{\"device\": \"h100\", \"hosts\": " + hosts + "}");
  };
  EXPECT_THAT(with("8"), HasSubstr("hosts: expected an object, found 8"));
  EXPECT_THAT(with("{}"), HasSubstr("hosts: expected the key \"link\""));
  EXPECT_THAT(with(R"({"devices": 1.5, "link": "ethernet10"})"),
              HasSubstr("hosts.devices: expected an integer"));
  EXPECT_THAT(with(R"({"devices": 0, "link": "ethernet10"})"),
              HasSubstr("hosts.devices: expected a number from 1 to"));
  EXPECT_THAT(with(R"({"devices": 8, "link": "ethernet"})"),
              HasSubstr("hosts.link: unknown link 'ethernet'"));
  EXPECT_THAT(with(R"({"devices": 8, "link": "ethernet10", "port": 2})"),
              HasSubstr("unknown key; did you mean 'ports'?"));
  EXPECT_THAT(getError(R"({"device": "cpu", "hosts": {"devices": 8,
                           "link": "ethernet10"}})"),
              HasSubstr("hosts: expected none"));
}

TEST(MachineFile, TakesKeysByTheirFormerNames) {
  Machine machine = parse(replaced("\"f32_gemms\"", "\"f32_products\""));
  EXPECT_EQ(machine.f32MatmulType, ComputeType::TF32);
}

TEST(MachineFile, SaysWhatIsWrongAndWhere) {
  const std::pair<std::string, const char *> cases[] = {
      {"", "m.json: [1:0"},
      {"[]", "m.json: expected an object, found an array"},
      {"{}", "m.json: expected the key \"device\", which is missing"},
      {"{\"device\": \"h10\"}",
       "m.json: device: unknown device 'h10'; did you mean 'h100'?"},
      {"{\"device\": 7}", "m.json: device: expected an object, found 7"},
      {replaced("\"model\"", "\"model\" x"), "m.json: [13:"},
      {replaced("\"f32_gemms\"", "\"f32_gemm\""),
       "m.json: f32_gemm: unknown key; did you mean 'f32_gemms'?"},
      {replaced("\"f32_gemms\"", "\"f32_products\": \"tf32\", \"f32_gemms\""),
       "m.json: f32_products: the former name of 'f32_gemms', which is given, "
       "too; expected one of them"},
      {replaced("\"tf32\",", "7,"),
       "m.json: f32_gemms: expected a string, found 7"},
      {replaced("\"tf32\",", "\"f16\","),
       "m.json: f32_gemms: expected \"f32\" or \"tf32\", found \"f16\""},
      {replaced("\"tf32\": 8e12, ", ""), "of which the device has no FLOP/s"},
      {replaced("\"f64\": 1e12", "\"f64\": -1"),
       "m.json: device.flops_per_second.f64: expected a number from 1 to "
       "1e+24, found -1"},
      {replaced("\"f64\": 1e12", "\"f64\": 1e999"),
       "m.json: device.flops_per_second.f64: expected a number from 1"},
      // Estimates would overflow.
      {replaced("\"f64\": 1e12", "\"f64\": 1e-310"), "found 1e-310"},
      {replaced("\"f64\": 1e12", "\"f64\": 1e300"), "found 1e+300"},
      {replaced("\"bytes_per_second\": 100", "\"bytes_per_second\": 1e-320"),
       "m.json: default_link.bytes_per_second: expected a number from 1 to "
       "1e+24"},
      {replaced("\"latency_seconds\": 0.5", "\"latency_seconds\": 1e300"),
       "m.json: default_link.latency_seconds: expected a number from 0 to "
       "1e+06, found 1e+300"},
      {replaced("\"f64\": 1e12", "\"f64\": NaN"), "m.json: [5:"},
      {replaced("\"f64\": 1e12", "\"f64\": \"fast\""), "found \"fast\""},
      {replaced("\"f64\": 1e12, ", ""),
       "m.json: device.flops_per_second: expected the key \"f64\", which is "
       "missing"},
      {replaced("\"memory_bytes\": 80e9", "\"memory_bytes\": 0"),
       "m.json: device.memory_bytes: expected a number from 1 to 1e+18, found "
       "0"},
      {replaced("\"latency_seconds\": 2", "\"latency_seconds\": -2"),
       "m.json: axes.data.latency_seconds: expected a number from 0 to "
       "1e+06, found -2"},
      {replaced("\"latency_seconds\": 2", "\"latency\": 2"),
       "m.json: axes.data.latency: unknown key"},
      {replaced("\"nvlink4\"", "\"nvlink\""),
       "m.json: axes.model: unknown link 'nvlink'; did you mean 'nvlink2'?"},
      {replaced("\"name\": \"two nodes\"", "\"name\": 2"),
       "m.json: name: expected a string, found 2"},
      {replaced("\"name\"", "\"shared\": \"yes\", \"name\""),
       "m.json: shared: expected true or false, found \"yes\""},
      {replaced("{\"bytes_per_second\": 100, \"latency_seconds\": 0.5}", "[]"),
       "m.json: default_link: expected an object, found an array"},
      {replaced("\"default_link\"", "\"name\""),
       "the key \"name\" is given twice"},
      {"{\"device\": \"h100\",\n \"axes\": {\"a\": \"pcie4\", \"\\u0061\": 1}}",
       "m.json:2: the key \"a\" is given twice"},
      {"{\"device\": \"h100\", \"axes\": {\"name\": \"nvlin\"}, \"name\": "
       "\"name\"}",
       "m.json: axes.name: unknown link"},
      {"\n\n" + std::string(100000, '['), "m.json:3: expected at most 16"},
      {"{\"name\": \"\xff\"}", "m.json: "},
  };
  for (const auto &[json, expected] : cases)
    EXPECT_THAT(getError(json), HasSubstr(expected)) << json.substr(0, 1000);
}

static constexpr const char *computer = R"({"device": "cpu", "computer": {
  "workers": 2, "vector_lanes": 8, "vector_terms": 2, "partial_vector_terms": 30,
  "command_seconds": 1e-7, "piece_seconds": 6e-9, "exchange_bytes_per_second": 4e10,
  "factor_bytes_per_second": {"4194304": 6e10, "67108864": 2e10},
  "memory_bytes_per_second": {"1048576": 1e11, "262144": 2e11, "67108864": 25e9},
  "replace_bytes_per_second": {"262144": 3e11, "67108864": 5e10}
}})";

/// It with `from` replaced by `to`.
static std::string computerWith(const std::string &from,
                                const std::string &to) {
  std::string text = computer;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineFile, ReadsRatesOfAComputer) {
  Machine machine = parse(computer);
  ASSERT_TRUE(machine.computer);
  const ComputerRates &rates = *machine.computer;
  EXPECT_EQ(rates.workers, 2);
  EXPECT_EQ(rates.vectorLanes, 8);
  EXPECT_EQ(rates.vectorTerms, 2);
  EXPECT_EQ(rates.partialVectorTerms, 30);
  EXPECT_EQ(rates.commandSeconds, 1e-7);
  EXPECT_EQ(rates.pieceSeconds, 6e-9);
  EXPECT_EQ(rates.getExchangeSeconds(100, 1e12), 100 / 4e10);
  ASSERT_EQ(rates.factors.size(), 2u);
  EXPECT_EQ(rates.factors[0].bytes, 4194304);
  EXPECT_EQ(rates.factors[0].bytesPerSecond, 6e10);
  ASSERT_EQ(rates.replacing.size(), 2u);
  EXPECT_EQ(rates.replacing[1].bytes, 67108864);
  EXPECT_EQ(rates.replacing[1].bytesPerSecond, 5e10);
  ASSERT_EQ(rates.memory.size(), 3u);
  EXPECT_EQ(rates.memory[0].bytes, 262144);
  EXPECT_EQ(rates.memory[0].bytesPerSecond, 2e11);
  EXPECT_EQ(rates.memory[2].bytes, 67108864);
  EXPECT_FALSE(parse(example).computer);
  machine.shareAmong(4);
  machine.shareAmong(2);
  EXPECT_EQ(machine.numSharing, 8);
  EXPECT_EQ(machine.computer->commandSeconds, 1e-7);
}

TEST(MachineFile, ComputersHaveAllTheirRates) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {replaced("\"name\"", "\"computer\": {}, \"name\""),
       "m.json: computer: expected none: the devices of a machine that is not "
       "shared have one each"},
      {computerWith("\"workers\": 2, ", ""),
       "m.json: computer: expected the key \"workers\", which is missing"},
      {computerWith("\"workers\": 2", "\"workers\": 2.5"),
       "m.json: computer.workers: expected an integer"},
      {computerWith("\"workers\"", "\"worker\""),
       "m.json: computer.worker: unknown key; did you mean 'workers'?"},
      {computerWith("\"workers\": 2", "\"workers\": 0"),
       "m.json: computer.workers: expected a number from 1 to 1e+06, found 0"},
      {computerWith("1e-7", "-1"),
       "m.json: computer.command_seconds: expected a number from 0 to 1e+06, "
       "found -1"},
      {computerWith("6e-9", "-1"),
       "m.json: computer.piece_seconds: expected a number from 0 to 1e+06, "
       "found -1"},
      {computerWith("4e10", "0"), "m.json: computer.exchange_bytes_per_second: "
                                  "expected a number from 1 to "
                                  "1e+24, found 0"},
      {computerWith("\"memory_bytes_per_second\": {", "\"memory\": {"),
       "m.json: computer.memory: unknown key"},
      {computerWith("\"1048576\"", "\"1 MiB\""),
       "m.json: computer.memory_bytes_per_second: expected numbers of bytes as "
       "keys, found '1 MiB'"},
      {computerWith("\"1048576\"", "\"0\""), "as keys, found '0'"},
      {computerWith("\"1048576\"", "\"0262144\""),
       "m.json: computer.memory_bytes_per_second: expected each number of "
       "bytes "
       "once"},
      {computerWith("1e11", "0"),
       "m.json: computer.memory_bytes_per_second.1048576: expected a number "
       "from 1 to 1e+24, found 0"},
      {computerWith("{\"1048576\": 1e11, \"262144\": 2e11, \"67108864\": "
                    "25e9}",
                    "{}"),
       "m.json: computer.memory_bytes_per_second: expected at least one rate"},
  };
  for (const auto &[json, expected] : cases)
    EXPECT_THAT(getError(json), HasSubstr(expected)) << json;
}

/// Two types, of rows, columns and terms; all but the last dimension in the
/// other order.
static constexpr const char *times = R"("gemm_seconds": {
    "tf32": {"64": {"8": {"16": 2, "64": 8}, "2": {"16": 1, "64": 4}},
             "16": {"8": {"16": 1, "64": 2}, "2": {"16": 1, "64": 1}}},
    "bf16": {"16": {"16": {"16": 3}}}
  }, )";

TEST(MachineFile, ReadsTimesOfCommands) {
  Machine machine =
      parse(replaced("\"name\"", "\"command_seconds\": 2e-6, \"step_seconds\": "
                                 "5e-6, \"name\""));
  EXPECT_EQ(machine.commandSeconds, 2e-6);
  EXPECT_EQ(machine.stepSeconds, 5e-6);
  EXPECT_TRUE(machine.hasCommandTimes());
  EXPECT_FALSE(parse(example).hasCommandTimes());
  EXPECT_EQ(machine.hostBytesPerSecond, 0);
  machine = parse(R"({"device": "h200", "command_seconds": 3e-6,
                      "host_bytes_per_second": 5e10})");
  EXPECT_EQ(machine.commandSeconds, 3e-6);
  EXPECT_EQ(machine.hostBytesPerSecond, 5e10);
  EXPECT_EQ(machine.memoryBytesPerSecond, 4800e9);
}

TEST(MachineFile, DevicesHaveRatesByReuseDistance) {
  Machine machine = parse(
      replaced("\"memory_bytes_per_second\": 2e12",
               "\"memory_bytes_per_second\": {\"1024\": 1e12, \"64\": 4e12}"));
  ASSERT_EQ(machine.memory.size(), 2u);
  EXPECT_EQ(machine.memoryBytesPerSecond, 1e12);
  EXPECT_TRUE(machine.hasCommandTimes());
  EXPECT_DOUBLE_EQ(getSecondsPerByte(machine.memory, 1), 1 / 4e12);
  EXPECT_DOUBLE_EQ(getSecondsPerByte(machine.memory, 256), 0.625e-12);
  EXPECT_DOUBLE_EQ(getSecondsPerByte(machine.memory, 1e9), 1 / 1e12);
}

TEST(MachineFile, GemmsTakeMeasuredTimes) {
  Machine machine =
      parse(replaced("\"name\"", times + std::string("\"name\"")));
  // GEMMs of f32 compute in TF32.
  const GemmTimes &tf32 = machine.getGemmTimes(ComputeType::F32);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(16, 2, 16), 1);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(64, 8, 64), 8);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(16, 8, 64), 2);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(64, 2, 64), 4);
  // In the middle of two in logarithms, of one side or of all: the mean of the
  // eight exponents of 2.
  EXPECT_DOUBLE_EQ(tf32.getSeconds(64, 8, 32), 4);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(32, 4, 32), std::exp2(7 / 8.0));
  // Below and above.
  EXPECT_DOUBLE_EQ(tf32.getSeconds(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(tf32.getSeconds(128, 80, 640), 8 * 2 * 10 * 10);
  EXPECT_DOUBLE_EQ(
      machine.getGemmTimes(ComputeType::BF16).getSeconds(8, 32, 16), 6);
  EXPECT_TRUE(machine.getGemmTimes(ComputeType::F64).isEmpty());
}

TEST(MachineFile, GemmsTakeLongerByTheirForm) {
  Machine machine = parse(
      replaced("\"name\"", times + std::string(R"("gemm_factors": {"tf32": {
        "transpose_lhs": {"256": 2, "16": 1.5}, "transpose_rhs": {"16": 0.5}}},
      "name")")));
  const GemmTimes &tf32 = machine.getGemmTimes(ComputeType::F32);
  GemmForm form;
  auto getFactor = [&](double side) {
    return tf32.getSeconds(side, side, side, form) /
           tf32.getSeconds(side, side, side);
  };
  form.transposeLhs = true;
  EXPECT_DOUBLE_EQ(getFactor(4), 1.5);
  EXPECT_DOUBLE_EQ(getFactor(64), 1.75);
  EXPECT_DOUBLE_EQ(getFactor(1024), 2);
  // The geometric mean of the sides is 64.
  EXPECT_DOUBLE_EQ(tf32.getSeconds(64, 32, 128, form),
                   1.75 * tf32.getSeconds(64, 32, 128));
  // As without sums, which have not been measured.
  form.sumsColumns = true;
  EXPECT_DOUBLE_EQ(getFactor(1024), 2);
  form.transposeRhs = true;
  EXPECT_DOUBLE_EQ(getFactor(1024), 1);
  GemmTimes withSums = tf32;
  withSums.sumsRhs = {{16, 8}};
  EXPECT_DOUBLE_EQ(withSums.getSeconds(16, 16, 16, {true, false, true}),
                   8 * tf32.getSeconds(16, 16, 16));
}

TEST(MachineFile, SaysWhatIsWrongWithTimesOfCommands) {
  auto with = [](const std::string &keys) {
    return replaced("\"name\"", keys + ", \"name\"");
  };
  auto shared = [](const std::string &keys) {
    return computerWith("\"computer\"", keys + ", \"computer\"");
  };
  const std::pair<std::string, const char *> cases[] = {
      {with("\"command_seconds\": -1"),
       "m.json: command_seconds: expected a number from 0 to 1e+06, found -1"},
      {with("\"step_seconds\": \"short\""),
       "m.json: step_seconds: expected a number from 0 to 1e+06, found "
       "\"short\""},
      {with("\"comand_seconds\": 1"),
       "m.json: comand_seconds: unknown key; did you mean 'command_seconds'?"},
      {shared("\"command_seconds\": 1"),
       "m.json: command_seconds: expected none: 'computer' has that of devices "
       "that share one"},
      {shared("\"host_bytes_per_second\": 1e9"),
       "m.json: host_bytes_per_second: expected none: virtual devices work in "
       "the memory of the host"},
      {with("\"host_bytes_per_second\": 0"),
       "m.json: host_bytes_per_second: expected a number from 1 to 1e+24, "
       "found 0"},
      {with("\"concurrent_command_seconds\": 1"),
       "m.json: concurrent_command_seconds: expected none: the devices of a "
       "machine that is not shared have one each"},
      {shared("\"concurrent_command_seconds\": 1"),
       "m.json: concurrent_command_seconds: expected none: 'computer'"},
      {shared("\"gemm_seconds\": {}"), "m.json: gemm_seconds: expected none"},
      {with("\"gemm_seconds\": 7"),
       "m.json: gemm_seconds: expected an object, found 7"},
      {with("\"gemm_seconds\": {}, \"gemms\": {\"bf16\": {\"rows\": {\"8\": "
            "1e12}}}"),
       "m.json: gemm_seconds: expected either these or 'gemms'"},
      {with("\"gemm_seconds\": {\"f16\": {}}"),
       "m.json: gemm_seconds.f16: unknown key; did you mean 'bf16'?"},
      {with("\"gemm_seconds\": {\"bf16\": {}}"),
       "m.json: gemm_seconds.bf16: expected at least one number of elements"},
      {with("\"gemm_seconds\": {\"bf16\": {\"8\": {\"8\": {}}}}"),
       "m.json: gemm_seconds.bf16.8.8: expected at least one number of "
       "elements"},
      {with("\"gemm_seconds\": {\"bf16\": {\"8\": {\"8 columns\": {}}}}"),
       "m.json: gemm_seconds.bf16.8: expected numbers of elements as keys, "
       "found '8 columns'"},
      {with("\"gemm_seconds\": {\"bf16\": {\"8\": {\"8\": {\"8\": 0}}}}"),
       "m.json: gemm_seconds.bf16.8.8.8: expected a number from 1e-12 to "
       "1e+06, found 0"},
      {with("\"gemm_seconds\": {\"bf16\": {\"8\": {\"8\": {\"8\": 1}, "
            "\"08\": {\"8\": 1}}}}"),
       "m.json: gemm_seconds.bf16.8: expected each number of elements once"},
      {with("\"gemm_seconds\": {\"bf16\": {\"8\": {\"8\": {\"8\": 1}, "
            "\"16\": {\"16\": 1}}}}"),
       "m.json: gemm_seconds.bf16.8.16: expected the same numbers of elements "
       "as for the other sides before"},
      {with("\"gemm_factors\": {\"bf16\": {}}"),
       "m.json: gemm_factors.bf16: expected none: 'gemm_seconds' has no times "
       "of this type"},
      {with(times + std::string("\"gemm_factors\": {\"bf16\": {\"lhs\": {}}}")),
       "m.json: gemm_factors.bf16.lhs: unknown key"},
      {with(times + std::string("\"gemm_factors\": {\"bf16\": "
                                "{\"sums_rhs\": {}}}")),
       "m.json: gemm_factors.bf16.sums_rhs: expected at least one factor"},
      {with(times + std::string("\"gemm_factors\": {\"bf16\": "
                                "{\"sums_rhs\": {\"8\": 0}}}")),
       "m.json: gemm_factors.bf16.sums_rhs.8: expected a number from 0.001 to "
       "1000, found 0"},
      {replaced("\"memory_bytes_per_second\": 2e12",
                "\"memory_bytes_per_second\": {}"),
       "m.json: device.memory_bytes_per_second: expected at least one rate"},
      {replaced("\"memory_bytes_per_second\": 2e12",
                "\"memory_bytes_per_second\": {\"8\": 0}"),
       "m.json: device.memory_bytes_per_second.8: expected a number from 1 to "
       "1e+24, found 0"},
      {replaced("\"memory_bytes_per_second\": 2e12\n  }",
                "\"memory_bytes_per_second\": {\"8\": 1e12}}, \"shared\": "
                "true, \"computer\": {\"workers\": 1, \"vector_lanes\": 8, "
                "\"vector_terms\": 0, \"partial_vector_terms\": 0, "
                "\"command_seconds\": 0, \"memory_bytes_per_second\": 1e9}"),
       "m.json: device.memory_bytes_per_second: expected a number"},
  };
  for (const auto &[json, expected] : cases)
    EXPECT_THAT(getError(json), HasSubstr(expected)) << json;
}

TEST(MachineFile, ReadsLeastSecondsOfCollectives) {
  Machine machine =
      parse(computerWith("\"workers\"", "\"collectives\": {\"all_reduce\": "
                                        "{\"100\": 2, \"10000\": 8}}, "
                                        "\"workers\""));
  const ComputerRates &rates = *machine.computer;
  EXPECT_DOUBLE_EQ(rates.getLeastSeconds(CollectiveKind::AllReduce, 1), 2);
  EXPECT_DOUBLE_EQ(rates.getLeastSeconds(CollectiveKind::AllReduce, 1000), 4);
  EXPECT_DOUBLE_EQ(rates.getLeastSeconds(CollectiveKind::AllReduce, 20000), 16);
  EXPECT_EQ(rates.getLeastSeconds(CollectiveKind::AllGather, 1000), 0);
  for (auto [collectives, expected] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"8", "computer.collectives: expected an object, found 8"},
           {R"({"send": {"8": 1}})", "computer.collectives.send: unknown key"},
           {R"({"all_reduce": {}})",
            "computer.collectives.all_reduce: expected at least one time"},
           {R"({"all_reduce": {"8": 2, "16": 1}})",
            "expected that more bytes take no less time"}})
    EXPECT_THAT(getError(computerWith("\"workers\"",
                                      std::string("\"collectives\": ") +
                                          collectives + ", \"workers\"")),
                HasSubstr(expected));
}

TEST(MachineFile, GemmsWithShortSidesAreSlower) {
  // Large ones of bf16 have 16e12.
  Machine machine = parse(replaced(
      "\"name\"", R"("gemms": {"bf16": {"rows": {"16": 4e12, "4": 1e12},
      "terms": {"8": 8e12}, "columns": {"8": 32e12}}, "tf32": {"rows": {"2": 2e12}}},
      "name")"));
  const ShortSides &sides = machine.getShortSides(ComputeType::BF16);
  constexpr double large = 1e300;
  EXPECT_DOUBLE_EQ(sides.getSlowdown(large, large, large), 1);
  EXPECT_DOUBLE_EQ(sides.getSlowdown(16, large, large), 4);
  EXPECT_DOUBLE_EQ(sides.getSlowdown(4, large, large), 16);
  // Half as many rows cost twice as much, but for the FLOPs.
  EXPECT_DOUBLE_EQ(sides.getSlowdown(2, large, large), 31);
  // Between 3·16 for each product of the other sides, and nothing where large
  // GEMMs have been measured: a sixth of the way in logarithms.
  EXPECT_DOUBLE_EQ(sides.getSlowdown(32, large, large), 1 + 40 / 32.0);
  EXPECT_DOUBLE_EQ(sides.getSlowdown(1024, 1024, 1024), 1);
  // Half way in logarithms, between 15·4 and 3·16.
  EXPECT_DOUBLE_EQ(sides.getSlowdown(8, large, large), 1 + 54 / 8.0);
  // Several sides add up; one that is faster than large GEMMs costs nothing.
  EXPECT_DOUBLE_EQ(sides.getSlowdown(16, 8, 8), 1 + 3 + 0 + 1);
  // GEMMs of f32 compute in tf32.
  EXPECT_DOUBLE_EQ(
      machine.getShortSides(ComputeType::F32).getSlowdown(2, large, large), 4);
  EXPECT_TRUE(machine.getShortSides(ComputeType::F64).isEmpty());
  // Measured beyond the usual sides.
  const ShortSides longer{{{8, 1}, {2048, 0.5}}, {}, {}};
  EXPECT_DOUBLE_EQ(longer.getSlowdown(2048, large, large), 1.5);
  EXPECT_DOUBLE_EQ(longer.getSlowdown(4096, large, large), 1.25);
}

TEST(MachineFile, SaysWhatIsWrongWithGemmsAndOverlap) {
  auto with = [](const std::string &keys) {
    return getError(replaced("\"name\"", keys + ", \"name\""));
  };
  EXPECT_THAT(with("\"gemms\": 8"),
              HasSubstr("m.json: gemms: expected an object, found 8"));
  EXPECT_THAT(with(R"("gemms": {"f16": {}})"),
              HasSubstr("m.json: gemms.f16: unknown key"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {"row": {"8": 1}}})"),
              HasSubstr("gemms.bf16.row: unknown key; did you mean 'rows'?"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {"rows": {}}})"),
              HasSubstr("gemms.bf16.rows: expected at least one rate"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {"rows": {"few": 1}}})"),
              HasSubstr("gemms.bf16.rows: expected numbers of elements as "
                        "keys, found 'few'"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {"rows": {"8": 1, "08": 1}}})"),
              HasSubstr("expected each number of elements once"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {"rows": {"8": 0}}})"),
              HasSubstr("gemms.bf16.rows.8: expected a number from 1 to"));
  EXPECT_THAT(with(R"("gemms": {"bf16": {}})"),
              HasSubstr("gemms.bf16: expected at least one side"));
  EXPECT_THAT(
      with(R"("gemms": {"bf16": {"rows": {"8": 2, "16": 3, "32": 1}}})"),
      HasSubstr("gemms.bf16.rows: expected that more elements have no lower "
                "rate"));
  EXPECT_EQ(with(R"("gemms": {"bf16": {"rows": {"8": 2, "16": 2}}})"), "");
  // Rates that no GEMM has.
  EXPECT_THAT(with(R"("gemms": {"f32": {"rows": {"8": 1}}})"),
              HasSubstr("gemms.f32: expected none: GEMMs of f32 compute in "
                        "tf32 ('f32_gemms')"));
  EXPECT_THAT(getError(replaced("\"tf32\",\n",
                                "\"f32\", \"gemms\": {\"tf32\": {}},\n")),
              HasSubstr("gemms.tf32: expected none: GEMMs of f32 compute in "
                        "f32 ('f32_gemms')"));
  EXPECT_THAT(getError(R"({"device": "cpu", "gemms": {"tf32": {}}})"),
              HasSubstr("gemms.tf32: expected none: the device has no FLOP/s"));
  EXPECT_THAT(getError(computerWith("\"computer\"",
                                    R"("gemms": {"f32": {}}, "computer")")),
              HasSubstr("gemms.f32: expected none: 'computer' has"));
  EXPECT_EQ(parse(example).overlap, 1);
  EXPECT_EQ(parse(replaced("\"name\"", "\"overlap\": 0.25, \"name\"")).overlap,
            0.25);
  EXPECT_THAT(with("\"overlap\": 1.5"),
              HasSubstr("overlap: expected a number from 0 to 1, found 1.5"));
  EXPECT_THAT(getError(R"({"device": "cpu", "overlap": 0.5})"),
              HasSubstr("overlap: expected none: the cores"));
}

TEST(ComputerRates, MemoryIsSlowerTheMoreIsAccessedInBetween) {
  ComputerRates rates = *parse(computer).computer;
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(1), 1 / 2e11);
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(262144), 1 / 2e11);
  // In the middle between 1/2e11 and 1/1e11.
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(524288), 0.75e-11);
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(1048576), 1 / 1e11);
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(67108864), 1 / 25e9);
  EXPECT_DOUBLE_EQ(rates.getSecondsPerByte(1e12), 1 / 25e9);
  // What is replaced has rates of its own.
  EXPECT_DOUBLE_EQ(rates.getReplacingSecondsPerByte(1), 1 / 3e11);
  EXPECT_DOUBLE_EQ(rates.getReplacingSecondsPerByte(1e12), 1 / 5e10);
}

TEST(ComputerRates, OnlyCachesOfWorkersAreExchanged) {
  ComputerRates rates =
      *parse(computerWith("4e10", "{\"131072\": 4e10, \"8388608\": 1e15}"))
           .computer;
  EXPECT_DOUBLE_EQ(rates.getExchangeSeconds(100, 1), 100 / 4e10);
  EXPECT_DOUBLE_EQ(rates.getExchangeSeconds(100, 8388608), 100 / 1e15);
  // Right factors have their times by distance, too.
  EXPECT_DOUBLE_EQ(rates.getFactorSeconds(100, 1), 100 / 6e10);
  EXPECT_DOUBLE_EQ(rates.getFactorSeconds(100, 1048576),
                   100 * (1 / 6e10 + 1 / 2e11 - 1 / 1e11));
  EXPECT_DOUBLE_EQ(rates.getFactorSeconds(100, 1e12),
                   100 * (1 / 2e10 + 1 / 2e11 - 1 / 25e9));
  rates.factors = {{1, 1e11}};
  EXPECT_EQ(rates.getFactorSeconds(100, 1e12), 0);
  rates.factors = {};
  EXPECT_EQ(rates.getFactorSeconds(100, 1), 0);
  rates.exchange = {};
  EXPECT_EQ(rates.getExchangeSeconds(100, 1), 0);
}

TEST(MachineFile, ComputersNeedNoneOfTheirSmallerRates) {
  std::string text = computerWith("\"piece_seconds\": 6e-9, ", "");
  const std::string exchange = "\"exchange_bytes_per_second\": 4e10,";
  text.replace(text.find(exchange), exchange.size(), "");
  const size_t factors = text.find("\"factor");
  text.erase(factors, text.find("\"memory_bytes") - factors);
  const size_t replacing = text.find(",\n  \"replace");
  text.erase(replacing, text.find("\n}}") - replacing);
  Machine machine = parse(text);
  EXPECT_EQ(machine.computer->pieceSeconds, 0);
  EXPECT_TRUE(machine.computer->exchange.empty());
  EXPECT_TRUE(machine.computer->factors.empty());
  EXPECT_TRUE(machine.computer->replacing.empty());
  EXPECT_EQ(machine.computer->getReplacingSecondsPerByte(262144), 1 / 2e11);
}

TEST(MachineFile, ARateMayBeThatAtAnyDistance) {
  Machine machine =
      parse(computerWith("{\"4194304\": 6e10, \"67108864\": 2e10}", "6e10"));
  const ComputerRates &rates = *machine.computer;
  EXPECT_DOUBLE_EQ(rates.getFactorSeconds(1, 1), 1 / 6e10);
  EXPECT_DOUBLE_EQ(rates.getFactorSeconds(1, 1048576),
                   1 / 6e10 + 1 / 2e11 - 1 / 1e11);
  EXPECT_THAT(
      getError(computerWith("{\"262144\": 3e11, \"67108864\": 5e10}", "0")),
      HasSubstr("computer.replace_bytes_per_second: expected a number "
                "from 1 to 1e+24, found 0"));
}

TEST(ComputerRates, VectorsOfAResultTakeTheirTime) {
  ComputerRates rates = *parse(computer).computer;
  // Rows of two vectors, of one and a part, and of a part.
  for (bool storesPieces : {false, true})
    EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 16, 100, storesPieces),
                     10 * 2 * 102 * 8);
  EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 9, 100, false),
                   10 * (102 + 130) * 8);
  EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 3, 100, false), 10 * 130 * 8);
  // A store of one element; of one and two.
  EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 9, 100, true),
                   10 * (102 + 102) * 8);
  EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 3, 100, true), 10 * 104 * 8);
  rates.partialVectorTerms = 3;
  EXPECT_DOUBLE_EQ(rates.getMultiplyAdds(10, 3, 100, true), 10 * 103 * 8);
}

TEST(ComputerRates, PairsOfColumnsShareTheFactorOfRows) {
  ComputerRates rates = *parse(computer).computer;
  // Of four rows two pairs, of 10 terms and the 2 of a vector, and 10 shuffles.
  EXPECT_DOUBLE_EQ(rates.getPairedMultiplyAdds(16, 4, 10),
                   4 * (2 * 12 + 10) * 8);
  EXPECT_DOUBLE_EQ(rates.getPairedMultiplyAdds(17, 3, 10),
                   5 * (2 * 12 + 10) * 8);
  // Eight columns have a vector in each row, and no shuffles.
  EXPECT_GT(rates.getPairedMultiplyAdds(16, 8, 10),
            rates.getMultiplyAdds(16, 8, 10, /*storesPieces=*/true));
}

TEST(MachineFile, NeedsALinkForEveryAxis) {
  EXPECT_THAT(getError(R"({"device": {"flops_per_second": {"f64": 1, "f32": 1,
                 "bf16": 1}, "memory_bytes": 1, "memory_bytes_per_second": 1}})"),
              HasSubstr("expected the key \"default_link\", which is missing"));
}

TEST(MachineFile, EveryTruncationIsAnError) {
  StringRef text = example;
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(getError(text.take_front(length)), "") << length;
}

TEST(MachineFile, EveryChangedByteIsReadOrAnError) {
  for (size_t at = 0; at < StringRef(example).size(); ++at)
    for (char c : {'\0', '"', '{', '}', '-', '9', '\xff'}) {
      std::string text = example;
      text[at] = c;
      if (llvm::Expected<Machine> machine = parseMachine(text, "m.json"))
        EXPECT_GT(machine->memoryBytes, 0);
      else
        EXPECT_THAT(llvm::toString(machine.takeError()), HasSubstr("m.json"));
    }
}

TEST(Machines, BuiltInOnesAreComplete) {
  for (const Machine &machine : getBuiltInMachines()) {
    EXPECT_FALSE(machine.source.empty()) << machine.name;
    for (ComputeType computeType :
         {ComputeType::F64, ComputeType::F32, ComputeType::BF16})
      EXPECT_GT(machine.getFlopsPerSecond(computeType), 0) << machine.name;
    EXPECT_GT(machine.memoryBytes, 0) << machine.name;
    EXPECT_GT(machine.memoryBytesPerSecond, 0) << machine.name;
    EXPECT_GT(machine.defaultLink.bytesPerSecond, 0) << machine.name;
    EXPECT_GT(machine.defaultLink.latencySeconds, 0) << machine.name;
    llvm::Expected<Machine> loaded = loadMachine(machine.name);
    ASSERT_TRUE(bool(loaded));
    EXPECT_EQ(loaded->name, machine.name);
  }
  for (const NamedLink &link : getBuiltInLinks())
    EXPECT_GT(link.link.bytesPerSecond, 0) << link.name.str();
}

TEST(Machines, UnknownNamesAreErrors) {
  auto load = [](StringRef name) {
    llvm::Expected<Machine> machine = loadMachine(name);
    return machine ? "" : llvm::toString(machine.takeError());
  };
  EXPECT_EQ(load("h10"), "unknown machine 'h10'; did you mean 'h100'?");
  EXPECT_THAT(load("nvlink4"), HasSubstr("is a link between devices"));
  EXPECT_THAT(load("no/such/file.json"),
              HasSubstr("cannot read 'no/such/file.json': "));
  EXPECT_NE(load(""), "");
}

TEST(Machines, SharedDevicesDivideRates) {
  Machine machine = parse(example);
  machine.shareAmong(4);
  EXPECT_EQ(machine.getLink("data").bytesPerSecond, 10);
  machine.isShared = true;
  machine.shareAmong(4);
  EXPECT_EQ(machine.getFlopsPerSecond(ComputeType::F32), 5e11);
  EXPECT_EQ(machine.memoryBytes, 20e9);
  EXPECT_EQ(machine.memoryBytesPerSecond, 5e11);
  EXPECT_EQ(machine.getLink("data").bytesPerSecond, 2.5);
  EXPECT_EQ(machine.getLink("other").bytesPerSecond, 25);
  EXPECT_EQ(machine.getLink("data").latencySeconds, 2);
}

TEST(Machines, SharedDevicesTakeTurns) {
  Machine machine = parse(R"({"device": {
    "flops_per_second": {"f64": 1e12, "f32": 1e12, "bf16": 1e12},
    "memory_bytes": 1e9, "memory_bytes_per_second": {"1024": 8e9, "4096": 4e9}},
    "shared": true, "step_seconds": 7, "command_seconds": 2,
    "default_link": {"bytes_per_second": 8, "latency_seconds": 1},
    "collectives": {"all_reduce": {"devices=4": {"100": 1, "10000": 10},
                                   "devices=16": {"100": 5}}}})");
  Machine one = machine, beside = machine;
  machine.shareAmong(8);
  EXPECT_EQ(machine.stepSeconds, 7);
  EXPECT_EQ(machine.commandSeconds, 16);
  ASSERT_EQ(machine.memory.size(), 2u);
  EXPECT_EQ(machine.memory[0].bytes, 128);
  EXPECT_EQ(machine.memory[0].bytesPerSecond, 1e9);
  one.shareAmong(1);
  EXPECT_EQ(one.commandSeconds, 2);
  // Starts beside each other, until there are too many.
  beside.concurrentCommandSeconds = 0.5;
  Machine few = beside;
  few.shareAmong(3);
  EXPECT_EQ(few.commandSeconds, 2);
  beside.shareAmong(8);
  EXPECT_EQ(beside.commandSeconds, 4);
  // Two groups of four send as much as one that sends twice as much.
  const LinkAxis apart[] = {{"data", 2, 4}, {"model", 2, 1}};
  auto getSeconds = [&](double bytes, llvm::ArrayRef<LinkAxis> axes) {
    return getCollectiveSeconds(machine, CollectiveKind::AllReduce,
                                static_cast<int64_t>(bytes), axes);
  };
  EXPECT_DOUBLE_EQ(getSeconds(5000, apart), 10);
  EXPECT_DOUBLE_EQ(getSeconds(500, {{"data", 4, 1}}), std::sqrt(10));
  // The nearest number of devices that was measured.
  EXPECT_DOUBLE_EQ(getSeconds(5000, {{"data", 5, 1}}), 10);
  EXPECT_DOUBLE_EQ(getSeconds(200, {{"data", 12, 1}}), 5);
  // No collective takes less on the fastest links.
  Machine fastest = machine.withFastestLinks();
  fastest.collectives.clear();
  for (int64_t bytes : {1, 100, 5000, 1000000})
    EXPECT_LE(getCollectiveSeconds(fastest, CollectiveKind::AllReduce, bytes,
                                   {{"data", 4, 1}}),
              getSeconds(static_cast<double>(bytes), {{"data", 4, 1}}));
}

TEST(CollectiveSeconds, WireTimeIsThatOfTheSlowestLink) {
  Machine machine = parse(example);
  EXPECT_EQ(getWireSeconds(machine, 50, {{"data", 4}}), 5);
  EXPECT_EQ(getWireSeconds(machine, 50, {{"other", 4}}), 0.5);
  EXPECT_EQ(getWireSeconds(machine, 50, {{"other", 4}, {"data", 2}}), 5);
  // An axis of one device carries nothing.
  EXPECT_EQ(getWireSeconds(machine, 50, {{"other", 4}, {"data", 1}}), 0.5);
}

TEST(CollectiveSeconds, LatencyCountsSteps) {
  Machine machine = parse(example);
  auto latency = [&](CollectiveKind kind, llvm::ArrayRef<LinkAxis> axes) {
    return getLatencySeconds(machine, kind, axes);
  };
  EXPECT_EQ(latency(CollectiveKind::AllReduce, {{"data", 8}}), 2 * 3 * 2);
  EXPECT_EQ(latency(CollectiveKind::AllGather, {{"data", 8}}), 3 * 2);
  EXPECT_EQ(latency(CollectiveKind::ReduceScatter, {{"data", 5}}), 3 * 2);
  EXPECT_EQ(latency(CollectiveKind::AllToAll, {{"data", 5}}), 4 * 2);
  EXPECT_EQ(latency(CollectiveKind::CollectivePermute, {{"data", 5}}), 2);
  EXPECT_EQ(latency(CollectiveKind::AllReduce, {{"data", 1}}), 0);
  EXPECT_EQ(latency(CollectiveKind::AllGather, {{"data", 4}, {"other", 2}}),
            2 * 2 + 0.5);
  EXPECT_EQ(getCollectiveSeconds(machine, CollectiveKind::AllGather, 50,
                                 {{"data", 8}}),
            6 + 5);
}
