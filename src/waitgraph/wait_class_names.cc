// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <unordered_map>

#include "waitgraph/wait_class_rows.h"
#include "waitgraph/wait_class_table.h"

namespace culprit::waitgraph {
namespace {

using NameMap = std::unordered_map<std::string_view, FrameMeaning>;

FrameMeaning FromGroup(const Group& group) {
  return {.wait_class = group.wait_class,
          .purpose = group.purpose,
          .strength = group.strength,
          .ambiguous = (group.flags & kAmbiguous) != 0,
          .sends_too = (group.flags & kSendsToo) != 0,
          .plumbing = (group.flags & kPlumbing) != 0};
}

template <class Visit>
void ForEachName(std::string_view names, Visit visit) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    visit(name);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
}

void AddGroups(std::span<const Group> groups, NameMap& map) {
  for (const Group& group : groups) {
    ForEachName(group.names, [&](std::string_view name) { map.emplace(name, FromGroup(group)); });
  }
}

FrameMeaning FromRow(const SyscallRow& row) {
  return {.wait_class = row.wait_class,
          .purpose = row.purpose,
          .strength = Strength::kSyscall,
          .ambiguous = (row.flags & kAmbiguous) != 0,
          .wakes = row.wakes.value_or(WaitClass::kOther),
          .waker = row.wakes.has_value()};
}

void AddWakers(NameMap& map) {
  for (const WakeGroup& group : WakeGroups()) {
    ForEachName(group.names, [&](std::string_view name) {
      FrameMeaning& meaning = map[name];
      meaning.wakes = group.wait_class;
      meaning.waker = true;
      meaning.releases = group.releases;
    });
  }
}

const NameMap& KernelNames() {
  static const NameMap map = [] {
    NameMap names;
    AddGroups(KernelGroups(), names);
    AddGroups(NamedGroups(), names);
    AddGroups(SimulatedGroups(), names);
    AddWakers(names);
    return names;
  }();
  return map;
}

const NameMap& ProgramNames() {
  static const NameMap map = [] {
    NameMap names;
    AddGroups(NamedGroups(), names);
    AddWakers(names);
    return names;
  }();
  return map;
}

const NameMap& SyscallNames() {
  static const NameMap map = [] {
    NameMap names;
    for (const SyscallRow& row : SyscallRows()) names.emplace(row.name, FromRow(row));
    for (const SyscallAlias& alias : SyscallAliases())
      names.emplace(alias.library, names.at(alias.syscall));
    return names;
  }();
  return map;
}

FrameMeaning Find(const NameMap& map, std::string_view name) {
  const auto it = map.find(name);
  return it == map.end() ? FrameMeaning() : it->second;
}

// What the compiler appends, and the version of a symbol.
std::string_view WithoutSuffix(std::string_view name) {
  const size_t at = name.find_first_of(".@", 1);
  return at == std::string_view::npos ? name : name.substr(0, at);
}

bool DropPrefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// "__arm64_sys_ppoll" -> "ppoll"; empty: not a system call's entry.
std::string_view SyscallOfKernel(std::string_view name) {
  constexpr std::string_view kWrappers[] = {
      "__arm64_sys_", "__x64_sys_",          "__ia32_sys_",        "__se_sys_",   "__do_sys_",
      "SyS_",         "__arm64_compat_sys_", "__ia32_compat_sys_", "compat_sys_", "sys_"};
  for (const std::string_view wrapper : kWrappers) {
    if (DropPrefix(name, wrapper)) return name;
  }
  return {};
}

std::string_view SyscallOfLibrary(std::string_view name) {
  DropPrefix(name, "__GI_");
  DropPrefix(name, "__libc_");
  while (DropPrefix(name, "_")) {
  }
  return name;
}

// C++ and Rust names carry parameters and template arguments; what matters is
// the function they end in.
FrameMeaning ByPart(std::string_view function) {
  struct Part {
    std::string_view text;
    WaitPurpose purpose;
  };
  constexpr Part kParts[] = {
      {"std::condition_variable", WaitPurpose::kCondition},
      {"std::__1::condition_variable", WaitPurpose::kCondition},
      {"ConditionVariable::Wait", WaitPurpose::kCondition},
      {"condvar::Condvar::wait", WaitPurpose::kCondition},
      {"Condvar::wait_until_internal", WaitPurpose::kCondition},
      {"CondVar::Wait", WaitPurpose::kCondition},
      {"runtime::park::", WaitPurpose::kCondition},
      {"Parker::park", WaitPurpose::kCondition},
      {"mutex::futex::Mutex::lock", WaitPurpose::kWork},
      {"RawMutex::lock_slow", WaitPurpose::kWork},
      {"RawRwLock::lock_", WaitPurpose::kWork},
      {"art::Monitor::Wait", WaitPurpose::kCondition},
      {"art::Monitor::Lock", WaitPurpose::kWork},
      {"art::Mutex::ExclusiveLock", WaitPurpose::kWork},
      {"rwlock::futex::RwLock::", WaitPurpose::kWork},
      {"absl::Mutex::Lock", WaitPurpose::kWork},
  };
  if (function.find(':') == std::string_view::npos) return {};
  for (const Part& part : kParts) {
    if (function.find(part.text) != std::string_view::npos) {
      return {
          .wait_class = WaitClass::kLock, .purpose = part.purpose, .strength = Strength::kBroad};
    }
  }
  return {};
}

bool Says(const FrameMeaning& meaning) {
  return meaning.strength != Strength::kNone || meaning.plumbing || meaning.waker;
}

FrameMeaning MeaningInKernel(std::string_view name) {
  const std::string_view syscall = SyscallOfKernel(name);
  return syscall.empty() ? Find(KernelNames(), name) : Find(SyscallNames(), syscall);
}

}  // namespace

