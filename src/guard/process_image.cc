// SPDX-License-Identifier: Apache-2.0
#include "guard/process_image.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "guard/proc_file.h"

namespace culprit::guard {
namespace {

constexpr std::string_view kRuntimeName = "libculprit_guard.so";

// One word of a line of maps; the line loses it.
std::string_view TakeWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return word;
}

bool ParseHex(std::string_view text, uint64_t& value) {
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return code == std::errc() && rest == text.data() + text.size();
}

bool ParseMapsLine(std::string_view line, MappedCode& code) {
  const std::string_view range = TakeWord(line);
  const std::string_view rights = TakeWord(line);
  const std::string_view offset = TakeWord(line);
  TakeWord(line);  // device
  TakeWord(line);  // inode
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos || rights.size() < 3 || rights[2] != 'x') return false;
  if (!ParseHex(range.substr(0, dash), code.begin) || !ParseHex(range.substr(dash + 1), code.end) ||
      !ParseHex(offset, code.file_offset)) {
    return false;
  }
  if (line.starts_with('/') && !line.ends_with(" (deleted)")) code.path = line;
  return code.begin < code.end;
}

std::string HexText(uint64_t value) {
  char digits[16];
  const auto [end, code] = std::to_chars(digits, digits + sizeof(digits), value, 16);
  return code == std::errc() ? "0x" + std::string(digits, end) : "";
}

}  // namespace

ProcessImage::Owner ProcessImage::OwnerOf(uint64_t address) const {
  const MappedCode* code = Find(address);
  if (code == nullptr || code->path.empty()) return Owner::kNoFile;
  return BaseName(code->path) == kRuntimeName ? Owner::kRuntime : Owner::kOther;
}

Result<ProcessImage> ProcessImage::Read(int64_t pid) {
  CULPRIT_ASSIGN(const std::string maps, ReadProcFile(ProcPath(pid, "maps")));
  return Parse(maps);
}

ProcessImage ProcessImage::Parse(std::string_view maps) {
  ProcessImage image;
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    MappedCode code;
    if (ParseMapsLine(maps.substr(0, end), code)) image.code_.push_back(std::move(code));
    maps.remove_prefix(std::min(end + 1, maps.size()));
  }
  std::sort(image.code_.begin(), image.code_.end(),
            [](const MappedCode& a, const MappedCode& b) { return a.begin < b.begin; });
  return image;
}

const MappedCode* ProcessImage::Find(uint64_t address) const {
  const auto behind =
      std::upper_bound(code_.begin(), code_.end(), address,
                       [](uint64_t value, const MappedCode& code) { return value < code.begin; });
  if (behind == code_.begin()) return nullptr;
  const MappedCode& code = *std::prev(behind);
  return address < code.end ? &code : nullptr;
}

std::string NamedFrame::ToString() const {
  if (module.empty()) return "[" + HexText(address) + "]";
  return module + "!" + (function.empty() ? "+" + HexText(offset) : function);
}

std::vector<NamedFrame> NameFrames(const std::vector<uint64_t>& addresses, bool first_is_place,
                                   const ProcessImage& image, symbol::Symbolizer& symbolizer) {
  std::vector<NamedFrame> frames;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const uint64_t address = addresses[i];
    const bool is_return = i > 0 || !first_is_place;
    const MappedCode* code = image.Find(is_return && address > 0 ? address - 1 : address);
    if (code == nullptr || code->path.empty()) {
      // Code without a file near the top of a stack is a patched entry on its way.
      if (code == nullptr || !frames.empty()) frames.push_back({.address = address});
      continue;
    }
    const std::string_view module = BaseName(code->path);
    if (module == kRuntimeName) continue;
    const uint64_t offset = address - code->begin + code->file_offset;
    const auto& symbols = symbolizer.Lookup({code->path, ""}, offset, is_return);
    for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) {
      const uint64_t start = symbol->function_start;
      frames.push_back({.address = address,
                        .module = std::string(module),
                        .function = symbol->function,
                        .file = symbol->file,
                        .line = symbol->line,
                        .offset = start != 0 ? start : offset,
                        .inlined = symbol->inlined});
    }
  }
  return frames;
}

}  // namespace culprit::guard
