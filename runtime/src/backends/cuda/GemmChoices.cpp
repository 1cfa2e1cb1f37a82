//===- GemmChoices.cpp - Algorithms of GEMMs that were timed --------------===//

#include "backends/cuda/GemmChoices.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace shardc::rt::cuda;

/// The separator of a line's fields: machine and GEMM, scratch memory,
/// algorithm.
static constexpr char separator = '\t';

std::optional<GemmChoices::Choice>
GemmChoices::find(const std::string &gemm) const {
  auto found = choices.find(absl::StrCat(machine, "; ", gemm));
  return found == choices.end() ? std::nullopt : std::optional(found->second);
}

void GemmChoices::add(const std::string &gemm, const Choice &choice) {
  choices[absl::StrCat(machine, "; ", gemm)] = choice;
}

std::string GemmChoices::text() const {
  std::string text;
  for (const auto &[name, choice] : choices)
    absl::StrAppend(&text, name, "\t", choice.workspaceBytes, "\t",
                    absl::BytesToHexString(absl::string_view(
                        reinterpret_cast<const char *>(&choice.algorithm),
                        sizeof(choice.algorithm))),
                    "\n");
  return text;
}

void GemmChoices::read(const std::string &text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<std::string> fields = absl::StrSplit(line, separator);
    Choice choice;
    if (fields.size() != 3 ||
        !absl::SimpleAtoi(fields[1], &choice.workspaceBytes) ||
        fields[2].size() != 2 * sizeof(choice.algorithm) ||
        fields[2].find_first_not_of("0123456789abcdef") != std::string::npos)
      continue;
    std::string bytes = absl::HexStringToBytes(fields[2]);
    std::memcpy(&choice.algorithm, bytes.data(), sizeof(choice.algorithm));
    choices[fields[0]] = choice;
  }
}

void GemmChoices::readFile(const std::string &path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  read(all.str());
}

absl::Status GemmChoices::writeFile(const std::string &path) const {
  std::string part = absl::StrCat(path, ".", getpid());
  std::ofstream file(part, std::ios::trunc);
  file << text();
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot write: ", std::strerror(errno)));
  return absl::OkStatus();
}
