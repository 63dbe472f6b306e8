// SPDX-License-Identifier: Apache-2.0
#include "import/uftrace_symbols.h"

#include <algorithm>

#include "base/text.h"
#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kMaxSymbolText = uint64_t{1} << 30;
constexpr uint64_t kPage = 4096;
constexpr size_t kMaxSessions = 100'000;

std::string_view TakeSymbolLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view AfterKey(std::string_view line, std::string_view key) {
  return line.starts_with(key) ? Trim(line.substr(key.size())) : std::string_view();
}

std::optional<std::string> ReadSymbolText(const Bytes* bytes) {
  std::string text;
  if (bytes == nullptr || bytes->size() > kMaxSymbolText) return std::nullopt;
  if (!bytes->ReadAt(0, static_cast<size_t>(bytes->size()), text).ok()) return std::nullopt;
  return text;
}

}  // namespace

UftraceSymbolFile::UftraceSymbolFile(std::string text) : text_(std::move(text)) {
  std::string_view rest = text_;
  while (!rest.empty()) Line(TakeSymbolLine(rest));
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.start < b.start; });
  // A symbol without a size, or with one too large, ends where the next begins.
  for (size_t i = 0; i + 1 < symbols_.size(); ++i) {
    const uint64_t next = symbols_[i + 1].start;
    if (symbols_[i].end <= symbols_[i].start || symbols_[i].end > next) symbols_[i].end = next;
  }
  if (!symbols_.empty()) {
    Symbol& last = symbols_.back();
    last.end = std::max(last.end, last.start + 1);
  }
}

// "000000000006fab0 00000010 P getaddrinfo", before: without the size.
void UftraceSymbolFile::Line(std::string_view line) {
  if (line.starts_with('#')) {
    if (const std::string_view path = AfterKey(line, "# path name:"); !path.empty()) path_ = path;
    if (const std::string_view id = AfterKey(line, "# build-id:"); !id.empty()) build_id_ = id;
    return;
  }
  const auto start = ParseHexadecimal(TakeToken(line));
  std::string_view type = TakeToken(line);
  uint64_t size = 0;
  if (type.size() > 1) {
    size = ParseHexadecimal(type).value_or(0);
    type = TakeToken(line);
  }
  const std::string_view name = Trim(line);
  // Types as of nm, P for calls through the linkage table; data and the end mark
  // are no functions.
  const bool code = type == "T" || type == "t" || type == "P" || type == "W" || type == "w" ||
                    type == "i" || type == "K";
  if (!start || type.size() != 1) return;
  const uint64_t end = size > UINT64_MAX - *start ? UINT64_MAX : *start + size;
  symbols_.push_back({.start = *start,
                      .end = end,
                      .name = code ? name : std::string_view(),
                      .linkage = type == "P"});
}

const UftraceSymbolFile::Symbol* UftraceSymbolFile::Find(uint64_t address) const {
  auto it = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](uint64_t a, const Symbol& symbol) { return a < symbol.start; });
  if (it == symbols_.begin()) return nullptr;
  --it;
  return address < it->end && !it->name.empty() ? &*it : nullptr;
}

UftraceSymbols::UftraceSymbols(const Source& source, trace::Dictionary& dictionary,
                               symbol::Symbolizer* symbolizer, Diagnostics& diagnostics)
    : source_(source), dictionary_(dictionary), symbolizer_(symbolizer), diagnostics_(diagnostics) {
  spaces_.emplace_back();  // of tasks whose session is not known
}

size_t UftraceSymbols::Session(std::string_view sid) {
  for (size_t i = 1; i < spaces_.size(); ++i) {
    if (spaces_[i].sid == sid) return i;
  }
  if (spaces_.size() >= kMaxSessions) return 0;
  spaces_.push_back({.sid = std::string(sid)});
  ReadMap(spaces_.back());
  return spaces_.size() - 1;
}

const UftraceSymbolFile* UftraceSymbols::Load(const std::string& name) {
  const auto [it, is_new] = files_.emplace(name, nullptr);
  if (!is_new) return it->second.get();
  auto text = ReadSymbolText(source_.Find(name));
  if (text) it->second = std::make_unique<UftraceSymbolFile>(std::move(*text));
  return it->second.get();
}

// Two modules of one name have files NAME.sym and NAME-XXXX.sym; what a file is
// of stands in its first lines.
const UftraceSymbolFile* UftraceSymbols::SymbolsOf(std::string_view path,
                                                   std::string_view build_id) {
  const std::string base(BaseName(path));
  const auto fits = [&](const UftraceSymbolFile* file) {
    if (file == nullptr || file->empty()) return false;
    if (!build_id.empty() && !file->build_id().empty()) return file->build_id() == build_id;
    return file->path().empty() || file->path() == path;
  };
  if (const UftraceSymbolFile* file = Load(base + ".sym"); fits(file)) return file;
  for (const SourceFile& candidate : source_.files()) {
    if (!candidate.path.starts_with(base + "-") || !candidate.path.ends_with(".sym")) continue;
    if (const UftraceSymbolFile* file = Load(candidate.path); fits(file)) return file;
  }
  return nullptr;
}

