// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_reader.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "import/ctf_metadata.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kMaxMetadataBytes = uint64_t{256} << 20;

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}
const SourceFile* MetadataFile(const Source& source) {
  for (const SourceFile& file : source.files()) {
    if (BaseName(file.path) == "metadata") return &file;
  }
  return nullptr;
}

}  // namespace

Result<CtfSchema> LoadCtfSchema(const Source& source, Diagnostics& diagnostics) {
  const SourceFile* file = MetadataFile(source);
  if (file == nullptr && source.files().size() == 1) file = &source.files().front();
  if (file == nullptr) {
    return Error{.message = "no file named metadata here",
                 .file = source.name(),
                 .hint = "a Common Trace Format trace is a folder: metadata and its streams"};
  }
  const std::string name = source.name() + (file->path.empty() ? "" : "/" + file->path);
  const uint64_t size = file->bytes->size();
  if (size > kMaxMetadataBytes) return Error{.message = "metadata beyond 256 MiB", .file = name};
  std::string bytes;
  CULPRIT_TRY(file->bytes->ReadAt(0, static_cast<size_t>(size), bytes));
  return ReadCtfMetadata(bytes, name, diagnostics);
}

std::vector<const SourceFile*> CtfStreamFiles(const Source& source) {
  std::vector<const SourceFile*> files;
  const SourceFile* metadata = MetadataFile(source);
  if (metadata == nullptr) return files;
  for (const SourceFile& file : source.files()) {
    const std::string_view base = BaseName(file.path);
    if (&file == metadata || FolderOf(file.path) != FolderOf(metadata->path)) continue;
    if (base.starts_with('.') || base.ends_with(".idx") || file.bytes->size() == 0) continue;
    files.push_back(&file);
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile* a, const SourceFile* b) { return a->path < b->path; });
  return files;
}

CtfReader::CtfReader(CtfDecoder& decoder, std::span<const SourceFile* const> files,
                     Diagnostics& diagnostics)
    : started_(files.size(), false) {
  for (const SourceFile* file : files) {
    heap_.push_back(static_cast<uint32_t>(files_.size()));
    files_.push_back(std::make_unique<CtfStreamFile>(decoder, *file, ledger_, diagnostics));
  }
  for (size_t i = heap_.size(); i-- > 0;) SiftDown(i);
}

bool CtfReader::Before(uint32_t a, uint32_t b) const {
  const int64_t time_a = files_[a]->time_ns();
  const int64_t time_b = files_[b]->time_ns();
  return time_a != time_b ? time_a < time_b : a < b;
}

void CtfReader::SiftDown(size_t hole) {
  const uint32_t moving = heap_[hole];
  for (;;) {
    size_t child = 2 * hole + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], moving)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = moving;
}

const CtfStreamFile* CtfReader::Next() {
  while (!heap_.empty()) {
    const uint32_t top = heap_.front();
    CtfStreamFile& file = *files_[top];
    if (started_[top] && !top_is_used_) {
      top_is_used_ = true;
      return &file;
    }
    // Either the event at the top was handed out, or its file was not yet begun.
    const bool was_started = started_[top];
    const int64_t before_ns = file.time_ns();
    top_is_used_ = false;
    started_[top] = true;
    if (!file.Next()) {
      heap_.front() = heap_.back();
      heap_.pop_back();
    } else if (was_started && file.time_ns() < before_ns) {
      ++backward_steps_;
    }
    if (!heap_.empty()) SiftDown(0);
  }
  return nullptr;
}

}  // namespace culprit::import_
