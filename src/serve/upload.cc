// SPDX-License-Identifier: Apache-2.0
#include "serve/upload.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "corpus/corpus.h"
#include "corpus/staging.h"
#include "import/import_run.h"
#include "import/source.h"

namespace culprit::serve {
namespace {

constexpr size_t kLongestName = 120;

std::string NewSpoolPath(const std::string& spool) {
  static std::atomic<uint64_t> counter{0};
  return spool + "/upload-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
}

class FileSink : public BodySink {
 public:
  FileSink(std::string path, std::string name, uint64_t max_bytes, UploadQueue& queue)
      : path_(std::move(path)), name_(std::move(name)), max_bytes_(max_bytes), queue_(queue) {
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) problem_ = TextResponse(507, "the upload cannot be stored\n");
  }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  ~FileSink() override {
    if (fd_ >= 0) close(fd_);
    if (!queued_) unlink(path_.c_str());
  }

  bool Take(std::string_view bytes) override {
    if (problem_) return false;
    size_ += bytes.size();
    if (size_ > max_bytes_) {
      problem_ = TextResponse(413, "the upload is larger than this server takes\n");
      return false;
    }
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        problem_ = TextResponse(507, "the upload cannot be stored: the disk may be full\n");
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  HttpResponse Finish() override {
    if (problem_) return *problem_;
    if (size_ == 0) return TextResponse(400, "the upload is empty\n");
    if (close(std::exchange(fd_, -1)) != 0) {
      return TextResponse(507, "the upload cannot be stored: the disk may be full\n");
    }
    queued_ = true;
    queue_.Queue({.path = path_, .name = name_});
    JsonWriter json(JsonWriter::Style::kCompact);
    json.BeginObject().Field("name", std::string_view(name_)).Field("bytes", size_);
    json.Field("queued", true).EndObject();
    return JsonResponse(202, json.Take() + "\n");
  }

 private:
  std::string path_;
  std::string name_;
  uint64_t max_bytes_;
  UploadQueue& queue_;
  int fd_ = -1;
  uint64_t size_ = 0;
  bool queued_ = false;
  std::optional<HttpResponse> problem_;
};

Result<uint64_t> ImportSources(const Upload& upload, corpus::Corpus& into) {
  uint64_t added = 0;
  std::optional<Error> first;
  for (const Result<import_::Source>& source : import_::OpenSources(upload.path)) {
    if (!source.ok()) {
      if (!first) first = source.error();
      continue;
    }
    CULPRIT_ASSIGN(const std::string staging, into.NewStagingPath());
    const corpus::StagedFile staged(staging);
    const auto outcome = import_::ImportOne(source.value(), {}, staging);
    if (!outcome.ok()) {
      if (!first) first = outcome.error();
      continue;
    }
    CULPRIT_ASSIGN(const corpus::AddOutcome row, into.AddStaged(staging, upload.name, {}));
    if (row.kind == corpus::AddOutcome::Kind::kAdded) ++added;
    first.reset();
  }
  if (added == 0 && first) return *first;
  return added;
}

}  // namespace

Result<std::string> CleanTraceName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_';
    if (!fine) {
      return Error{.message = "a trace's name may have letters, digits, '.', '-' and '_' only"};
    }
    name += c;
  }
  if (name.empty() || name.size() > kLongestName || name.starts_with('.')) {
    return Error{.message = "a trace's name has 1 to 120 characters and no '.' at its begin"};
  }
  return name;
}

std::unique_ptr<BodySink> MakeUploadSink(const std::string& spool, const std::string& name,
                                         uint64_t max_bytes, UploadQueue& queue) {
  return std::make_unique<FileSink>(NewSpoolPath(spool), name, max_bytes, queue);
}

Result<uint64_t> ImportUpload(const Upload& upload, const std::string& corpus) {
  Result<corpus::Corpus> into = corpus::Corpus::Open(corpus);
  Result<uint64_t> added =
      into.ok() ? ImportSources(upload, into.value()) : Result<uint64_t>(into.error());
  std::error_code code;
  std::filesystem::remove(upload.path, code);
  return added;
}

}  // namespace culprit::serve