UftraceSymbols::Module UftraceSymbols::MakeModule(uint64_t base, uint64_t end,
                                                  std::string_view path,
                                                  std::string_view build_id) {
  Module module = {.base = base,
                   .end = end,
                   .path = std::string(path),
                   .build_id = std::string(build_id),
                   .symbols = SymbolsOf(path, build_id)};
  if (module.build_id.empty() && module.symbols != nullptr) {
    module.build_id = module.symbols->build_id();
  }
  module.id = dictionary_.InternModule(
      {.name = dictionary_.Intern(BaseName(path)),
       .path = dictionary_.Intern(path),
       .build_id = module.build_id.empty() ? StringId() : dictionary_.Intern(module.build_id)});
  return module;
}

// "aaaab7570000-aaaab7591000 r-xp 00000000 00:00 0   /bin/app build-id:ffa8..."
void UftraceSymbols::MapLine(Space& space, std::string_view line) {
  const std::string_view range = TakeToken(line);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return;
  const auto start = ParseHexadecimal(range.substr(0, dash));
  const auto end = ParseHexadecimal(range.substr(dash + 1));
  for (int i = 0; i < 4; ++i) (void)TakeToken(line);  // rights, offset, device, inode
  std::string_view path = Trim(line);
  std::string_view build_id;
  if (const size_t mark = path.rfind(" build-id:"); mark != std::string_view::npos) {
    build_id = Trim(path.substr(mark + 10));
    path = Trim(path.substr(0, mark));
  }
  if (!start || !end || *end <= *start || !path.starts_with('/')) return;
  // Further mappings of a module continue the one before.
  for (auto& [base, module] : space.modules) {
    if (module.path != path || base > *start) continue;
    module.end = std::max(module.end, *end);
    return;
  }
  space.modules[*start] = MakeModule(*start, *end, path, build_id);
}

void UftraceSymbols::ReadMap(Space& space) {
  const auto text = ReadSymbolText(source_.Find("sid-" + space.sid + ".map"));
  if (!text) {
    diagnostics_.Count("program image without a map of its modules");
    return;
  }
  std::string_view rest = *text;
  while (!rest.empty()) MapLine(space, TakeSymbolLine(rest));
}

void UftraceSymbols::AddModule(size_t session, uint64_t base, std::string_view path) {
  Space& space = spaces_[session];
  Module module = MakeModule(base, base + kPage, path, {});
  if (module.symbols != nullptr) {
    const uint64_t size = module.symbols->end();
    module.end = size > UINT64_MAX - base ? UINT64_MAX : std::max(base + size, module.end);
  }
  space.modules[base] = std::move(module);
}

std::vector<std::pair<uint64_t, uint64_t>> UftraceSymbols::CodeRanges() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Space& space : spaces_) {
    for (const auto& [base, module] : space.modules) ranges.emplace_back(base, module.end);
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  return ranges;
}

trace::FrameId UftraceSymbols::MakeFrame(const Space& space, uint64_t address) {
  auto it = space.modules.upper_bound(address);
  if (it == space.modules.begin() || (--it)->second.end <= address) {
    diagnostics_.Count("function outside of all known modules");
    const auto unknown = dictionary_.InternModule({.name = dictionary_.Intern("[unknown]")});
    return dictionary_.InternFrame({.module = unknown, .offset = address});
  }
  const Module& module = it->second;
  trace::Frame frame = {.module = module.id, .offset = address - module.base};
  if (module.symbols != nullptr) {
    const auto* found = module.symbols->Find(frame.offset);
    const bool absolute = found == nullptr;
    if (absolute) found = module.symbols->Find(address);
    if (found != nullptr && found->linkage) {
      return dictionary_.InternFrame("[plt]", symbol::Demangle(found->name));
    }
    if (found != nullptr) {
      frame.function = dictionary_.Intern(symbol::Demangle(found->name));
      frame.offset = absolute ? found->start - module.base : found->start;
      return dictionary_.InternFrame(frame);
    }
  } else {
    diagnostics_.Count("function of a module without a list of its symbols");
  }
  if (symbolizer_ != nullptr) {
    const auto& symbols = symbolizer_->Lookup({module.path, module.build_id}, frame.offset, false);
    if (!symbols.empty() && !symbols.front().function.empty()) {
      frame.function = dictionary_.Intern(symbols.front().function);
      if (symbols.front().function_start != 0) frame.offset = symbols.front().function_start;
    }
  }
  return dictionary_.InternFrame(frame);
}

trace::FrameId UftraceSymbols::FrameAt(size_t session, uint64_t address) {
  Space& space = spaces_[session];
  const auto it = space.frames.find(address);
  if (it != space.frames.end()) return it->second;
  const trace::FrameId frame = MakeFrame(space, address);
  space.frames.emplace(address, frame);
  return frame;
}

}  // namespace culprit::import_
