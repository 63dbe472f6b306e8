// SPDX-License-Identifier: Apache-2.0
//
// The demanglers are libiberty's. Names are hostile: a few hundred bytes can
// describe a name of astronomic length, so output goes through a callback that
// gives up after a budget, and names whose grammar makes a demangler try twice
// at every level are left alone.
#include <libiberty/demangle.h>

#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <string>

#include "symbol/symbolizer.h"

namespace culprit::symbol {
namespace {

constexpr size_t kMaxMangledBytes = 16 * 1024;
constexpr size_t kMaxDemangledBytes = 64 * 1024;
constexpr int kMaxConversions = 12;      // each doubles the work of libiberty's parser
constexpr int kMaxDBackReferences = 32;  // two a level double the output
constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

struct Output {
  char bytes[kMaxDemangledBytes];
  size_t size = 0;
  std::jmp_buf give_up;
};

extern "C" void Append(const char* text, size_t length, void* opaque) {
  auto* output = static_cast<Output*>(opaque);
  // The callers between here and setjmp are C and hold no memory: they build
  // their trees on the stack.
  if (length > kMaxDemangledBytes - output->size) std::longjmp(output->give_up, 1);
  for (size_t i = 0; i < length; ++i) output->bytes[output->size++] = text[i];
}

using CallbackDemangler = int (*)(const char*, int, demangle_callbackref, void*);

bool RunCallback(CallbackDemangler demangler, const char* name, Output* output) {
  output->size = 0;
  if (setjmp(output->give_up) != 0) return false;
  return demangler(name, kOptions, Append, output) != 0;
}

// "cv" is a conversion operator; "2cv" is a namespace of that name.
int Conversions(std::string_view name) {
  int count = 0;
  for (size_t at = name.find("cv"); at != name.npos; at = name.find("cv", at + 2)) {
    count += at == 0 || name[at - 1] != '2' ? 1 : 0;
  }
  return count;
}

std::string DemangleD(const std::string& name) {
  int references = 0;
  for (const char letter : name) references += letter == 'Q' ? 1 : 0;
  if (references > kMaxDBackReferences) return {};
  const std::unique_ptr<char, decltype(&std::free)> text(dlang_demangle(name.c_str(), DMGL_PARAMS),
                                                         &std::free);
  return text == nullptr ? std::string() : std::string(text.get());
}

}  // namespace

std::string Demangle(std::string_view mangled) {
  std::string name(mangled);
  // Mach-O style names have one underscore more.
  const bool itanium = mangled.starts_with("_Z") || mangled.starts_with("_GLOBAL_");
  const bool rust = mangled.starts_with("_R") || mangled.starts_with("_ZN");
  const bool d = mangled.starts_with("_D");
  if (!(itanium || rust || d) || name.size() > kMaxMangledBytes ||
      mangled.find('\0') != mangled.npos) {
    return name;
  }
  if (d) {
    std::string text = DemangleD(name);
    return text.empty() ? name : text;
  }
  // One buffer a thread: the budget is too large for the stack of a small one.
  thread_local const std::unique_ptr<Output> output = std::make_unique<Output>();
  if (rust && RunCallback(rust_demangle_callback, name.c_str(), output.get())) {
    return {output->bytes, output->size};
  }
  if (itanium && Conversions(mangled) <= kMaxConversions &&
      RunCallback(cplus_demangle_v3_callback, name.c_str(), output.get())) {
    return {output->bytes, output->size};
  }
  return name;
}

}  // namespace culprit::symbol
