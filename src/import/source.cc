// SPDX-License-Identifier: Apache-2.0
#include "import/source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/file.h"
#include "import/archive.h"
#include "import/stored_bytes.h"
#include "import/trace_folder.h"

namespace culprit::import_ {
namespace {

// An archive inside an archive, or a compressed file inside one; not deeper.
constexpr int kMaxNesting = 2;

using Sources = std::vector<Result<Source>>;

struct Opening {
  Sources& sources;
  UnpackBudget budget;
};

void OpenBytes(Opening& opening, std::string name, std::shared_ptr<const Bytes> bytes, int nesting);

// The groups of an archive's members; `unpacked` may be the part before damage.
void OpenMembers(Opening& opening, const std::string& name, Unpacked unpacked, int nesting) {
  std::vector<std::string> paths;
  for (const SourceFile& file : unpacked.files) paths.push_back(file.path);
  // Of two members with one path the last counts, as when unpacking to disk.
  std::map<std::string, std::shared_ptr<const Bytes>> bytes_of;
  for (SourceFile& file : unpacked.files) bytes_of[file.path] = std::move(file.bytes);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const FileGroup& group : GroupFiles(std::move(paths))) {
    if (!group.together) {
      const std::string& path = group.paths.front();
      OpenBytes(opening, path.empty() ? name : name + ":" + path, bytes_of[path], nesting + 1);
      continue;
    }
    std::vector<SourceFile> files;
    const size_t prefix = group.folder.empty() ? 0 : group.folder.size() + 1;
    for (const std::string& path : group.paths) {
      files.push_back({path.substr(prefix), bytes_of[path]});
    }
    opening.sources.emplace_back(
        Source(group.folder.empty() ? name : name + ":" + group.folder, std::move(files)));
  }
}

void OpenBytes(Opening& opening, std::string name, std::shared_ptr<const Bytes> bytes,
               int nesting) {
  std::string head;
  const Status read = bytes->ReadAt(0, kPackingBytes, head);
  if (!read.ok()) {
    opening.sources.emplace_back(read.error());
    return;
  }
  if (nesting >= kMaxNesting || PackingOf(head) == Packing::kPlain) {
    opening.sources.emplace_back(Source(std::move(name), {{"", std::move(bytes)}}));
    return;
  }
  Unpacked unpacked = Unpack(*bytes, name, opening.budget);
  std::optional<Error> error = std::move(unpacked.error);
  OpenMembers(opening, name, std::move(unpacked), nesting);
  if (error) opening.sources.emplace_back(std::move(*error));
}

Result<std::shared_ptr<const Bytes>> OpenFile(const std::string& path) {
  CULPRIT_ASSIGN(InputFile file, InputFile::Open(path));
  return std::shared_ptr<const Bytes>(std::make_shared<FileBytes>(std::move(file)));
}

void OpenGroup(Opening& opening, const std::string& folder, const FileGroup& group) {
  const std::string base = folder.ends_with('/') ? folder : folder + "/";
  const size_t prefix = group.folder.empty() ? 0 : group.folder.size() + 1;
  std::vector<SourceFile> files;
  for (const std::string& path : group.paths) {
    auto bytes = OpenFile(base + path);
    if (!bytes.ok()) {
      opening.sources.emplace_back(bytes.error());
    } else if (!group.together) {
      OpenBytes(opening, base + path, std::move(bytes).value(), 0);
    } else {
      files.push_back({path.substr(prefix), std::move(bytes).value()});
    }
  }
  if (!files.empty()) {
    opening.sources.emplace_back(
        Source(group.folder.empty() ? folder : base + group.folder, std::move(files)));
  }
}

}  // namespace

const Bytes* Source::Find(std::string_view path) const {
  for (const SourceFile& file : files_) {
    if (file.path == path) return file.bytes.get();
  }
  return nullptr;
}

Sources OpenSources(const std::string& path, const OpenLimits& limits) {
  Sources sources;
  Opening opening{sources, {.bytes = limits.max_unpacked_bytes, .members = limits.max_members}};
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) {
    auto bytes = OpenFile(path);
    if (bytes.ok()) {
      OpenBytes(opening, path, std::move(bytes).value(), 0);
    } else {
      sources.emplace_back(bytes.error());
    }
    return sources;
  }
  auto files = FilesBelow(path, limits.max_members);
  if (!files.ok()) {
    sources.emplace_back(files.error());
    return sources;
  }
  for (const FileGroup& group : GroupFiles(std::move(files).value())) {
    OpenGroup(opening, path, group);
  }
  return sources;
}

}  // namespace culprit::import_
