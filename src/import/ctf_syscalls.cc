// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_syscalls.h"

#include <array>
#include <utility>

namespace culprit::import_ {
namespace {

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"umount", "umount2"},
    {"mmap_pgoff", "mmap"},
    {"mmap2", "mmap"},
    {"llseek", "lseek"},
    {"_llseek", "lseek"},
    {"fstatat64", "newfstatat"},
    {"fadvise64_64", "fadvise64"},
    {"_newselect", "select"},
    {"sigreturn", "rt_sigreturn"},
    {"sigaction", "rt_sigaction"},
    {"waitpid", "wait4"},
    {"sigprocmask", "rt_sigprocmask"},
    {"send", "sendto"},
    {"recv", "recvfrom"},
    {"arm_fadvise64_64", "fadvise64"},
    {"sync_file_range2", "sync_file_range"},
};
constexpr std::string_view kSuffixes[] = {"_time32", "_time64", "64", "32", "16"};

struct Traits {
  bool x86 = false;
  bool open = false;
  bool openat = false;
  bool wide = false;  // results of 64 bits
};

bool HasWideResult(const CtfSchema& schema, const CtfEventClass& event) {
  if (event.payload == kNoField) return false;
  for (const CtfMember& member : schema.fields[event.payload].members) {
    if (member.name == "_ret" || member.name == "ret") {
      return schema.fields[member.field].bits == 64;
    }
  }
  return false;
}

Traits TraitsOf(const CtfSchema& schema) {
  Traits traits;
  for (const CtfEventClass& event : schema.events) {
    const std::string_view name = event.name;
    if (name.starts_with("compat_")) continue;
    if (name.starts_with("syscall_exit_") || name == "exit_syscall") {
      traits.wide = traits.wide || HasWideResult(schema, event);
    }
    if (name.starts_with("x86_") || name.ends_with("_arch_prctl")) traits.x86 = true;
    if (name == "syscall_entry_open" || name == "sys_open") traits.open = true;
    if (name == "syscall_entry_openat" || name == "sys_openat") traits.openat = true;
  }
  return traits;
}

}  // namespace

CtfSyscalls::CtfSyscalls(const CtfSchema& schema) {
  for (const std::string_view key : {"machine", "architecture", "arch"}) {
    const auto it = schema.environment.find(key);
    if (it != schema.environment.end() && machine_.empty()) machine_ = it->second;
  }
  if (const auto arch = trace::SyscallAbiOf(machine_)) {
    table_ = *arch;
    return;
  }
  if (!machine_.empty()) return;
  const Traits traits = TraitsOf(schema);
  const bool is_x86 = traits.x86 || (traits.open && !schema.big_endian);
  if (is_x86 && traits.wide) {
    machine_ = trace::MachineName(trace::SyscallAbi::kX86_64);
  } else if (traits.openat && !traits.open && traits.wide) {
    table_ = trace::SyscallAbi::kArm64;
    machine_ = trace::MachineName(trace::SyscallAbi::kArm64);
  }
}

int64_t CtfSyscalls::Number(std::string_view name) const {
  const int64_t number = trace::SyscallNumber(name, table_);
  if (number != trace::kNoSyscall) return number;
  for (const auto& [alias, plain] : kAliases) {
    if (alias == name) return trace::SyscallNumber(plain, table_);
  }
  for (const std::string_view suffix : kSuffixes) {
    if (name.size() <= suffix.size() || !name.ends_with(suffix)) continue;
    const int64_t plain = trace::SyscallNumber(name.substr(0, name.size() - suffix.size()), table_);
    if (plain != trace::kNoSyscall) return plain;
  }
  return trace::kNoSyscall;
}

}  // namespace culprit::import_
