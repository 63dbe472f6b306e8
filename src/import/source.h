// SPDX-License-Identifier: Apache-2.0
//
// Source: the bytes an importer reads: a file, a member of an archive, or a
// folder of files. Compressed and archived inputs look like plain ones:
// OpenSources() unpacks .gz, .zst, .xz, .bz2, .zip and .tar with libarchive,
// into memory while small, else into an unlinked temporary file. Immutable
// after opening; ReadAt is safe from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::import_ {

// Bytes with a size, wherever they are.
class Bytes {
 public:
  virtual ~Bytes() = default;
  // Fills `out` with the bytes at `offset`: fewer than `count` at the end.
  virtual Status ReadAt(uint64_t offset, size_t count, std::string& out) const = 0;
  virtual uint64_t size() const = 0;
};

struct SourceFile {
  std::string path;  // relative to the source: "kernel/channel0_0"; "" for a single file
  std::shared_ptr<const Bytes> bytes;
};

// One thing to import: a file, or a folder whose files belong together.
class Source {
 public:
  Source(std::string name, std::vector<SourceFile> files)
      : name_(std::move(name)), files_(std::move(files)) {}

  // What messages call it: "run.tgz:kernel/metadata".
  const std::string& name() const { return name_; }
  bool is_folder() const { return files_.size() != 1 || !files_.front().path.empty(); }
  const std::vector<SourceFile>& files() const { return files_; }
  const Bytes* Find(std::string_view path) const;
  // The single file's bytes, or the first file's.
  const Bytes& bytes() const { return *files_.front().bytes; }

 private:
  std::string name_;
  std::vector<SourceFile> files_;
};

struct OpenLimits {
  uint64_t max_unpacked_bytes = uint64_t{64} << 30;
  size_t max_members = 100'000;
};

// Everything importable at `path`: a file, an archive's members, a folder that
// is a trace itself (CTF, uftrace), or the files below a folder. An input that
// cannot be opened is an Error in its slot; the others are not affected.
std::vector<Result<Source>> OpenSources(const std::string& path, const OpenLimits& limits = {});

// Reads forward through Bytes with a buffer; for parsers of streams and lines.
class BytesReader {
 public:
  explicit BytesReader(const Bytes& bytes, uint64_t offset = 0, size_t buffer_bytes = 1 << 20)
      : bytes_(bytes), offset_(offset), buffer_bytes_(buffer_bytes) {}

  // A view of the next `count` bytes, fewer at the end; valid until the next
  // call. Does not move.
  Result<std::string_view> Peek(size_t count);
  void Skip(uint64_t count);
  // The next line without its end, or nothing at the end of the input. Lines
  // longer than `max_line` are cut there, the rest skipped and `cut` set.
  Result<bool> Line(std::string& line, size_t max_line = 1 << 20);
  bool cut() const { return cut_; }
  uint64_t offset() const { return offset_; }
  bool AtEnd() const { return offset_ >= bytes_.size(); }

 private:
  const Bytes& bytes_;
  uint64_t offset_;
  size_t buffer_bytes_;
  std::string buffer_;
  uint64_t buffer_offset_ = 0;
  bool cut_ = false;
};

}  // namespace culprit::import_
