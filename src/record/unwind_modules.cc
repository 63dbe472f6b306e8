// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_modules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "symbol/elf_file.h"

namespace culprit::record {
namespace {

constexpr std::string_view kVdso = "[vdso]";
// A file that is reached only through a process is read as a whole.
constexpr int64_t kMaxWholeFile = int64_t{256} << 20;
constexpr int kMaxProgramHeaders = 1000;

std::string MapFile(int64_t pid, const MapEntry& map) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, map.start, map.end);
}

// Every process has the same one.
std::optional<symbol::ElfFile> OpenVdso() {
  for (const MapEntry& map : ScanCode(getpid())) {
    if (map.path != kVdso) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel says so as a number
    const auto* image = reinterpret_cast<const char*>(map.start);
    auto file = symbol::ElfFile::FromBytes(std::string(image, map.end - map.start), map.path);
    if (file.ok()) return std::move(file).value();
  }
  return std::nullopt;
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string ReadWhole(int fd, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::vector<UnwindModule::Segment> CodeSegments(const symbol::ElfFile& file) {
  std::vector<UnwindModule::Segment> segments;
  size_t count = 0;
  if (elf_getphdrnum(file.handle(), &count) != 0) return segments;
  for (int i = 0; i < kMaxProgramHeaders && static_cast<size_t>(i) < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(file.handle(), i, &header) == nullptr) break;
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    segments.push_back({header.p_offset, header.p_vaddr, header.p_filesz});
  }
  return segments;
}

}  // namespace

std::string FindProgram(const std::string& name) {
  std::error_code code;
  if (name.find('/') != std::string::npos) return std::filesystem::absolute(name, code).string();
  const char* variable = getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::string path = std::string(folder) + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return std::filesystem::absolute(path, code).string();
  }
  return {};
}

// The kernel maps whole pages, so a mapping may begin before its segment.
bool UnwindModule::BiasOf(const MapEntry& map, uint64_t& bias) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const Segment& segment : segments) {
    const uint64_t first = segment.offset / page * page;
    if (map.file_offset < first || map.file_offset >= segment.offset + segment.size) continue;
    bias = map.start - (map.file_offset - segment.offset + segment.address);
    return true;
  }
  return false;
}

UnwindModule* UnwindModules::Add(const Identity& identity, const std::string& path) {
  const auto [it, is_new] = by_file_.try_emplace(identity, nullptr);
  if (is_new) {
    modules_.push_back(std::make_unique<UnwindModule>());
    it->second = modules_.back().get();
    it->second->path = path;
  }
  return it->second;
}

UnwindModule* UnwindModules::Find(int64_t pid, const MapEntry& map) {
  if (map.path == kVdso) return Add({}, map.path);
  if (!map.path.starts_with('/') || map.path.starts_with("//") || map.path.starts_with("/dev/")) {
    return nullptr;
  }
  struct stat mapped = {};
  struct stat named = {};
  const bool has_name = stat(map.path.c_str(), &named) == 0;
  const std::string link = MapFile(pid, map);
  std::string path = map.path;
  if (stat(link.c_str(), &mapped) == 0) {
    if (!has_name || !IsSameFile(mapped, named)) path = link;
  } else if (has_name) {
    mapped = named;
  } else {
    return nullptr;
  }
  if (!S_ISREG(mapped.st_mode)) return nullptr;
  return Add({mapped.st_dev, mapped.st_ino,
              mapped.st_mtim.tv_sec * 1'000'000'000 + mapped.st_mtim.tv_nsec, mapped.st_size},
             path);
}

UnwindModules::Compiled UnwindModules::Compile(const UnwindModule& module) {
  std::optional<symbol::ElfFile> file;
  if (module.path == kVdso) {
    file = OpenVdso();
  } else if (module.path.starts_with("/proc/")) {
    const int fd = open(module.path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size <= kMaxWholeFile) {
      auto opened = symbol::ElfFile::FromBytes(ReadWhole(fd, status.st_size), module.path);
      if (opened.ok()) file = std::move(opened).value();
    }
    if (fd >= 0) close(fd);
  } else if (auto opened = symbol::ElfFile::Open(module.path); opened.ok()) {
    file = std::move(opened).value();
  }
  Compiled compiled;
  if (!file) return compiled;
  compiled.readable = true;
  compiled.build_id = file->build_id();
  compiled.segments = CodeSegments(*file);
  Result<UnwindTable> table = UnwindTable::Build(*file);
  if (table.ok() && !table.value().rows().empty()) {
    compiled.table = std::make_shared<const UnwindTable>(std::move(table).value());
  }
  return compiled;
}

void UnwindModules::Finish(UnwindModule& module, Compiled compiled, UnwindImage& image) {
  module.state = UnwindModule::State::kNone;
  // The process may have gone that it was to be reached by; another may have it, too.
  if (!compiled.readable) {
    std::erase_if(by_file_, [&](const auto& entry) { return entry.second == &module; });
    return;
  }
  module.build_id = std::move(compiled.build_id);
  module.segments = std::move(compiled.segments);
  if (compiled.table == nullptr) return;
  const auto twin = by_build_id_.find(module.build_id);
  if (!module.build_id.empty() && twin != by_build_id_.end()) {
    module.table = twin->second->table;
    module.pieces = twin->second->pieces;
    module.state = UnwindModule::State::kReady;
    return;
  }
  std::optional<std::vector<UnwindPiece>> pieces = image.Add(*compiled.table);
  if (!pieces) {
    ++refused_;
    return;
  }
  module.table = std::move(compiled.table);
  module.pieces = std::move(*pieces);
  module.state = UnwindModule::State::kReady;
  if (!module.build_id.empty()) by_build_id_[module.build_id] = &module;
}

}  // namespace culprit::record
