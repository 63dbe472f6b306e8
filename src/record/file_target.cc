// SPDX-License-Identifier: Apache-2.0
#include "record/file_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "record/machine.h"
#include "trace/column_codec.h"

namespace culprit::record {
namespace {

// Small, so that a recorder that is killed loses little, and not compressed, which would be
// a seventh of the recorder's time; the finished file is written anew with whole blocks,
// and smaller (symbol_pass.h).
constexpr size_t kBlockEvents = 2048;
constexpr int64_t kFlushNs = 1'000'000'000;
constexpr mode_t kMode = 0644;

}  // namespace

Result<std::unique_ptr<FileTarget>> FileTarget::Create(const std::string& path,
                                                       Overwrite overwrite) {
  const int exclusive = overwrite == Overwrite::kRefuse ? O_EXCL : O_TRUNC;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | exclusive, kMode);
  if (fd < 0) {
    Error error = ErrnoError("create", path);
    if (errno == EEXIST) error.hint = "name another file with -o, or overwrite it with --force";
    return error;
  }
  return std::unique_ptr<FileTarget>(new FileTarget(path, fd));
}

FileTarget::FileTarget(std::string path, int fd)
    : path_(std::move(path)),
      fd_(fd),
      writer_([this](std::string_view bytes) { return Write(bytes); },
              {.block_events = kBlockEvents, .zstd_level = trace::kNoCompression}) {}

FileTarget::~FileTarget() { close(fd_); }

Status FileTarget::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      Error error = ErrnoError("write", path_);
      error.hint = "what was written before can be read: culprit info " + path_;
      return error;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status FileTarget::Add(const trace::Event& event) {
  trace::Metadata& metadata = writer_.metadata();
  metadata.end_ns = std::max(metadata.end_ns, event.end_ns());
  return writer_.Add(event);
}

Status FileTarget::FlushIfDue() {
  const int64_t now_ns = MonotonicNs();
  if (now_ns - flushed_ns_ < kFlushNs) return {};
  flushed_ns_ = now_ns;
  return writer_.Flush();
}

Status FileTarget::Finish() { return writer_.Finish(); }

}  // namespace culprit::record
