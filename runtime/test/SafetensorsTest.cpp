//===- SafetensorsTest.cpp - safetensors files and their faults -----------===//

#include "TemporaryFolder.h"
#include "shardc-rt/Trainer.h"

#include "checkpoint/Safetensors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

namespace {

/// A file of this header and data.
std::string makeFile(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(&bytes[0], &length, 8);
  return bytes + header + std::string(dataBytes, '\1');
}

class SafetensorsTest : public testing::Test {
protected:
  absl::StatusOr<ArrayMap> read(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return readSafetensors(path);
  }

  /// The message for a file of this header and data, behind its path.
  std::string error(const std::string &header, size_t dataBytes) {
    absl::Status status = read(makeFile(header, dataBytes)).status();
    std::string text(status.message());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StartsWith(text, path + ": ")) << text;
    return text.substr(path.size() + 2);
  }

  test::TemporaryFolder folder;
  std::string path = folder / "x.safetensors";
};

TEST_F(SafetensorsTest, RoundTrip) {
  ArrayMap arrays;
  arrays.emplace("w", HostArray(DType::F32, {3, 2}));
  arrays.emplace("flags \"of\" ä", HostArray(DType::Bool, {5}));
  arrays.emplace("half", HostArray(DType::BF16, {3}));
  arrays.emplace("scalar", HostArray(DType::I64, {}));
  arrays.emplace("nothing", HostArray(DType::F64, {0, 4}));
  std::mt19937 random(1);
  for (auto &[name, array] : arrays)
    for (std::byte &byte : array.data)
      byte = static_cast<std::byte>(name[0] == 'f' ? 1 : random());
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header().size() % 64, 0u);
  for (const SafetensorsEntry &entry : file->entries())
    EXPECT_EQ(entry.begin % byteSize(*entry.dtype), 0u) << entry.name;
  EXPECT_EQ(file->metadata().at("format"), "np");
  auto back = readSafetensors(path);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), arrays.size());
  for (const auto &[name, array] : arrays) {
    EXPECT_EQ(back->at(name).dtype, array.dtype);
    EXPECT_EQ(back->at(name).shape, array.shape);
    EXPECT_EQ(back->at(name).data, array.data);
  }
  ASSERT_TRUE(writeArrays(path, {}).ok());
  EXPECT_TRUE(readSafetensors(path)->empty());
}

TEST_F(SafetensorsTest, HalfPrecisionIsWidened) {
  std::string header =
      R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  std::string bytes = makeFile(header, 0) + std::string("\x00\x3c\x00\xc0", 4);
  auto arrays = read(bytes);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(arrays->at("h").values<float>()[0], 1);
  EXPECT_EQ(arrays->at("h").values<float>()[1], -2);
}

TEST_F(SafetensorsTest, FaultsAreNamed) {
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
      "tensor \"a\": it has 4 bytes, but F32[2] takes 8");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3),
      "tensor \"a\": its bytes are [0, 4], expected a range within the "
      "3 bytes of data");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
      "tensor \"a\": its bytes are [4, 0], expected a range within the "
      "4 bytes of data");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", 4),
      "tensor \"a\": unknown type \"F3\"");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
      "tensor \"a\": \"shape\" holds what is not an integer of at least "
      "0");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],)"
                  R"("data_offsets":[0,4]}})",
                  4),
            "tensor \"a\": its shape has too many elements");
  EXPECT_EQ(error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                  7),
            "tensor \"b\": its bytes begin at 116 of the file, expected 117, "
            "where those before it end: they overlap");
  EXPECT_EQ(error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                  9),
            "tensor \"b\": its bytes begin at 118 of the file, expected 117, "
            "where those before it end: there is a hole");
  EXPECT_EQ(
      error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 9),
      "it has 70 bytes, but its tensors end at 65");
  EXPECT_EQ(error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                  4),
            "its header: its JSON has the key \"a\" twice");
  EXPECT_EQ(error(R"({"a":{"dtype":"U8","shape":[4],"shape":[4],)"
                  R"("data_offsets":[0,4]}})",
                  4),
            "its header: its JSON has the key \"shape\" twice");
  EXPECT_EQ(error(R"({"a":[]})", 0), "tensor \"a\": expected an object");
  EXPECT_EQ(error(R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4),
            "tensor \"a\": \"dtype\" is missing");
  EXPECT_EQ(error(R"({"__metadata__":{"a":3}})", 0),
            "its metadata: \"a\" is not a string");
  EXPECT_EQ(error(R"({"__metadata__":7})", 0),
            "its metadata: expected an object");
  EXPECT_EQ(error("[]", 0), "its header is not a JSON object");
  EXPECT_EQ(error("{", 0), "its header: it is not JSON");
  EXPECT_EQ(error("", 0), "its header: it is not JSON");
  std::string deep(100000, '[');
  EXPECT_EQ(error("{\"a\":" + deep, 0),
            "its header: its JSON nests deeper than 8 levels");
  EXPECT_EQ(error("{\"a\":" + deep + std::string(100000, ']') + "}", 0),
            "its header: its JSON nests deeper than 8 levels");
  EXPECT_TRUE(absl::StrContains(read("1234567").status().message(),
                                "it has fewer than 8 bytes"));
  EXPECT_TRUE(absl::StrContains(read(std::string(8, '\xff')).status().message(),
                                "its header would have"));
}

TEST_F(SafetensorsTest, EveryLengthAndByteIsChecked) {
  ArrayMap arrays;
  arrays.emplace("w", HostArray(DType::F32, {3}));
  arrays.emplace("v", HostArray(DType::F64, {2}));
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read(bytes.substr(0, length)).ok()) << length;
  // Any answer will do, but for a crash; ASan and UBSan watch.
  for (size_t at = 0; at < bytes.size() - 28; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] ^= 1 << bit;
      static_cast<void>(read(changed));
    }
}

TEST_F(SafetensorsTest, AFileThatBecomesShorterWhileItIsRead) {
  ArrayMap arrays;
  arrays.emplace("w", HostArray(DType::F32, {3}));
  ASSERT_TRUE(writeArrays(path, arrays).ok());
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, file->bytes() - 1);
  HostArray array(DType::F32, {3});
  const SafetensorsEntry &w = *file->find("w");
  EXPECT_TRUE(decodeElements(*file, w, 0, 2, array).ok());
  absl::Status status = decodeElements(*file, w, 0, 3, array);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat(path, ": cannot read 1 bytes at ", file->bytes() - 1,
                         ": the file ends before, in tensor \"w\""));
}

TEST_F(SafetensorsTest, NamesThatTheFormatCannotHold) {
  for (const char *name : {"__metadata__", "\xff"}) {
    ArrayMap arrays;
    arrays.emplace(name, HostArray(DType::F32, {1}));
    EXPECT_EQ(writeArrays(path, arrays).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(readSafetensors(folder / "none.safetensors").status().code(),
            absl::StatusCode::kNotFound);
}

} // namespace
