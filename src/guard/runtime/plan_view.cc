// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/plan_view.h"

#include <algorithm>
#include <cstring>

namespace culprit::guard::runtime {
namespace {

// Far above what learning makes; keeps sums of sizes far from overflow.
constexpr uint32_t kMaxMembers = 1 << 20;

template <class T>
bool Take(const uint8_t*& at, const uint8_t* end, uint32_t count, std::span<const T>& members) {
  static_assert(sizeof(T) % 8 == 0);
  if (count > kMaxMembers || static_cast<size_t>(end - at) / sizeof(T) < count) return false;
  members = {reinterpret_cast<const T*>(at), count};
  at += count * sizeof(T);
  return true;
}

bool IsGoodModule(const wire::PlanModule& module) {
  return module.build_id_size <= wire::kMaxBuildId &&
         memchr(module.file_name, 0, sizeof(module.file_name)) != nullptr;
}

}  // namespace

uint64_t Fnv1a(const uint8_t* bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

bool PlanView::CheckMembers() const {
  const auto module_exists = [this](uint32_t module) { return module < modules_.size(); };
  return std::all_of(modules_.begin(), modules_.end(), IsGoodModule) &&
         std::all_of(functions_.begin(), functions_.end(),
                     [&](const wire::PlanFunction& function) {
                       return module_exists(function.module) &&
                              function.first_context <= contexts_.size() &&
                              function.contexts <= contexts_.size() - function.first_context;
                     }) &&
         std::all_of(contexts_.begin(), contexts_.end(),
                     [&](const wire::PlanContext& context) {
                       const bool no_bit = (context.flags & wire::PlanContext::kNoBit) != 0;
                       return (no_bit || context.bit < 64 * wire::kContextWords) &&
                              (context.return_module == wire::kAnyReturn ||
                               module_exists(context.return_module));
                     }) &&
         std::all_of(
             sites_.begin(), sites_.end(),
             [&](const wire::PlanSite& site) {
               return module_exists(site.module) &&
                      (site.holder_module == wire::kAnyHolder || module_exists(site.holder_module));
             }) &&
         std::all_of(types_.begin(), types_.end(), [](const wire::PlanType& type) {
           return type.kind <= static_cast<uint32_t>(wire::UnitKind::kTail);
         });
}

bool PlanView::Parse(const uint8_t* bytes, size_t size) {
  *this = {};
  if (size < sizeof(wire::PlanHeader)) return false;
  const auto* header = reinterpret_cast<const wire::PlanHeader*>(bytes);
  const uint8_t* at = bytes + sizeof(wire::PlanHeader);
  const uint8_t* end = bytes + size;
  PlanView view;
  view.header_ = header;
  const bool good = header->magic == wire::Magic("CGPLAN01") &&
                    header->version == wire::kWireVersion && header->bytes == size &&
                    header->mode <= static_cast<uint32_t>(wire::Mode::kGuard) &&
                    header->checksum == Fnv1a(at, size - sizeof(wire::PlanHeader)) &&
                    Take(at, end, header->modules, view.modules_) &&
                    Take(at, end, header->functions, view.functions_) &&
                    Take(at, end, header->contexts, view.contexts_) &&
                    Take(at, end, header->sites, view.sites_) &&
                    Take(at, end, header->types, view.types_) && view.CheckMembers();
  if (good) *this = view;
  return good;
}

}  // namespace culprit::guard::runtime
