// SPDX-License-Identifier: Apache-2.0
#include "synth/call_graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"

namespace culprit::synth {
namespace {

enum class Naming { kCamel, kMethod, kSnake };

struct ModuleSpec {
  std::string_view name;
  uint32_t functions;
  Naming naming;
  std::array<std::string_view, 3> calls;  // besides itself
};

// User-mode modules call user-mode ones and drivers call drivers: the way into
// the kernel is part of each stack's fixed tail (world.cc).
constexpr ModuleSpec kModules[] = {
    {"Browser", 420, Naming::kMethod, {"webview", "jsengine", "user32"}},
    {"webview", 380, Naming::kMethod, {"textlayout", "jsengine", "gdi32"}},
    {"jsengine", 300, Naming::kMethod, {"webview", "ole32", "kernelbase"}},
    {"textlayout", 140, Naming::kCamel, {"gdi32", "imagecodec", "kernelbase"}},
    {"imagecodec", 120, Naming::kCamel, {"kernelbase", "gdi32", "kernelbase"}},
    {"Explorer", 400, Naming::kMethod, {"shell32", "contoso_ext", "user32"}},
    {"shell32", 380, Naming::kMethod, {"ole32", "contoso_ext", "propsys"}},
    {"propsys", 160, Naming::kMethod, {"ole32", "kernelbase", "rpcrt4"}},
    {"contoso_ext", 120, Naming::kMethod, {"ole32", "gdi32", "kernelbase"}},
    {"fabrikam_toolbar", 120, Naming::kMethod, {"ole32", "user32", "gdi32"}},
    {"App", 360, Naming::kMethod, {"appcore", "fabrikam_toolbar", "user32"}},
    {"appcore", 300, Naming::kMethod, {"ole32", "msxml", "kernelbase"}},
    {"msxml", 160, Naming::kCamel, {"ole32", "kernelbase", "kernelbase"}},
    {"AV", 200, Naming::kCamel, {"avengine", "rpcrt4", "kernelbase"}},
    {"avengine", 260, Naming::kCamel, {"imagecodec", "kernelbase", "kernelbase"}},
    {"CM", 160, Naming::kCamel, {"msxml", "rpcrt4", "kernelbase"}},
    {"svchost", 260, Naming::kCamel, {"rpcrt4", "ole32", "kernelbase"}},
    {"dwm", 180, Naming::kCamel, {"gdi32", "user32", "kernelbase"}},
    {"user32", 160, Naming::kCamel, {"gdi32", "kernelbase", "ole32"}},
    {"gdi32", 140, Naming::kCamel, {"kernelbase", "kernelbase", "imagecodec"}},
    {"ole32", 220, Naming::kMethod, {"rpcrt4", "kernelbase", "rpcrt4"}},
    {"rpcrt4", 160, Naming::kCamel, {"kernelbase", "kernelbase", "ole32"}},
    {"kernelbase", 220, Naming::kCamel, {"kernelbase", "kernelbase", "kernelbase"}},
    {"httpd", 260, Naming::kSnake, {"libapr", "mod_php", "libc"}},
    {"mod_php", 240, Naming::kSnake, {"libapr", "libc", "libssl"}},
    {"libssl", 160, Naming::kSnake, {"libc", "libc", "libapr"}},
    {"libapr", 140, Naming::kSnake, {"libc", "libc", "libc"}},
    {"libc", 160, Naming::kSnake, {"libc", "libc", "libc"}},
    {"kernel", 320, Naming::kCamel, {"fs.sys", "kernel", "win32k.sys"}},
    {"win32k.sys", 160, Naming::kCamel, {"graphics.sys", "kernel", "win32k.sys"}},
    {"graphics.sys", 120, Naming::kCamel, {"kernel", "graphics.sys", "graphics.sys"}},
    {"fv.sys", 60, Naming::kCamel, {"fs.sys", "av.sys", "kernel"}},
    {"av.sys", 60, Naming::kCamel, {"fs.sys", "kernel", "fs.sys"}},
    {"fs.sys", 140, Naming::kCamel, {"se.sys", "kernel", "disk.sys"}},
    {"se.sys", 50, Naming::kCamel, {"disk.sys", "kernel", "disk.sys"}},
    {"dp.sys", 30, Naming::kCamel, {"disk.sys", "storport.sys", "kernel"}},
    {"disk.sys", 50, Naming::kCamel, {"storport.sys", "storport.sys", "kernel"}},
    {"storport.sys", 50, Naming::kCamel, {"kernel", "storport.sys", "storport.sys"}},
    {"net.sys", 90, Naming::kCamel, {"kernel", "net.sys", "net.sys"}},
};

constexpr std::string_view kVerbs[] = {
    "Get",     "Set",    "Create", "Find",    "Update",  "Load",   "Parse",    "Open",  "Close",
    "Resolve", "Query",  "Build",  "Commit",  "Flush",   "Notify", "Invoke",   "Merge", "Render",
    "Measure", "Decode", "Encode", "Process", "Prepare", "Handle", "Dispatch", "Probe", "Validate",
    "Attach",  "Detach", "Bind",   "Release", "Collect", "Expand", "Init",     "Walk",  "Map"};
constexpr std::string_view kNouns[] = {
    "Item",    "View",      "Layout",   "Folder",  "Node",    "Cache",  "Table",   "Entry",
    "Path",    "Stream",    "Buffer",   "Window",  "Menu",    "Icon",   "Style",   "Script",
    "Object",  "Handle",    "Key",      "Value",   "Record",  "Range",  "Region",  "Font",
    "Image",   "Page",      "Frame",    "Tab",     "Request", "Token",  "Policy",  "Session",
    "Client",  "Channel",   "Packet",   "Block",   "Sector",  "Volume", "Mapping", "Section",
    "Context", "Attribute", "Property", "Element", "Binding", "Filter", "Queue",   "Task"};
constexpr std::string_view kSuffixes[] = {"",      "",     "",       "Internal", "Ex",     "Worker",
                                          "Async", "List", "ById",   "ByName",   "Impl",   "Core",
                                          "State", "Info", "Header", "Thunk",    "Locked", "Fast"};

constexpr std::string_view kReservedNames[] = {
    "TabCreate",        "RestoreSession",    "QueryFileTable",
    "AcquireMDU",       "GetHashCode",       "InitComponents",
    "GetShortPathName", "MmAccessFault",     "ShapeParagraph",
    "FindGlyph",        "NavigatePage",      "ShowMenu",
    "LockSurface",      "AcquireDeviceLock", "unixd_accept",
    "child_main",       "HoldUntilSettled",  "ReadThumbnail",
    "ReadDirect",       "GetMessage",        "WaitForInput",
    "HousekeepingLoop", "DelayExecution",    "AcquireLock",
    "WaitForObject",    "OpenFile",          "Read",
    "ReadDecrypt",      "MapSurface",        "PageIn",
    "apr_socket_accept"};

template <size_t N>
std::string_view PickWord(const std::string_view (&words)[N], Random& random) {
  return words[random.Below(N)];
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string MakeName(Naming naming, Random& random) {
  const std::string_view verb = PickWord(kVerbs, random);
  const std::string_view noun = PickWord(kNouns, random);
  const std::string_view other = PickWord(kNouns, random);
  const std::string_view suffix = PickWord(kSuffixes, random);
  if (naming == Naming::kSnake) {
    std::string name = Lower(verb) + "_" + Lower(noun) + "_" + Lower(other);
    if (!suffix.empty()) name += "_" + Lower(suffix);
    return name;
  }
  if (naming == Naming::kMethod) {
    std::string name = "C";
    name.append(noun).append(other).append("::").append(verb);
    return name.append(PickWord(kNouns, random)).append(suffix);
  }
  return std::string(verb).append(noun).append(other).append(suffix);
}

bool IsReserved(std::string_view name) {
  return std::find(std::begin(kReservedNames), std::end(kReservedNames), name) !=
         std::end(kReservedNames);
}

uint32_t FindModule(std::string_view name) {
  for (uint32_t module = 0; module < std::size(kModules); ++module) {
    if (kModules[module].name == name) return module;
  }
  CULPRIT_CHECK(false);
}

}  // namespace

bool IsKernelModule(std::string_view module) {
  return module == "kernel" || (module.size() > 4 && module.substr(module.size() - 4) == ".sys");
}

CallGraph::CallGraph(uint64_t seed) : seed_(Mix(seed)) {
  Random random(seed_);
  for (uint32_t module = 0; module < std::size(kModules); ++module) {
    first_.push_back(static_cast<uint32_t>(functions_.size()));
    std::set<std::string> used;
    while (used.size() < kModules[module].functions) {
      std::string name = MakeName(kModules[module].naming, random);
      if (IsReserved(name) || !used.insert(name).second) continue;
      functions_.push_back({.module = module, .name = std::move(name)});
    }
  }
  first_.push_back(static_cast<uint32_t>(functions_.size()));
}

std::string_view CallGraph::ModuleName(uint32_t module) const { return kModules[module].name; }

// Derived from a hash instead of stored: the same for every walk.
FunctionIndex CallGraph::Callee(FunctionIndex caller, size_t which) const {
  const uint32_t module = functions_[caller].module;
  Random random(seed_ ^ Mix((static_cast<uint64_t>(caller) << 8) | which));
  const uint32_t target =
      random.Percent(72) ? module : FindModule(kModules[module].calls[random.Below(3)]);
  const uint32_t count = first_[target + 1] - first_[target];
  return first_[target] + static_cast<uint32_t>(random.Skewed(count));
}

void CallGraph::Walk(std::string_view module, size_t length, Random& random,
                     std::vector<FunctionIndex>& out) const {
  if (length == 0) return;
  const uint32_t start = FindModule(module);
  FunctionIndex at = first_[start] + static_cast<uint32_t>(random.Below(6));
  out.push_back(at);
  for (size_t i = 1; i < length; ++i) {
    at = Callee(at, random.Skewed(6));
    out.push_back(at);
  }
}

}  // namespace culprit::synth
