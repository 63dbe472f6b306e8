// SPDX-License-Identifier: Apache-2.0
#include "export/gzip_sink.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/check.h"

namespace culprit::export_ {
namespace {

constexpr size_t kBlockBytes = 256 * 1024;

}  // namespace

GzipSink::GzipSink(const Sink& sink) : sink_(sink), archive_(archive_write_new()) {
  CULPRIT_CHECK(archive_ != nullptr);
  archive_write_add_filter_gzip(archive_);
  archive_write_set_format_raw(archive_);
  archive_write_set_options(archive_, "gzip:!timestamp");
  archive_write_set_bytes_per_block(archive_, kBlockBytes);
  archive_write_set_bytes_in_last_block(archive_, 1);  // no padding
  opened_ = Check(archive_write_open(archive_, this, nullptr, Pass, nullptr));
  if (!opened_.ok()) return;
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  opened_ = Check(archive_write_header(archive_, entry));
  archive_entry_free(entry);
}

GzipSink::~GzipSink() { archive_write_free(archive_); }

long GzipSink::Pass(archive* archive, void* self, const void* bytes, size_t size) {
  auto& sink = *static_cast<GzipSink*>(self);
  const Status status = sink.sink_({static_cast<const char*>(bytes), size});
  if (status.ok()) return static_cast<long>(size);
  sink.sink_error_ = status.error();
  archive_set_error(archive, ARCHIVE_FATAL, "%s", status.error().message.c_str());
  return -1;
}

Status GzipSink::Check(long result) {
  if (sink_error_) return *sink_error_;
  if (result >= ARCHIVE_OK) return {};
  const char* why = archive_error_string(archive_);
  return Error{.message = std::string("cannot compress: ") + (why != nullptr ? why : "unknown")};
}

Status GzipSink::Write(std::string_view bytes) {
  CULPRIT_TRY(opened_);
  return Check(static_cast<long>(archive_write_data(archive_, bytes.data(), bytes.size())));
}

Status GzipSink::Finish() {
  CULPRIT_TRY(opened_);
  return Check(archive_write_close(archive_));
}

}  // namespace culprit::export_
