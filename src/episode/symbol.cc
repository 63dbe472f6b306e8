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

std::string SyscallSymbols::NameOf(int64_t arg0) const {
  const int64_t number = trace::CallNumber(arg0);
  const std::string_view call = abi_ ? trace::SyscallName(number, *abi_) : std::string_view();
  if (call.empty()) return "syscall " + std::to_string(number);
  const std::optional<uint32_t> operation = trace::CallOperation(arg0);
  if (!operation || !trace::OperationArgument(call)) return std::string(call);
  return std::string(call) + "(" + trace::OperationName(call, *operation) + ")";
}

Symbol SyscallSymbols::Of(int64_t arg0) {
  const auto known = known_.find(arg0);
  if (known != known_.end()) return known->second;
  const Symbol symbol = table_.Intern(NameOf(arg0));
  // Numbers beyond the table's bound are looked up again, so this stays small.
  if (known_.size() < kMaxSymbols) known_.emplace(arg0, symbol);
  return symbol;
}

std::string_view CallOf(std::string_view symbol) { return symbol.substr(0, symbol.find('(')); }

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
  return IsOneOf(CallOf(name), kNames) || name == "socketcall(ACCEPT)" ||
         name == "socketcall(ACCEPT4)";
}

bool MayWaitForRequests(std::string_view name) {
  static constexpr std::array<std::string_view, 17> kNames = {"futex",
                                                              "futex(WAIT)",
                                                              "futex(WAIT_BITSET)",
                                                              "futex(WAIT_REQUEUE_PI)",
                                                              "futex_time64(WAIT)",
                                                              "futex_time64(WAIT_BITSET)",
                                                              "read",
                                                              "recvfrom",
                                                              "recvmsg",
                                                              "recvmmsg",
                                                              "semtimedop",
                                                              "msgrcv",
                                                              "socketcall(RECV)",
                                                              "socketcall(RECVFROM)",
                                                              "socketcall(RECVMSG)",
                                                              "ipc(SEMTIMEDOP)",
                                                              "ipc(MSGRCV)"};
  return IsOneOf(name, kNames);
}

}  // namespace culprit::episode
