// SPDX-License-Identifier: Apache-2.0
#include "symbol/debug_files.h"

#include <elfutils/libdwelf.h>
#include <lzma.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "symbol/decompress.h"

namespace culprit::symbol {
namespace {

constexpr std::string_view kOtherBuildId = "module whose local file has another build-id";
constexpr std::string_view kMissing = "module whose file is not on this machine";
constexpr std::string_view kUnreadable = "module whose file is not readable as ELF";
constexpr size_t kMaxKernelModuleBytes = size_t{512} << 20;
constexpr size_t kMaxDependencyBytes = size_t{64} << 20;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

bool IsHexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

// "FOLDER/.build-id/ab/cdef"; empty if the build-id cannot be one.
std::string BuildIdPath(const std::string& folder, const std::string& build_id) {
  if (folder.empty() || build_id.size() < 4 || !IsHexadecimal(build_id)) return {};
  return folder + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
}

std::optional<ElfFile> OpenWithBuildId(const std::string& path, std::string_view build_id) {
  if (!Exists(path)) return std::nullopt;
  auto file = ElfFile::Open(path);
  if (!file.ok() || !SameBuildId(file.value().build_id(), build_id)) return std::nullopt;
  return std::move(file).value();
}

// perf keeps ab/cdef as a folder with `elf` or `vdso` in it; before version 4.5
// it was a link to the file itself.
std::optional<ElfFile> OpenFromCache(const ModuleKey& key, const SymbolizerOptions& options) {
  const std::string base = BuildIdPath(options.build_id_cache, key.build_id);
  if (base.empty()) return std::nullopt;
  for (const char* name : {"/elf", "/vdso", ""}) {
    auto file = OpenWithBuildId(base + name, key.build_id);
    if (file) return file;
  }
  return std::nullopt;
}

// "CACHE/BUILDID/executable", or "debuginfo".
std::string DebuginfodPath(const SymbolizerOptions& options, const std::string& build_id,
                           std::string_view what) {
  if (options.debuginfod_cache.empty() || build_id.empty() || !IsHexadecimal(build_id)) return {};
  return options.debuginfod_cache + "/" + build_id + "/" + std::string(what);
}

// A file that is not, or no longer, where it was loaded from. Only the build-id
// tells that it is the same.
std::optional<ElfFile> OpenElsewhere(const ModuleKey& key, const SymbolizerOptions& options) {
  if (key.build_id.empty()) return std::nullopt;
  std::vector<std::string> candidates = {DebuginfodPath(options, key.build_id, "executable")};
  for (const std::string& folder : options.debug_folders) {
    candidates.push_back(BuildIdPath(options.sysroot + folder, key.build_id));
    if (!key.path.starts_with('/')) continue;
    candidates.push_back(options.sysroot + folder + key.path);
    candidates.push_back(options.sysroot + folder + key.path.substr(key.path.rfind('/')));
  }
  for (const std::string& candidate : candidates) {
    if (candidate.empty()) continue;
    // A debug file alone does not know where code stands in the module's file.
    auto file = OpenWithBuildId(candidate, key.build_id);
    if (file && file->FindSection(".text") != nullptr &&
        file->FindSection(".text")->header.sh_type != SHT_NOBITS) {
      return file;
    }
  }
  return std::nullopt;
}

// The running process's own vdso: the kernel maps whole pages of a small ELF
// image whose section headers come last.
std::optional<ElfFile> OpenVdso(const std::string& build_id) {
  const auto address = static_cast<uintptr_t>(getauxval(AT_SYSINFO_EHDR));
  if (address == 0 || build_id.empty()) return std::nullopt;
  const char* image = nullptr;
  std::memcpy(&image, &address, sizeof image);
  uint64_t size = 0;
  if (image[EI_CLASS] == ELFCLASS64) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    size = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  } else {
    Elf32_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    size = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  }
  auto file = ElfFile::FromBytes(std::string(image, size), "[vdso]");
  if (!file.ok() || !SameBuildId(file.value().build_id(), build_id)) return std::nullopt;
  return std::move(file).value();
}

Result<ElfFile> OpenKernelModulePath(const std::string& path) {
  const bool xz = path.ends_with(".xz");
  if (!xz && !path.ends_with(".zst")) return ElfFile::Open(path);
  CULPRIT_ASSIGN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxKernelModuleBytes) return Error{.message = "too large", .file = path};
  std::string packed;
  CULPRIT_TRY(file.ReadAt(0, file.size(), packed));
  CULPRIT_ASSIGN(std::string bytes, xz ? DecompressXz(packed, kMaxKernelModuleBytes)
                                       : DecompressZstd(packed, kMaxKernelModuleBytes));
  return ElfFile::FromBytes(std::move(bytes), path);
}

