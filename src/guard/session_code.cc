// SPDX-License-Identifier: Apache-2.0
#include "guard/session_code.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {
namespace {

constexpr size_t kMaxFunctionIds = size_t{1} << 20;  // ids have 20 bits

std::string_view NextField(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end);
  return field;
}

bool ParseNumber(std::string_view text, int base, uint64_t& value) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// As the process wrote it last.
Result<std::string> ReadLatest(const std::string& path) {
  auto later = ReadWholeFile(path + wire::kLaterFile);
  return later.ok() ? later : ReadWholeFile(path);
}

}  // namespace

void SessionCode::AddProcess(const std::string& session_folder, uint32_t pid,
                             Diagnostics& diagnostics) {
  Process& process = processes_[pid];
  const std::string suffix = "." + std::to_string(pid);
  const auto text = ReadLatest(session_folder + "/modules" + suffix);
  const auto bytes = ReadLatest(session_folder + "/functions" + suffix);
  // A parent that only forks and waits has no log of its own.
  wire::FunctionsHeader header = {};
  if (bytes.ok() && bytes.value().size() >= sizeof(header)) {
    std::memcpy(&header, bytes.value().data(), sizeof(header));
    if (header.inherits_pid != 0 && !processes_.contains(header.inherits_pid)) {
      AddProcess(session_folder, header.inherits_pid, diagnostics);
    }
  }
  if (text.ok()) {
    AddModules(text.value(), process, diagnostics);
  } else {
    diagnostics.Count("process without a list of modules");
  }
  if (bytes.ok()) {
    AddFunctions(bytes.value(), process, diagnostics);
  } else {
    diagnostics.Count("process without a list of functions");
  }
}

void SessionCode::AddModules(std::string_view text, Process& process, Diagnostics& diagnostics) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    uint64_t index = 0;
    uint64_t bias = 0;
    uint64_t end = 0;
    const bool numbers = ParseNumber(NextField(line), 10, index) &&
                         ParseNumber(NextField(line), 16, bias) &&
                         ParseNumber(NextField(line), 16, end);
    std::string build_id(NextField(line));
    if (!numbers || build_id.empty() || index > UINT32_MAX) {
      diagnostics.Count("bad line in a list of modules");
      continue;
    }
    if (build_id == "-") build_id.clear();
    const std::string path(line.substr(std::min(line.find_first_not_of(" \t"), line.size())));
    const std::string key = build_id.empty() ? path : std::string(BaseName(path));
    const auto [found, made] =
        module_numbers_.try_emplace({build_id, key}, static_cast<uint32_t>(modules_.size()));
    if (made) modules_.push_back({build_id, path});
    process.module_of_index[static_cast<uint32_t>(index)] = found->second;
    process.loaded.push_back({bias, end, found->second});
  }
  std::stable_sort(process.loaded.begin(), process.loaded.end(),
                   [](const Loaded& x, const Loaded& y) { return x.bias < y.bias; });
}

void SessionCode::AddFunctions(std::string_view bytes, Process& process, Diagnostics& diagnostics) {
  wire::FunctionsHeader header;
  if (bytes.size() < sizeof(header)) {
    diagnostics.Count("list of functions cut short");
    return;
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != wire::Magic("CGFUNC01") || header.version != wire::kWireVersion) {
    diagnostics.Count("list of functions of an unknown kind");
    return;
  }
  if (header.inherits_pid != 0) {
    const auto parent = processes_.find(header.inherits_pid);
    if (parent == processes_.end()) {
      diagnostics.Count("process whose parent's functions are not known");
    } else {
      process.functions = parent->second.functions;
      for (const auto& [index, module] : parent->second.module_of_index) {
        process.module_of_index.try_emplace(index, module);
      }
    }
  }
  if (header.first_id > kMaxFunctionIds) {
    diagnostics.Count("list of functions with a wrong first id");
    return;
  }
  process.functions.resize(header.first_id, kNoIndex);
  bytes.remove_prefix(sizeof(header));
  for (; bytes.size() >= sizeof(wire::FunctionRecord);
       bytes.remove_prefix(sizeof(wire::FunctionRecord))) {
    if (process.functions.size() >= kMaxFunctionIds) break;
    wire::FunctionRecord record;
    std::memcpy(&record, bytes.data(), sizeof(record));
    const auto module = process.module_of_index.find(record.module);
    if (module == process.module_of_index.end()) {
      diagnostics.Count("function of a module that is not listed");
      process.functions.push_back(kNoIndex);
      continue;
    }
    if (modules_[module->second].build_id.empty()) {
      diagnostics.Count("function of a module without a build-id, which cannot be guarded");
      process.functions.push_back(kNoIndex);
      continue;
    }
    const auto [found, made] = function_numbers_.try_emplace(
        CodeAddress{module->second, record.offset}, static_cast<uint32_t>(functions_.size()));
    if (made) functions_.push_back({module->second, record.offset, record.size});
    process.functions.push_back(found->second);
  }
}

uint32_t SessionCode::FunctionOf(uint32_t pid, uint32_t id) const {
  const std::vector<uint32_t>& ids = FunctionIds(pid);
  return id < ids.size() ? ids[id] : kNoIndex;
}

const std::vector<uint32_t>& SessionCode::FunctionIds(uint32_t pid) const {
  static const std::vector<uint32_t> kNone;
  const auto process = processes_.find(pid);
  return process == processes_.end() ? kNone : process->second.functions;
}

CodeAddress SessionCode::Resolve(uint32_t pid, uint64_t address) const {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return {};
  const std::vector<Loaded>& loaded = process->second.loaded;
  auto behind = std::upper_bound(loaded.begin(), loaded.end(), address,
                                 [](uint64_t at, const Loaded& row) { return at < row.bias; });
  // A bias of 0 (not position-independent) lies below everything else's, so the
  // nearest below need not be the one.
  while (behind != loaded.begin()) {
    --behind;
    if (address < behind->end) return {behind->module, address - behind->bias};
  }
  return {};
}

uint32_t SessionCode::FunctionAt(const CodeAddress& place) const {
  auto behind = function_numbers_.upper_bound(place);
  if (behind == function_numbers_.begin()) return kNoIndex;
  --behind;
  const Function& function = functions_[behind->second];
  if (behind->first.module != place.module) return kNoIndex;
  const bool inside = place.offset - function.offset < std::max<uint64_t>(function.size, 1);
  return inside || function.size == 0 ? behind->second : kNoIndex;
}

}  // namespace culprit::guard
