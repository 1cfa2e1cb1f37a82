//===- PlanKey.cpp - What a plan depends on -------------------------------===//

#include "PlanKey.h"

#include "shardc-rt/Plan.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include <cpuid.h>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <sstream>

using namespace shardc::run;

static std::optional<std::string> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf()))
    return std::nullopt;
  return content.str();
}

template <typename T>
static bool readAt(std::ifstream &file, uint64_t offset, T &value) {
  file.seekg(offset);
  return bool(file.read(reinterpret_cast<char *>(&value), sizeof(T)));
}

/// The build ID that the linker wrote into the library at `path`.
static std::optional<std::string> readBuildId(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr elf;
  if (!readAt(file, 0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
    return std::nullopt;
  for (int i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!readAt(file, elf.e_phoff + i * elf.e_phentsize, segment))
      return std::nullopt;
    if (segment.p_type != PT_NOTE)
      continue;
    auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
    uint64_t end = segment.p_offset + segment.p_filesz;
    for (uint64_t at = segment.p_offset; at + sizeof(Elf64_Nhdr) <= end;) {
      Elf64_Nhdr note;
      if (!readAt(file, at, note))
        return std::nullopt;
      uint64_t content = at + sizeof(note) + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= 64) {
        std::string id(note.n_descsz, '\0');
        file.seekg(content);
        if (!file.read(&id[0], id.size()))
          return std::nullopt;
        return absl::BytesToHexString(id);
      }
      at = content + padded(note.n_descsz);
    }
  }
  return std::nullopt;
}

/// Model and features of this CPU, as CPUID has them.
static std::string describeCpu() {
  std::string text;
  for (unsigned leaf : {1u, 7u}) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __get_cpuid_count(leaf, 0, &eax, &ebx, &ecx, &edx);
    // EBX of leaf 1 is the core that this runs on.
    absl::StrAppend(&text, absl::Hex(eax), " ", absl::Hex(leaf == 1 ? 0 : ebx),
                    " ", absl::Hex(ecx), " ", absl::Hex(edx), " ");
  }
  return text;
}

std::optional<std::string> shardc::run::planKey(const CompileRequest &request) {
  // All fields by name: a new one does not compile before it is in the key, or
  // plans made with another value of it would be found.
  const auto &[path, mesh, rules, target, machine, dumpDir, batchSize,
               microbatches, bucketBytes, singleDevice, verifyPartition,
               partition, objective, deviceMemory, ignoreExpectations, regather,
               matmulPrecision, dtype] = request;
  if (!dumpDir.empty() || verifyPartition || path == "-")
    return std::nullopt;
  std::optional<std::string> compiler = readBuildId(compilerPath());
  std::optional<std::string> model = readFile(path);
  if (!compiler || !model)
    return std::nullopt;
  std::string key;
  // With its length no value can look like two.
  auto add = [&key](absl::string_view name, const absl::AlphaNum &value) {
    absl::StrAppend(&key, name, " ", value.size(), ":", value, "\n");
  };
  add("compiler", *compiler);
  add("plan version", rt::planVersion);
  add("cpu", describeCpu());
  // Locations in plans name it.
  add("path", path);
  add("mesh", mesh);
  add("rules", rules);
  add("target", target);
  add("machine", machine);
  add("machine file", readFile(machine).value_or(""));
  add("batch size", batchSize);
  add("microbatches", microbatches);
  add("bucket bytes", bucketBytes);
  add("single device", singleDevice ? 1 : 0);
  add("partition", partition);
  add("objective", objective);
  add("device memory", deviceMemory);
  add("ignore expectations", ignoreExpectations ? 1 : 0);
  add("regather", regather ? 1 : 0);
  add("matmul precision", matmulPrecision);
  add("dtype", dtype);
  add("model", *model);
  return key;
}
