// SPDX-License-Identifier: Apache-2.0
//
// PlanView: a plan (wire.h) that was checked from end to end: magic, version,
// size, checksum, counts, every index and every name's end. What it gives out can
// be used without another check. A plan that fails one of them is no plan.
//
// Owns nothing: the bytes must outlive it and never change. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

uint64_t Fnv1a(const uint8_t* bytes, size_t size);

class PlanView {
 public:
  // False, and empty: damaged.
  bool Parse(const uint8_t* bytes, size_t size);

  const wire::PlanHeader& header() const { return *header_; }
  wire::Mode mode() const { return static_cast<wire::Mode>(header_->mode); }
  std::span<const wire::PlanModule> modules() const { return modules_; }
  std::span<const wire::PlanFunction> functions() const { return functions_; }
  std::span<const wire::PlanContext> contexts() const { return contexts_; }
  std::span<const wire::PlanSite> sites() const { return sites_; }
  std::span<const wire::PlanType> types() const { return types_; }

 private:
  bool CheckMembers() const;

  const wire::PlanHeader* header_ = nullptr;
  std::span<const wire::PlanModule> modules_;
  std::span<const wire::PlanFunction> functions_;
  std::span<const wire::PlanContext> contexts_;
  std::span<const wire::PlanSite> sites_;
  std::span<const wire::PlanType> types_;
};

}  // namespace culprit::guard::runtime
