//===- PlanKey.cpp - The inputs of a compilation as a key -----------------===//

#include "PlanKey.h"

#include "shardc-rt/Plan.h"
#include "shardc/Pipelines/OptionTable.h"
#include "shardc/Support/InputFiles.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include <cpuid.h>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <sstream>

using namespace shardc;
using namespace shardc::run;

static std::optional<std::string> readContent(const std::string &path) {
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
    // EBX of leaf 1 names the core that this runs on.
    absl::StrAppend(&text, absl::Hex(eax), " ", absl::Hex(leaf == 1 ? 0 : ebx),
                    " ", absl::Hex(ecx), " ", absl::Hex(edx), " ");
  }
  return text;
}

std::optional<std::string> shardc::run::planKey(const CompileRequest &request) {
  const CompileOptions &options = request.options;
  bool hasSchedule = isScheduleFile(options.pipelineSchedule);
  auto isFile = [](const std::string &path) {
    constexpr uint64_t mostBytes = uint64_t(1) << 26;
    return checkInputSize(path, mostBytes).empty();
  };
  if (!options.dumpDir.empty() || options.verifyPartition || request.source ||
      !isFile(options.machine) ||
      (hasSchedule && !isFile(options.pipelineSchedule)))
    return std::nullopt;
  std::optional<std::string> compiler = readBuildId(compilerPath());
  std::optional<std::string> model = readContent(request.path);
  if (!compiler || !model)
    return std::nullopt;
  std::string key;
  // Lengths keep values apart.
  auto add = [&key](absl::string_view name, const absl::AlphaNum &value) {
    absl::StrAppend(&key, name, " ", value.size(), ":", value, "\n");
  };
  add("compiler", *compiler);
  add("plan version", rt::planVersion);
  add("cpu", describeCpu());
  // Locations in plans contain it.
  add("path", request.path);
  for (const CompileOption &option : getCompileOptions())
    add(option.name, toText(getValue(option, options)));
  add("single device", options.singleDevice ? 1 : 0);
  add("machine file", readContent(options.machine).value_or(""));
  if (hasSchedule)
    add("schedule file", readContent(options.pipelineSchedule).value_or(""));
  add("model", *model);
  return key;
}
