//===- RankProperties.cpp - What all processes must share -----------------===//

#include "comm/RankProperties.h"

#include "comm/Socket.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <map>
#include <nlohmann/json.hpp>

using namespace shardc::rt;

using Json = nlohmann::json;

std::string
shardc::rt::formatProperties(absl::Span<const RankProperty> properties) {
  Json json = {{"host", hostName()}, {"properties", Json::object()}};
  for (const RankProperty &property : properties)
    json["properties"][property.name] = property.text;
  // Paths may have any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {
struct Properties {
  std::string host;
  std::map<std::string, std::string> texts; ///< By name.

  std::string text(const std::string &name) const {
    auto found = texts.find(name);
    return found == texts.end() ? absl::StrCat("no ", name) : found->second;
  }
};
} // namespace

static Properties parse(const std::string &text) {
  Properties properties;
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json["host"].is_string() ||
      !json["properties"].is_object())
    return properties;
  properties.host = json["host"];
  for (const auto &[name, value] : json["properties"].items())
    if (value.is_string())
      properties.texts[name] = value;
  return properties;
}

std::vector<RankDifference>
shardc::rt::findDifferences(absl::Span<const std::string> all) {
  std::vector<RankDifference> differences;
  std::map<std::string, bool> isNamed;
  const Properties first = parse(all[0]);
  for (int rank = 1; rank < static_cast<int>(all.size()); ++rank) {
    if (all[rank] == all[0])
      continue;
    const Properties other = parse(all[rank]);
    std::map<std::string, std::string> either = first.texts;
    either.insert(other.texts.begin(), other.texts.end());
    for (const auto &[name, text] : either)
      if (first.text(name) != other.text(name) && !isNamed[name]) {
        isNamed[name] = true;
        differences.push_back(
            {rank, other.host, name, other.text(name), first.text(name)});
      }
  }
  return differences;
}

absl::Status
shardc::rt::toStatus(absl::Span<const RankDifference> differences) {
  if (differences.empty())
    return absl::OkStatus();
  std::string text = absl::StrJoin(
      differences, "; ", [](std::string *out, const RankDifference &one) {
        absl::StrAppend(out, "rank ", one.rank, " on ", one.host, " has ",
                        one.text, ", and rank 0 has ", one.textOfFirst);
      });
  return absl::InvalidArgumentError(
      absl::StrCat(text, ": all processes must have the same"));
}
