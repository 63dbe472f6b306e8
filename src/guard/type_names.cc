// SPDX-License-Identifier: Apache-2.0
#include "guard/type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/diagnostics.h"
#include "symbol/debug_files.h"
#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

namespace culprit::guard {
namespace {

constexpr size_t kMaxNamePart = 60;

// What the types of one loop and kind enter: the share of a type's units, and how
// near to the loop.
struct FunctionUse {
  std::map<uint32_t, uint64_t> units_of_type;
  uint32_t level = UINT32_MAX;
};

std::vector<uint32_t> Levels(const Profile& profile) {
  std::vector<uint32_t> levels(profile.paths.size());
  for (size_t i = 0; i < levels.size(); ++i) {
    const uint32_t parent = profile.paths[i].parent;
    levels[i] = parent == kNoIndex ? 0 : levels[parent] + 1;
  }
  return levels;
}

using Uses = std::map<uint32_t, FunctionUse>;  // by function

Uses UsesOf(const Profile& profile, const std::vector<uint32_t>& levels, uint32_t loop,
            wire::UnitKind kind) {
  Uses uses;
  for (const UnitShape& shape : profile.shapes) {
    if (shape.loop != loop || shape.kind != kind) continue;
    std::set<uint32_t> seen;
    for (const uint32_t number : shape.places) {
      const uint32_t path = profile.places[number].path;
      const uint32_t function = profile.paths[path].function;
      FunctionUse& use = uses[function];
      use.level = std::min(use.level, levels[path]);
      if (seen.insert(function).second) use.units_of_type[shape.type] += shape.total_units();
    }
  }
  return uses;
}

// First a function with a name; then, if other types have it too, the one that
// fewest have.
std::string NameOf(const Profile& profile, uint32_t type, const Uses& uses) {
  struct Part {
    uint64_t types = 0;
    bool unnamed = false;
    uint32_t level = 0;
    uint32_t function = 0;
  };
  std::vector<Part> parts;
  for (const auto& [function, use] : uses) {
    const auto mine = use.units_of_type.find(type);
    if (mine == use.units_of_type.end() || mine->second * 2 < profile.types[type].units) continue;
    uint64_t types = 0;
    for (const auto& [other, units] : use.units_of_type) {
      types += units * 2 >= profile.types[other].units ? 1 : 0;
    }
    parts.push_back({types, profile.functions[function].name.empty(), use.level, function});
  }
  if (parts.empty()) return "[nothing entered]";
  const Part& main =
      *std::min_element(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
        return std::tie(x.unnamed, x.types, x.level, x.function) <
               std::tie(y.unnamed, y.types, y.level, y.function);
      });
  const Part& rarest =
      *std::min_element(parts.begin(), parts.end(), [&](const Part& x, const Part& y) {
        const bool x_is_main = x.function == main.function;
        const bool y_is_main = y.function == main.function;
        return std::tie(x_is_main, x.types, x.unnamed, x.level, x.function) <
               std::tie(y_is_main, y.types, y.unnamed, y.level, y.function);
      });
  std::string name = FunctionName(profile, main.function).substr(0, kMaxNamePart);
  if (main.types > 1 && rarest.function != main.function) {
    name += " > " + FunctionName(profile, rarest.function).substr(0, kMaxNamePart);
  }
  return name;
}

}  // namespace

void NameFunctions(Profile& profile, const std::string& debug_folder) {
  symbol::SymbolizerOptions options;
  options.inlines = false;
  options.debuginfod_cache = symbol::DebuginfodCacheFolder();
  if (!debug_folder.empty())
    options.debug_folders.insert(options.debug_folders.begin(), debug_folder);
  symbol::Symbolizer symbolizer(options);
  for (uint32_t i = 0; i < profile.modules.size(); ++i) {
    const symbol::ModuleKey key{profile.modules[i].path, profile.modules[i].build_id};
    Diagnostics ignored;  // a module that is gone leaves its functions unnamed
    const std::optional<symbol::ElfFile> file = symbol::OpenModuleFile(key, options, ignored);
    if (!file) continue;
    symbol::Module& module = symbolizer.Find(key);
    for (ProfileFunction& function : profile.functions) {
      if (function.module != i) continue;
      const auto offset = file->OffsetOfAddress(function.offset);
      if (!offset) continue;
      const std::vector<symbol::Symbol>& symbols =
          symbol::Symbolizer::Lookup(module, *offset, false);
      if (!symbols.empty()) function.name = symbols.front().function;
    }
  }
}

void NameTypes(Profile& profile) {
  const std::vector<uint32_t> levels = Levels(profile);
  std::map<std::pair<uint32_t, wire::UnitKind>, Uses> groups;
  std::map<std::string, uint32_t> times;
  for (uint32_t i = 0; i < profile.types.size(); ++i) {
    UnitType& type = profile.types[i];
    const auto [uses, made] = groups.try_emplace({type.loop, type.kind});
    if (made) uses->second = UsesOf(profile, levels, type.loop, type.kind);
    type.name = NameOf(profile, i, uses->second);
    if (type.kind == wire::UnitKind::kTail) type.name += " (tail)";
    const uint32_t before = times[type.name]++;
    if (before > 0) type.name += fmt::format(" #{}", before + 1);
  }
}

}  // namespace culprit::guard
