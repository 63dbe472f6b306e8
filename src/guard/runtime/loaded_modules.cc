// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/loaded_modules.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

#include "guard/runtime/code_address.h"

// The loader's own word for where it is; not every C library has it.
#pragma weak _r_debug

namespace culprit::guard::runtime {
namespace {

uint64_t LoaderBias() {
  // Also right where the program was started through its loader, which AT_BASE is not.
  if (&_r_debug != nullptr && _r_debug.r_ldbase != 0) return _r_debug.r_ldbase;
  return getauxval(AT_BASE);
}

void ReadBuildId(const ElfW(Phdr) & header, LoadedModule& module) {
  const auto* at = BytesAt(module.bias + header.p_vaddr);
  const AddressRange notes{reinterpret_cast<uint64_t>(at),
                           reinterpret_cast<uint64_t>(at) + header.p_memsz};
  bool mapped = false;
  for (uint32_t i = 0; i < module.segment_count; ++i) {
    const AddressRange& range = module.segments[i].range;
    mapped |= notes.begin >= range.begin && notes.end <= range.end && notes.begin <= notes.end;
  }
  uint64_t left = mapped ? header.p_memsz : 0;
  while (left >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const uint64_t name_bytes = (uint64_t{note.n_namesz} + 3) & ~uint64_t{3};
    const uint64_t bytes =
        sizeof(note) + name_bytes + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
    if (bytes > left) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(at + sizeof(note), "GNU", 4) == 0) {
      module.build_id_size = std::min<uint32_t>(note.n_descsz, sizeof(module.build_id));
      std::memcpy(module.build_id, at + sizeof(note) + name_bytes, module.build_id_size);
      return;
    }
    at += bytes;
    left -= bytes;
  }
}

void ReadSegments(const dl_phdr_info& info, LoadedModule& module) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uint64_t begin = module.bias + header.p_vaddr;
    const AddressRange range{begin, begin + header.p_memsz};
    if (range.end < range.begin) continue;
    if (module.range.end == 0) module.range = range;
    module.range.begin = std::min(module.range.begin, range.begin);
    module.range.end = std::max(module.range.end, range.end);
    if ((header.p_flags & PF_R) == 0 || module.segment_count == LoadedModule::kMaxSegments) {
      continue;
    }
    module.segments[module.segment_count++] = {range, (header.p_flags & PF_X) != 0};
  }
}

ModuleRole RoleOf(const LoadedModule& module, bool first) {
  const auto here = reinterpret_cast<uint64_t>(&LoadedModules);
  // A program that links this code itself (a test) is its program all the same.
  if (first) return ModuleRole::kProgram;
  if (module.range.Contains(here)) return ModuleRole::kOwn;
  if (module.bias == LoaderBias()) return ModuleRole::kLoader;
  if (module.range.Contains(getauxval(AT_SYSINFO_EHDR))) return ModuleRole::kVdso;
  return ModuleRole::kLibrary;
}

void ReadPath(const char* name, LoadedModule& module) {
  if (module.role == ModuleRole::kProgram) {
    const long bytes = RawSyscall(SYS_readlinkat, AT_FDCWD, Word("/proc/self/exe"),
                                  Word(module.path), sizeof(module.path) - 1);
    if (bytes > 0) return;
  }
  if (name != nullptr) std::strncpy(module.path, name, sizeof(module.path) - 1);
}

int ReadModule(dl_phdr_info* info, size_t, void* result) {
  auto& modules = *static_cast<MappedArray<LoadedModule>*>(result);
  LoadedModule module;
  module.bias = info->dlpi_addr;
  ReadSegments(*info, module);
  module.role = RoleOf(module, modules.empty());
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE && module.build_id_size == 0) ReadBuildId(header, module);
    if (header.p_type == PT_GNU_EH_FRAME) {
      const uint64_t begin = module.bias + header.p_vaddr;
      module.eh_frame_hdr = {begin, begin + header.p_memsz};
    }
  }
  ReadPath(info->dlpi_name, module);
  return modules.Append(module) ? 0 : 1;
}

}  // namespace

bool LoadedModule::IsExecutable(uint64_t address) const {
  for (uint32_t i = 0; i < segment_count; ++i) {
    if (segments[i].executable && segments[i].range.Contains(address)) return true;
  }
  return false;
}

MappedArray<LoadedModule> LoadedModules() {
  MappedArray<LoadedModule> modules;
  dl_iterate_phdr(ReadModule, &modules);
  return modules;
}

}  // namespace culprit::guard::runtime
