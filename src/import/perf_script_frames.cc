// SPDX-License-Identifier: Apache-2.0
#include "import/perf_script_frames.h"

#include <algorithm>

#include "import/importer.h"
#include "import/text_scan.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

using trace::FrameId;

constexpr size_t kMaxKnownLines = 1'000'000;
constexpr size_t kPerfMaxStack = 127;  // kernel.perf_event_max_stack
constexpr uint64_t kKernelAddresses = 0xffff'0000'0000'0000;
constexpr std::string_view kUnknownModule = "[unknown]";

struct FrameText {
  uint64_t address = 0;
  std::string_view symbol;
  std::string_view module;
};

std::optional<FrameText> SplitLine(std::string_view line) {
  FrameText out;
  std::string_view rest = Trim(line);
  const auto address = ParseHexadecimal(TakeToken(rest));
  if (!address || rest.empty()) return {};
  out.address = *address;
  // The module is the last parenthesis, with a blank before it; symbols have
  // parentheses of their own.
  const size_t open = rest.rfind(" (");
  if (rest.back() == ')' && open != std::string_view::npos) {
    out.module = rest.substr(open + 2, rest.size() - open - 3);
    rest = Trim(rest.substr(0, open));
  } else if (rest.back() == ')' && rest.front() == '(') {
    out.module = rest.substr(1, rest.size() - 2);
    rest = {};
  }
  const size_t plus = rest.rfind("+0x");
  if (plus != std::string_view::npos && ParseHexadecimal(rest.substr(plus + 1))) {
    rest = rest.substr(0, plus);
  }
  out.symbol = rest;
  return out;
}

}  // namespace

std::string ModuleName(std::string_view path) {
  if (path.empty() || path == kUnknownModule || path == "inlined") return {};
  if (path.starts_with("[kernel.") || path.starts_with("[guest.kernel")) return "[kernel]";
  const std::string_view base = path.substr(path.rfind('/') + 1);
  if (base == "vmlinux" || base.starts_with("vmlinux-") || path == "[kernel.vmlinux]") {
    return "[kernel]";
  }
  const size_t ko = base.find(".ko");
  if (ko != std::string_view::npos && path.front() == '/') {
    std::string name = "[" + std::string(base.substr(0, ko)) + "]";
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
  return std::string(base.empty() ? path : base);
}

bool IsKernelModule(std::string_view module_name, uint64_t address) {
  if (module_name == "[kernel]") return true;
  const bool bracketed = module_name.starts_with('[') && module_name != "[vdso]" &&
                         module_name != "[stack]" && module_name != "[heap]" &&
                         module_name != "[vsyscall]";
  return bracketed && address >= kKernelAddresses;
}

trace::ModuleId FrameLines::ModuleOf(std::string_view text) {
  const std::string name = ModuleName(text);
  if (name.empty()) return {};
  trace::Module module{.name = dictionary_.Intern(name)};
  if (text.front() == '/') module.path = dictionary_.Intern(text);
  return dictionary_.InternModule(module);
}

std::optional<FrameLines::Line> FrameLines::Read(std::string_view line) {
  const auto text = SplitLine(line);
  if (!text) return {};
  Line out;
  trace::Frame frame;
  out.inlined = text->module == "inlined";
  frame.module = ModuleOf(text->module);
  if (text->symbol.empty() || text->symbol == kUnknownModule) {
    if (frame.module.valid()) {
      frame.offset = text->address;
    } else {
      frame.function = dictionary_.Intern(kUnknownModule);
    }
  } else {
    frame.function = dictionary_.Intern(symbol::Demangle(text->symbol));
  }
  const std::string_view module =
      frame.module.valid() ? dictionary_.Text(dictionary_.modules()[frame.module.value].name) : "";
  if (IsKernelModule(module, text->address)) frame.flags |= trace::kKernelMode;
  if (out.inlined) frame.flags |= trace::kInlined;
  out.frame = dictionary_.InternFrame(frame);
  return out;
}

bool FrameLines::Add(std::string_view line) {
  key_ = Trim(line);
  auto it = known_.find(key_);
  if (it == known_.end()) {
    const auto read = Read(line);
    if (!read) return false;
    if (known_.size() >= kMaxKnownLines) known_.clear();
    it = known_.emplace(key_, *read).first;
  }
  if (lines_.size() < kMaxStackFrames) lines_.push_back(it->second);
  return true;
}

std::vector<FrameId> FrameLines::Take(bool drop_double_leaf) {
  if (drop_double_leaf && lines_.size() >= 2 && !lines_[0].inlined &&
      lines_[0].frame == lines_[1].frame) {
    lines_.erase(lines_.begin());
  }
  std::vector<FrameId> frames(lines_.size());
  trace::ModuleId module;
  for (size_t i = lines_.size(); i > 0; --i) {
    frames[i - 1] = lines_[i - 1].frame;
    trace::Frame frame = dictionary_.frames()[frames[i - 1].value];
    if (!lines_[i - 1].inlined) {
      module = frame.module;
    } else if (module.valid()) {
      frame.module = module;
      frames[i - 1] = dictionary_.InternFrame(frame);
    }
  }
  if (lines_.size() >= kPerfMaxStack) {
    frames.push_back(dictionary_.InternFrame("", trace::kTruncatedFunction));
  }
  lines_.clear();
  return frames;
}

}  // namespace culprit::import_
