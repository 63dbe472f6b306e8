// SPDX-License-Identifier: Apache-2.0
//
// The shape of the table of waiting functions. Its rows are in
// wait_class_table.cc, lookups in wait_class_names.cc. Constant data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "waitgraph/wait_class_table.h"

namespace culprit::waitgraph {

inline constexpr uint8_t kAmbiguous = 1 << 0;
inline constexpr uint8_t kSendsToo = 1 << 1;
inline constexpr uint8_t kPlumbing = 1 << 2;

struct Group {
  WaitClass wait_class;
  WaitPurpose purpose;
  Strength strength;
  uint8_t flags;
  std::string_view names;  // separated by spaces
};
std::span<const Group> KernelGroups();
std::span<const Group> NamedGroups();
std::span<const Group> SimulatedGroups();

struct WakeGroup {
  WaitClass wait_class;
  std::string_view names;
  bool releases = false;
};
std::span<const WakeGroup> WakeGroups();

struct SyscallRow {
  std::string_view name;
  int16_t x86_64;
  int16_t arm64;
  WaitClass wait_class;
  WaitPurpose purpose;
  uint8_t flags = 0;
  std::optional<WaitClass> wakes = std::nullopt;  // what a wait ended from it was for
};
std::span<const SyscallRow> SyscallRows();

struct SyscallAlias {
  std::string_view library;
  std::string_view syscall;
};
std::span<const SyscallAlias> SyscallAliases();

}  // namespace culprit::waitgraph