// The path of "[ext4]" in the running kernel's modules.dep, whose lines start
// "kernel/fs/ext4/ext4.ko.xz:". A dash in a file name is an underscore in the
// kernel.
std::string KernelModulePath(std::string_view name, const SymbolizerOptions& options) {
  utsname system = {};
  if (uname(&system) != 0) return {};
  const std::string folder = options.sysroot + "/lib/modules/" + system.release;
  auto file = InputFile::Open(folder + "/modules.dep");
  std::string text;
  if (!file.ok() || !file.value().ReadAt(0, kMaxDependencyBytes, text).ok()) return {};
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view path = line.substr(0, line.find(':'));
    std::string base(path.substr(path.rfind('/') + 1));
    base.resize(std::min(base.size(), base.find(".ko")));
    std::replace(base.begin(), base.end(), '-', '_');
    if (base == name) return folder + "/" + std::string(path);
  }
  return {};
}

// "[ext4]" is the running kernel's only if the build-id says so.
std::optional<ElfFile> OpenBracketed(const ModuleKey& key, const SymbolizerOptions& options) {
  if (key.path == "[vdso]") return OpenVdso(key.build_id);
  if (key.build_id.empty() || key.path.size() < 3 || !key.path.ends_with("]")) return std::nullopt;
  const std::string path =
      KernelModulePath(std::string_view(key.path).substr(1, key.path.size() - 2), options);
  if (path.empty()) return std::nullopt;
  auto file = OpenKernelModulePath(path);
  if (!file.ok() || !SameBuildId(file.value().build_id(), key.build_id)) return std::nullopt;
  return std::move(file).value();
}

bool ChecksumIs(const std::string& path, uint32_t expected) {
  auto file = InputFile::Open(path);
  if (!file.ok()) return false;
  constexpr size_t kChunk = 1 << 20;
  uint32_t checksum = 0;
  std::string chunk;
  for (uint64_t at = 0; at < file.value().size(); at += kChunk) {
    if (!file.value().ReadAt(at, kChunk, chunk).ok()) return false;
    checksum = lzma_crc32(reinterpret_cast<const uint8_t*>(chunk.data()), chunk.size(), checksum);
  }
  return checksum == expected;
}

std::optional<ElfFile> OpenByDebugLink(const ElfFile& file, const SymbolizerOptions& options) {
  GElf_Word checksum = 0;
  const char* link = dwelf_elf_gnu_debuglink(file.handle(), &checksum);
  if (link == nullptr || *link == '\0' || std::strchr(link, '/') != nullptr) return std::nullopt;
  const std::string folder = std::filesystem::path(file.path()).parent_path().string();
  std::vector<std::string> candidates = {folder + "/" + link, folder + "/.debug/" + link};
  for (const std::string& debug : options.debug_folders) {
    candidates.push_back(options.sysroot + debug +
                         folder.substr(std::min(folder.size(), options.sysroot.size())) + "/" +
                         link);
  }
  for (const std::string& candidate : candidates) {
    if (candidate == file.path() || !Exists(candidate) || !ChecksumIs(candidate, checksum))
      continue;
    auto found = ElfFile::Open(candidate);
    if (found.ok()) return std::move(found).value();
  }
  return std::nullopt;
}

