// SPDX-License-Identifier: Apache-2.0
#include "cli/truth_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace culprit::cli {
namespace {

using nlohmann::json;

template <class T>
T Get(const json& object, const char* key, T otherwise) {
  const auto it = object.find(key);
  if (it == object.end()) return otherwise;
  // The library throws on a wrong type; a hand-edited file must not end us.
  if constexpr (std::is_same_v<T, std::string>) {
    return it->is_string() ? it->template get<std::string>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return it->is_boolean() ? it->template get<bool>() : otherwise;
  } else {
    return it->is_number_integer() ? it->template get<T>() : otherwise;
  }
}

PlantedBug ParseBug(const json& object) {
  PlantedBug bug;
  bug.name = Get<std::string>(object, "name", "");
  bug.kind = Get<std::string>(object, "kind", "");
  bug.event_kind = Get<std::string>(object, "event_kind", "wait");
  bug.cost_ns = Get<int64_t>(object, "cost_ns", 0);
  bug.noise = Get<bool>(object, "noise", false);
  if (const auto it = object.find("pattern"); it != object.end() && it->is_array()) {
    for (const json& frame : *it) {
      if (frame.is_string()) bug.pattern.push_back(frame.get<std::string>());
    }
  }
  if (const auto it = object.find("instances"); it != object.end() && it->is_array()) {
    bug.instances = it->size();
  }
  return bug;
}

}  // namespace

bool PlantedBug::Matches(const std::vector<std::string>& frames) const {
  size_t found = 0;
  for (const std::string& frame : frames) {
    if (found < pattern.size() && frame == pattern[found]) ++found;
  }
  return !pattern.empty() && found == pattern.size();
}

Result<std::vector<PlantedBug>> ReadTruth(const std::string& corpus_folder) {
  const std::string path = corpus_folder + "/truth.json";
  std::vector<PlantedBug> bugs;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return bugs;
  CULPRIT_ASSIGN(std::string text, ReadWholeFile(path));
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("bugs") || !document["bugs"].is_array()) {
    return Error{.message = "is not a truth file: no JSON object with \"bugs\"", .file = path};
  }
  for (const json& object : document["bugs"]) {
    if (object.is_object()) bugs.push_back(ParseBug(object));
  }
  return bugs;
}

}  // namespace culprit::cli
