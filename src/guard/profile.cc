// SPDX-License-Identifier: Apache-2.0
#include "guard/profile.h"

#include <fmt/format.h>

#include "base/text.h"

namespace culprit::guard {

std::string FunctionName(const Profile& profile, uint32_t function) {
  if (function >= profile.functions.size()) return "?";
  const ProfileFunction& row = profile.functions[function];
  if (!row.name.empty()) return row.name;
  return fmt::format("{}+{:#x}", BaseName(profile.modules[row.module].path), row.offset);
}

std::string LoopName(const Profile& profile, uint32_t loop) {
  if (loop >= profile.loops.size()) return "?";
  const ProfileLoop& row = profile.loops[loop];
  if (row.holder != kNoIndex) return FunctionName(profile, row.holder);
  if (row.sites.empty()) return "?";
  const ProfileSite& site = row.sites.front();
  return fmt::format("{}+{:#x}", BaseName(profile.modules[site.module].path), site.return_offset);
}

namespace {

std::string CheckLoops(const Profile& profile) {
  for (const ProfileLoop& loop : profile.loops) {
    if (loop.holder != kNoIndex && loop.holder >= profile.functions.size()) return "loop's holder";
    for (const ProfileSite& site : loop.sites) {
      if (site.module >= profile.modules.size()) return "wait call's module";
    }
    for (const uint32_t waker : loop.woken_by) {
      if (waker >= profile.loops.size()) return "loop that wakes";
    }
    for (const auto* contexts : CutsOf(loop)) {
      for (const Context& context : *contexts) {
        if (context.function >= profile.functions.size()) return "boundary's function";
      }
    }
  }
  return {};
}

std::string CheckShapes(const Profile& profile) {
  for (size_t i = 0; i < profile.paths.size(); ++i) {
    const CallPath& path = profile.paths[i];
    if (path.parent != kNoIndex && path.parent >= i) return "path's parent";
    if (path.function >= profile.functions.size()) return "path's function";
  }
  for (const Place& place : profile.places) {
    if (place.path >= profile.paths.size()) return "place's path";
    if (place.caller != kNoIndex && place.caller >= profile.callers.size()) return "place's caller";
  }
  for (const UnitShape& shape : profile.shapes) {
    if (shape.loop >= profile.loops.size()) return "shape's loop";
    if (shape.type >= profile.types.size()) return "shape's type";
    if (profile.types[shape.type].loop != shape.loop) return "loop of a shape's type";
    if (profile.types[shape.type].kind != shape.kind) return "kind of a shape's type";
    if (shape.hits.size() != shape.places.size()) return "shape's hits";
    for (size_t i = 0; i < shape.places.size(); ++i) {
      if (shape.places[i] >= profile.places.size()) return "shape's place";
      if (i > 0 && shape.places[i - 1] >= shape.places[i]) return "order of a shape's places";
    }
  }
  return {};
}

}  // namespace

std::string FirstContradiction(const Profile& profile) {
  for (const ProfileModule& module : profile.modules) {
    const std::string& id = module.build_id;
    const bool hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (id.empty() || id.size() % 2 != 0 || id.size() > 2 * wire::kMaxBuildId || !hex) {
      return "module's build-id";
    }
  }
  for (const ProfileFunction& function : profile.functions) {
    if (function.module >= profile.modules.size()) return "function's module";
  }
  for (const ProfileCaller& caller : profile.callers) {
    if (caller.module >= profile.modules.size()) return "caller's module";
  }
  if (std::string wrong = CheckLoops(profile); !wrong.empty()) return wrong;
  for (const UnitType& type : profile.types) {
    if (type.loop >= profile.loops.size()) return "type's loop";
    if (type.kind > wire::UnitKind::kTail) return "type's kind";
  }
  if (std::string wrong = CheckShapes(profile); !wrong.empty()) return wrong;
  size_t contexts = 0;
  for (const Guard& guard : profile.guards) {
    if (guard.function >= profile.functions.size()) return "guard's function";
    for (const GuardContext& context : guard.contexts) {
      if (context.caller != kNoIndex && context.caller >= profile.callers.size()) {
        return "guard's caller";
      }
    }
    contexts += guard.contexts.size();
  }
  if (contexts > wire::kContextWords * 64) return "number of contexts";
  return {};
}

}  // namespace culprit::guard
