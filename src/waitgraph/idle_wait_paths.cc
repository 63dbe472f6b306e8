// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/idle_wait_paths.h"

#include <map>
#include <tuple>

#include "waitgraph/wait_class_table.h"

namespace culprit::waitgraph {
namespace {

FunctionPaths::Function Describe(const trace::Dictionary& dictionary, trace::FrameId id) {
  const trace::Frame& frame = dictionary.frames()[id.value];
  std::string_view module;
  if (frame.module.valid()) module = dictionary.Text(dictionary.modules()[frame.module.value].name);
  ModuleKind kind = KindOfModule(module);
  if ((frame.flags & trace::kKernelMode) != 0) kind = ModuleKind::kKernel;
  const std::string_view name = dictionary.Text(frame.function);
  const FrameMeaning meaning = MeaningOf(name, kind);
  FunctionPaths::Function function;
  function.frame = id;
  function.named = !name.empty() && !name.starts_with("[unknown]");
  function.kernel = kind == ModuleKind::kKernel;
  function.system =
      function.kernel || module == "[vdso]" || (kind == ModuleKind::kLibrary && !module.empty());
  function.waiting = meaning.strength != Strength::kNone || meaning.plumbing;
  return function;
}

bool IsCut(const trace::Dictionary& dictionary, const FunctionPaths::Function& function) {
  if (!function.frame.valid()) return false;
  const trace::Frame& frame = dictionary.frames()[function.frame.value];
  return dictionary.Text(frame.function) == trace::kTruncatedFunction;
}

// Without what stands in brackets: parameters, template arguments. "(anonymous
// namespace)" goes too; the receiver of a Go method, "(*conn)", stays.
std::string WithoutBrackets(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (name.starts_with(kUnnamed)) name.remove_prefix(kUnnamed.size());
  std::string plain;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool receiver = c == '(' && name.substr(i).starts_with("(*");
    if ((c == '<' || (c == '(' && !receiver)) && i != 0) {
      ++depth;
    } else if ((c == '>' || c == ')') && depth > 0) {
      --depth;
    } else if (depth == 0) {
      plain += c;
    }
  }
  return plain;
}

// The last two parts of a qualified name.
std::string_view LastParts(std::string_view name) {
  name.remove_prefix(name.find_last_of("/ ") + 1);
  const std::string_view separator = name.find("::") != name.npos ? "::" : ".";
  const size_t last = name.rfind(separator);
  if (last == name.npos || last == 0) return name;
  const size_t before = name.rfind(separator, last - 1);
  return before == name.npos ? name : name.substr(before + separator.size());
}

}  // namespace

FunctionPaths::FunctionPaths(const trace::Dictionary& dictionary) : dictionary_(dictionary) {
  const std::vector<FunctionId> by_frame = InternFunctions();
  nodes_.push_back({});
  of_stack_.reserve(dictionary.stacks().size());
  for (const trace::StackNode& stack : dictionary.stacks()) {
    const bool has_caller = stack.parent.valid() && stack.parent.value < of_stack_.size();
    const PathId caller = has_caller ? of_stack_[stack.parent.value] : kRootPath;
    of_stack_.push_back(Extend(caller, by_frame[stack.frame.value]));
  }
}

std::vector<FunctionId> FunctionPaths::InternFunctions() {
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, FunctionId> ids;
  std::vector<FunctionId> by_frame;
  for (uint32_t i = 0; i < dictionary_.frames().size(); ++i) {
    const trace::Frame& frame = dictionary_.frames()[i];
    const StringId module =
        frame.module.valid() ? dictionary_.modules()[frame.module.value].name : StringId();
    const uint64_t offset = frame.function.valid() ? 0 : frame.offset;
    const auto [it, added] = ids.try_emplace({module.value, frame.function.value, offset},
                                             static_cast<FunctionId>(functions_.size()));
    if (added) functions_.push_back(Describe(dictionary_, trace::FrameId(i)));
    by_frame.push_back(it->second);
  }
  return by_frame;
}

PathId FunctionPaths::Extend(PathId caller, FunctionId function) {
  const uint64_t key = (static_cast<uint64_t>(caller) << 32) | function;
  const auto [it, added] = children_.try_emplace(key, static_cast<PathId>(nodes_.size()));
  if (added) {
    Node node = nodes_[caller];
    if (caller == kRootPath) {
      node.kernel_only = functions_[function].kernel;
      node.truncated = IsCut(dictionary_, functions_[function]);
    }
    node.caller = caller;
    node.function = function;
    ++node.depth;
    nodes_.push_back(node);
  }
  return it->second;
}

PathId FunctionPaths::Invented(std::string_view name) {
  const auto [it, added] = invented_.try_emplace(std::string(name));
  if (added) {
    Function function;
    function.invented = name;
    function.waiting = true;
    functions_.push_back(std::move(function));
    it->second = Extend(kRootPath, static_cast<FunctionId>(functions_.size() - 1));
  }
  return it->second;
}

bool FunctionPaths::IsTailOf(PathId cut, PathId path) const {
  // The outermost function of a truncated path is the mark of the cut.
  for (; caller(cut) != kRootPath; cut = caller(cut), path = caller(path)) {
    if (path == kRootPath || function(cut) != function(path)) return false;
  }
  return true;
}

std::string FunctionPaths::Name(FunctionId id) const {
  if (id == kNoFunction) return {};
  const Function& function = functions_[id];
  return function.frame.valid() ? dictionary_.FrameName(function.frame) : function.invented;
}

std::string FunctionPaths::ShortName(FunctionId id) const {
  if (id == kNoFunction) return {};
  const Function& function = functions_[id];
  if (!function.frame.valid()) return function.invented;
  const trace::Frame& frame = dictionary_.frames()[function.frame.value];
  const std::string plain = WithoutBrackets(dictionary_.Text(frame.function));
  return std::string(LastParts(plain));
}

}  // namespace culprit::waitgraph