ModuleKind KindOfModule(std::string_view module) {
  if (module.empty()) return ModuleKind::kLibrary;
  if (module == "kernel" || module == "vmlinux" || module == "ntoskrnl.exe" ||
      module == "ntkrnlmp.exe" || module == "nt" || module == "win32k" ||
      module.starts_with("[kernel") || module.starts_with("[guest.kernel") ||
      module.ends_with(".sys") || module.ends_with(".ko")) {
    return ModuleKind::kKernel;
  }
  constexpr std::string_view kLibraries[] = {"libc",     "ld-",        "ld64",       "libpthread",
                                             "ntdll",    "kernelbase", "KERNELBASE", "kernel32",
                                             "KERNEL32", "ws2_32",     "WS2_32",     "mswsock",
                                             "user32",   "USER32",     "win32u",     "libsystem_"};
  for (const std::string_view library : kLibraries) {
    if (!module.starts_with(library)) continue;
    // libc.so.6, libc-2.31.so, libc; not libcurl or libcrypto.
    const char next = module.size() > library.size() ? module[library.size()] : '.';
    if (library != "libc" || next == '.' || next == '-') return ModuleKind::kLibrary;
  }
  // Loadable kernel modules stand in brackets; so do the vdso and anonymous memory.
  const bool bracketed = module.front() == '[' && module.back() == ']';
  const bool user = module == "[vdso]" || module == "[heap]" || module == "[stack]" ||
                    module == "[anon]" || module.starts_with("[anon:") || module == "[unknown]" ||
                    module == "[jit]";
  return bracketed && !user ? ModuleKind::kKernel : ModuleKind::kProgram;
}

FrameMeaning MeaningOf(std::string_view function, ModuleKind module) {
  if (function.empty()) return {};
  if (module == ModuleKind::kKernel) return MeaningInKernel(WithoutSuffix(function));
  const FrameMeaning named =
      Find(ProgramNames(), function.starts_with("runtime.") ? function : WithoutSuffix(function));
  if (Says(named)) return named;
  if (module == ModuleKind::kLibrary) {
    const std::string_view plain = WithoutSuffix(function);
    const FrameMeaning library = Find(SyscallNames(), SyscallOfLibrary(plain));
    if (Says(library)) return library;
    // Folded stacks and some profilers give kernel frames without a module.
    const FrameMeaning kernel = MeaningInKernel(plain);
    if (Says(kernel)) return kernel;
  }
  return ByPart(function);
}

std::string_view BlockingSyscall(int64_t number, std::string_view arch) {
  const bool x86 = arch == "x86_64" || arch == "amd64";
  const bool arm = arch == "aarch64" || arch == "arm64";
  if (!x86 && !arm) return {};
  for (const SyscallRow& row : SyscallRows()) {
    if ((x86 ? row.x86_64 : row.arm64) == number && number >= 0) return row.name;
  }
  return {};
}

}  // namespace culprit::waitgraph