std::optional<ElfFile> OpenRecordedPath(const ModuleKey& key, const SymbolizerOptions& options,
                                        Diagnostics& diagnostics) {
  // Anonymous memory and the like has no file to miss.
  if (!key.path.starts_with('/') || key.path.starts_with("//")) return std::nullopt;
  std::string path = options.sysroot + key.path;
  constexpr std::string_view kDeleted = " (deleted)";
  const bool deleted = path.ends_with(kDeleted);
  if (deleted) path.resize(path.size() - kDeleted.size());
  // Of a file that was replaced while it ran, only the build-id can tell.
  if (!Exists(path) || (deleted && key.build_id.empty())) {
    diagnostics.Count(kMissing);
    return std::nullopt;
  }
  auto file = OpenKernelModulePath(path);
  if (!file.ok()) {
    diagnostics.Count(kUnreadable);
    return std::nullopt;
  }
  if (!key.build_id.empty() && !SameBuildId(file.value().build_id(), key.build_id)) {
    diagnostics.Count(kOtherBuildId);
    return std::nullopt;
  }
  return std::move(file).value();
}

}  // namespace

std::optional<ElfFile> OpenModuleFile(const ModuleKey& key, const SymbolizerOptions& options,
                                      Diagnostics& diagnostics) {
  if (auto cached = OpenFromCache(key, options)) return cached;
  if (key.path.starts_with('[')) {
    auto file = OpenBracketed(key, options);
    return file ? std::move(file) : OpenElsewhere(key, options);
  }
  Diagnostics problems;
  if (auto file = OpenRecordedPath(key, options, problems)) return file;
  if (auto file = OpenElsewhere(key, options)) return file;
  diagnostics.Merge(problems);
  return std::nullopt;
}

std::optional<ElfFile> OpenDebugFile(const ElfFile& file, const SymbolizerOptions& options) {
  std::vector<std::string> candidates;
  for (const std::string& folder : options.debug_folders) {
    const std::string path = BuildIdPath(options.sysroot + folder, file.build_id());
    if (!path.empty()) candidates.push_back(path + ".debug");
  }
  const std::string cached = BuildIdPath(options.build_id_cache, file.build_id());
  if (!cached.empty()) candidates.push_back(cached + "/debug");
  const std::string fetched = DebuginfodPath(options, file.build_id(), "debuginfo");
  if (!fetched.empty()) candidates.push_back(fetched);
  for (const std::string& candidate : candidates) {
    if (auto found = OpenWithBuildId(candidate, file.build_id())) return found;
  }
  return OpenByDebugLink(file, options);
}

ModuleFiles FindModuleFiles(const ModuleKey& key, const SymbolizerOptions& options) {
  ModuleFiles files;
  Diagnostics ignored;
  const auto file = OpenModuleFile(key, options, ignored);
  if (!file) return files;
  files.path = file->path();
  const auto look = [&](const ElfFile& elf) {
    files.names = files.names || elf.FindSection(".symtab") != nullptr;
    files.lines = files.lines || elf.FindSection(".debug_info") != nullptr;
  };
  look(*file);
  if (files.names && files.lines) return files;
  if (const auto debug = OpenDebugFile(*file, options)) look(*debug);
  return files;
}

std::string DebuginfodCacheFolder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string path = variable("DEBUGINFOD_CACHE_PATH"); !path.empty()) return path;
  const std::string home = variable("HOME");
  std::error_code error;
  const std::string old = home + "/.debuginfod_client_cache";
  if (!home.empty() && std::filesystem::is_directory(old, error)) return old;
  const std::string cache = variable("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/debuginfod_client";
  return home.empty() ? std::string() : home + "/.cache/debuginfod_client";
}

}  // namespace culprit::symbol
