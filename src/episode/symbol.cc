// SPDX-License-Identifier: Apache-2.0
#include "episode/symbol.h"

#include <algorithm>
#include <array>

namespace culprit::episode {
namespace {

constexpr std::string_view kOther = "[other]";

template <size_t kCount>
bool IsOneOf(std::string_view name, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Symbol SymbolTable::Intern(std::string_view name) {
  const StringId known = names_.Find(name);
  if (known.valid()) return static_cast<Symbol>(known.value);
  const bool full = names_.size() >= kMaxSymbols - 1;
  return static_cast<Symbol>(names_.Intern(full ? kOther : name).value);
}

std::optional<Symbol> SymbolTable::Find(std::string_view name) const {
  const StringId id = names_.Find(name);
  if (!id.valid()) return {};
  return static_cast<Symbol>(id.value);
}

Symbol SyscallSymbols::Of(int64_t number) {
  const auto known = known_.find(number);
  if (known != known_.end()) return known->second;
  std::string name;
  if (abi_) name = SyscallName(number, *abi_);
  if (name.empty()) name = "syscall " + std::to_string(number);
  const Symbol symbol = table_.Intern(name);
  // Numbers beyond the table's bound are looked up again, so this stays small.
  if (known_.size() < kMaxSymbols) known_.emplace(number, symbol);
  return symbol;
}

bool NeverReturns(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "exit", "exit_group", "execve", "execveat", "rt_sigreturn", "sigreturn"};
  return IsOneOf(name, kNames);
}

bool WaitsForRequests(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kNames = {
      "epoll_wait",      "epoll_pwait",   "epoll_pwait2",    "poll",
      "ppoll",           "select",        "_newselect",      "pselect6",
      "accept",          "accept4",       "io_getevents",    "io_uring_enter",
      "rt_sigtimedwait", "rt_sigsuspend", "pause",           "wait4",
      "waitid",          "nanosleep",     "clock_nanosleep", "restart_syscall"};
  return IsOneOf(name, kNames);
}

bool MayWaitForRequests(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "futex", "read", "recvfrom", "recvmsg", "recvmmsg", "semtimedop", "msgrcv"};
  return IsOneOf(name, kNames);
}

}  // namespace culprit::episode
