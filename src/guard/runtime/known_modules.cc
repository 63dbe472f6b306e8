// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/known_modules.h"

#include <cstring>

#include "guard/runtime/mapped_array.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"

namespace culprit::guard::runtime {
namespace {

KnownModule* g_modules = nullptr;
std::atomic<uint32_t> g_module_count;

bool IsSame(const LoadedModule& a, const LoadedModule& b) {
  return a.bias == b.bias && a.range.begin == b.range.begin && a.range.end == b.range.end &&
         a.build_id_size == b.build_id_size &&
         memcmp(a.build_id, b.build_id, a.build_id_size) == 0 && strcmp(a.path, b.path) == 0;
}

const char* LastPart(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Text without the C library's formatting, which may allocate.
class ModuleText {
 public:
  void Add(const char* text) {
    while (*text != 0) AddChar(*text++);
  }
  void AddHex(uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; --i) AddChar("0123456789abcdef"[value >> 4 * i & 15]);
  }
  void AddChar(char c) { good_ = good_ && bytes_.Append(c); }
  bool good() const { return good_; }
  const MappedArray<char>& bytes() const { return bytes_; }

 private:
  MappedArray<char> bytes_;
  bool good_ = true;
};

void AddModule(ModuleText& text, uint32_t index, const LoadedModule& module) {
  text.Add(FileName("").Add(index).text());
  text.Add(" ");
  text.AddHex(module.bias, 16);
  text.Add(" ");
  text.AddHex(module.range.end, 16);
  text.Add(" ");
  if (module.build_id_size == 0) text.Add("-");
  for (uint32_t i = 0; i < module.build_id_size; ++i) text.AddHex(module.build_id[i], 2);
  text.Add(" ");
  text.Add(module.path);
  text.Add("\n");
}

}  // namespace

bool RefreshModules() {
  if (g_modules == nullptr) {
    g_modules = static_cast<KnownModule*>(MapMemory(kMaxModules * sizeof(KnownModule)));
    if (g_modules == nullptr) return false;
  }
  const MappedArray<LoadedModule> loaded = LoadedModules();
  if (loaded.empty()) return false;
  const uint32_t known = g_module_count.load();
  bool changed = false;
  for (uint32_t i = 0; i < known; ++i) {
    bool found = false;
    for (const LoadedModule& module : loaded) found = found || IsSame(g_modules[i].loaded, module);
    if (g_modules[i].live.load() && !found) {
      g_modules[i].live.store(false);
      changed = true;
    }
  }
  uint32_t count = known;
  for (const LoadedModule& module : loaded) {
    bool found = false;
    for (uint32_t i = 0; i < known && !found; ++i) {
      found = g_modules[i].live.load() && IsSame(g_modules[i].loaded, module);
    }
    if (found || count == kMaxModules) continue;
    g_modules[count].loaded = module;
    g_modules[count].live.store(true);
    g_module_count.store(++count, std::memory_order_release);
    changed = true;
  }
  return changed;
}

uint32_t KnownModules() { return g_module_count.load(std::memory_order_acquire); }

const KnownModule& ModuleByIndex(uint32_t index) { return g_modules[index]; }

const KnownModule* ModuleAt(uint64_t address) {
  const uint32_t count = KnownModules();
  for (uint32_t i = 0; i < count; ++i) {
    const KnownModule& module = g_modules[i];
    if (module.loaded.range.Contains(address) && module.live.load(std::memory_order_relaxed)) {
      return &module;
    }
  }
  return nullptr;
}

const KnownModule* FindPlanModule(const wire::PlanModule& wanted, bool& foreign) {
  const uint32_t count = KnownModules();
  for (uint32_t i = 0; i < count; ++i) {
    const KnownModule& module = g_modules[i];
    if (!module.live.load() || strcmp(LastPart(module.loaded.path), wanted.file_name) != 0) {
      continue;
    }
    const bool same = wanted.build_id_size == 0 ||
                      (wanted.build_id_size == module.loaded.build_id_size &&
                       memcmp(wanted.build_id, module.loaded.build_id, wanted.build_id_size) == 0);
    if (same) return &module;
    // Profiles name this library, too, where it is on the way of a call: a later version of it is
    // no other build of the program.
    foreign |= module.loaded.role != ModuleRole::kOwn;
  }
  return nullptr;
}

bool WriteModules() {
  ModuleText text;
  const uint32_t count = KnownModules();
  for (uint32_t i = 0; i < count; ++i) AddModule(text, i, g_modules[i].loaded);
  if (!text.good()) return false;
  HeldFile file;
  const auto pid = static_cast<uint64_t>(RawGetPid());
  if (!OpenSessionFileAnew(FileName("modules.").Add(pid), file)) return false;
  const long wrote = RawWrite(file.fd(), text.bytes().begin(), text.bytes().size());
  file.Close();
  return wrote == static_cast<long>(text.bytes().size());
}

}  // namespace culprit::guard::runtime
