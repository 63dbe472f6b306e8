// SPDX-License-Identifier: Apache-2.0
#include "import/pprof_legacy.h"

#include <algorithm>

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

// "START-END" in hexadecimal, a colon behind it or not.
bool ParseExtent(std::string_view word, Profile::Mapping& mapping) {
  if (word.ends_with(':')) word.remove_suffix(1);
  const size_t dash = word.find('-');
  if (dash == word.npos) return false;
  const auto start = ParseHexadecimal(word.substr(0, dash));
  const auto limit = ParseHexadecimal(word.substr(dash + 1));
  if (!start || !limit || *limit <= *start) return false;
  mapping.start = *start;
  mapping.limit = *limit;
  return true;
}

bool IsPermissions(std::string_view word) {
  return word.size() == 4 && word.find_first_not_of("rwxps-") == word.npos;
}

// "(Work.java:17)": file and line; "(Unknown Source)" is no file.
void ParseSource(std::string_view source, Profile::Function& function, Profile::Line& line) {
  const size_t colon = source.rfind(':');
  if (colon == source.npos) {
    if (source != "Unknown Source" && source != "Native Method") function.file = source;
    return;
  }
  const auto number = ParseDecimal(source.substr(colon + 1));
  function.file = source.substr(0, colon);
  if (number && *number > 0 && *number <= UINT32_MAX) line.line = static_cast<uint32_t>(*number);
}

}  // namespace

std::string_view TakeLine(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void LegacyProfile::AddSample(const std::vector<uint64_t>& addresses, int64_t count, int64_t value,
                              uint64_t input_offset) {
  Profile::Sample sample;
  sample.first_location = profile_.stack_locations.size();
  sample.locations = static_cast<uint32_t>(addresses.size());
  sample.first_value = profile_.values.size();
  sample.value_count = 2;
  sample.input_offset = input_offset;
  for (const uint64_t address : addresses) {
    const auto [it, added] =
        location_of_.emplace(address, static_cast<uint32_t>(profile_.locations.size()));
    if (added) profile_.locations.push_back({.address = address});
    profile_.stack_locations.push_back(it->second);
  }
  profile_.values.push_back(count);
  profile_.values.push_back(value);
  profile_.samples.push_back(sample);
}

void LegacyProfile::ReadMemoryMap(std::string_view rest) {
  while (!rest.empty()) {
    std::string_view line = TakeLine(rest);
    Profile::Mapping mapping;
    if (!ParseExtent(TakeToken(line), mapping)) continue;
    std::string_view after = line;
    const std::string_view permissions = TakeToken(after);
    if (IsPermissions(permissions)) {
      if (permissions[2] != 'x') continue;
      mapping.offset = ParseHexadecimal(TakeToken(after)).value_or(0);
      (void)TakeToken(after);  // device
      (void)TakeToken(after);  // inode
      line = after;
    }
    mapping.path = Trim(line);
    profile_.mappings.push_back(mapping);
  }
  AttachMappings();
}

void LegacyProfile::AttachMappings() {
  std::vector<uint32_t> by_start(profile_.mappings.size());
  for (uint32_t i = 0; i < by_start.size(); ++i) by_start[i] = i;
  std::stable_sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
    return profile_.mappings[a].start < profile_.mappings[b].start;
  });
  for (Profile::Location& location : profile_.locations) {
    auto it = std::upper_bound(
        by_start.begin(), by_start.end(), location.address,
        [&](uint64_t at, uint32_t index) { return at < profile_.mappings[index].start; });
    if (it == by_start.begin()) continue;
    --it;
    if (location.address < profile_.mappings[*it].limit) location.mapping = *it;
  }
}

void LegacyProfile::ReadJavaFunctions(std::string_view rest, Diagnostics& diagnostics) {
  while (!rest.empty()) {
    std::string_view line = Trim(TakeLine(rest));
    if (!line.starts_with("0x")) continue;
    const auto address = ParseHexadecimal(TakeToken(line));
    if (!address || line.empty()) {
      diagnostics.Count("function of a Java profile that could not be read", 1,
                        static_cast<uint64_t>(line.data() - text().data()));
      continue;
    }
    const auto found = location_of_.find(*address);
    if (found == location_of_.end()) continue;
    Profile::Location& location = profile_.locations[found->second];
    if (!location.lines.empty()) continue;  // the first one counts
    Profile::Function function{.name = line};
    Profile::Line place{.function = static_cast<uint32_t>(profile_.functions.size())};
    const size_t open = line.rfind(" (");
    if (open != line.npos && line.ends_with(')')) {
      function.name = Trim(line.substr(0, open));
      ParseSource(line.substr(open + 2, line.size() - open - 3), function, place);
    }
    profile_.functions.push_back(function);
    location.lines.push_back(place);
    location.address = 0;  // it was a number, not a place
  }
}

}  // namespace culprit::import_
