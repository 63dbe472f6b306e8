// SPDX-License-Identifier: Apache-2.0
#include "serve/pushes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "serve/upload.h"

namespace culprit::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 64;
constexpr std::chrono::hours kOldestPiece{7 * 24};
constexpr std::string_view kPieceEnd = ".part";

HttpResponse StateOf(const char* state, uint64_t bytes) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("state", std::string_view(state)).Field("bytes", bytes).EndObject();
  return JsonResponse(200, json.Take() + "\n");
}

bool IsThere(const std::string& corpus_path, const std::string& sha256) {
  const auto corpus = corpus::Corpus::Open(corpus_path);
  if (!corpus.ok()) return false;
  // Files are named after the first half of the hash.
  const auto rows = corpus.value().List();
  if (!rows.ok()) return false;
  return std::any_of(rows.value().begin(), rows.value().end(),
                     [&](const corpus::TraceRow& row) { return row.sha256 == sha256; });
}

// What is wrong with the request is told after its body was read.
class RefusingSink : public BodySink {
 public:
  explicit RefusingSink(HttpResponse response) : response_(std::move(response)) {}
  bool Take(std::string_view) override { return false; }
  HttpResponse Finish() override { return response_; }

 private:
  HttpResponse response_;
};

class PieceSink : public BodySink {
 public:
  PieceSink(Pushes& pushes, std::string sha256, std::string name, uint64_t offset, uint64_t size)
      : pushes_(pushes),
        sha256_(std::move(sha256)),
        name_(std::move(name)),
        at_(offset),
        size_(size) {
    fd_ = open(pushes_.PiecePath(sha256_).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat info = {};
    if (fd_ < 0 || fstat(fd_, &info) != 0 || lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) {
      problem_ = TextResponse(507, "the piece cannot be stored\n");
    } else if (static_cast<uint64_t>(info.st_size) != offset) {
      problem_ = TextResponse(409, std::to_string(info.st_size) + " bytes are here\n");
    }
  }
  PieceSink(const PieceSink&) = delete;
  PieceSink& operator=(const PieceSink&) = delete;
  // What came of a cut request stays for the next one.
  ~PieceSink() override {
    if (fd_ >= 0) close(fd_);
    pushes_.LetGo(sha256_);
  }

  bool Take(std::string_view bytes) override {
    if (problem_) return false;
    if (bytes.size() > size_ - at_) {
      problem_ = TextResponse(400, "more bytes than X-Culprit-Size says\n");
      return false;
    }
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        problem_ = TextResponse(507, "the piece cannot be stored: the disk may be full\n");
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
      at_ += static_cast<uint64_t>(written);
    }
    return true;
  }

  HttpResponse Finish() override {
    if (problem_) return *problem_;
    const bool stored = fsync(fd_) == 0 && close(std::exchange(fd_, -1)) == 0;
    if (!stored) return TextResponse(507, "the piece cannot be stored: the disk may be full\n");
    if (at_ < size_) return TextResponse(409, std::to_string(at_) + " bytes are here\n");
    return pushes_.AddWhole(sha256_, name_);
  }

 private:
  Pushes& pushes_;
  const std::string sha256_;
  const std::string name_;
  uint64_t at_;
  const uint64_t size_;
  int fd_ = -1;
  std::optional<HttpResponse> problem_;
};

}  // namespace

Pushes::Pushes(std::string corpus, std::string spool, uint64_t max_bytes)
    : corpus_(std::move(corpus)), spool_(std::move(spool)), max_bytes_(max_bytes) {
  const auto oldest = fs::file_time_type::clock::now() - kOldestPiece;
  std::error_code code;
  std::vector<fs::path> old;
  for (fs::directory_iterator it(spool_, code), end; !code && it != end; it.increment(code)) {
    if (it->path().extension() != kPieceEnd) continue;
    std::error_code ignored;
    if (fs::last_write_time(it->path(), ignored) < oldest && !ignored) old.push_back(it->path());
  }
  for (const fs::path& path : old) fs::remove(path, code);
}

bool Pushes::IsName(std::string_view sha256) {
  return sha256.size() == kDigits && std::all_of(sha256.begin(), sha256.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string Pushes::PiecePath(const std::string& sha256) const {
  return spool_ + "/" + sha256 + std::string(kPieceEnd);
}

HttpResponse Pushes::State(const std::string& sha256) const {
  if (IsThere(corpus_, sha256)) return StateOf("whole", 0);
  std::error_code code;
  const auto bytes = fs::file_size(PiecePath(sha256), code);
  return StateOf("part", code ? 0 : bytes);
}

std::unique_ptr<BodySink> Pushes::Take(const HttpRequest& request, const std::string& sha256) {
  const auto refuse = [](int status, const std::string& why) {
    return std::make_unique<RefusingSink>(TextResponse(status, why + "\n"));
  };
  const auto offset = ParseUnsigned(request.Header("x-culprit-offset"));
  const auto size = ParseUnsigned(request.Header("x-culprit-size"));
  const Result<std::string> name = CleanTraceName(request.Header("x-culprit-name"));
  if (!offset || !size || *size == 0 || *offset > *size) {
    return refuse(400, "X-Culprit-Offset and X-Culprit-Size are needed");
  }
  if (!name.ok()) return refuse(400, "X-Culprit-Name: " + name.error().message);
  if (*size > max_bytes_) return refuse(413, "the trace is larger than this server takes");
  {
    const std::lock_guard lock(mutex_);
    if (!busy_.insert(sha256).second) return refuse(409, "it is being sent by somebody else");
  }
  return std::make_unique<PieceSink>(*this, sha256, name.value(), *offset, *size);
}

HttpResponse Pushes::AddWhole(const std::string& sha256, const std::string& name) {
  const std::string path = PiecePath(sha256);
  const Result<std::string> found = FileSha256(path);
  if (!found.ok()) return TextResponse(507, "what was sent cannot be read again\n");
  std::error_code code;
  if (found.value() != sha256) {
    fs::remove(path, code);
    return TextResponse(422, "what was sent is not what its hash says; it is dropped\n");
  }
  auto corpus = corpus::Corpus::Open(corpus_);
  if (!corpus.ok()) return TextResponse(500, corpus.error().ToString() + "\n");
  const auto outcome = corpus.value().Add(path, {.name = name});
  if (!outcome.ok()) {
    fs::remove(path, code);
    return TextResponse(422, "it is no trace of culprit: " + outcome.error().message + "\n");
  }
  fs::remove(path, code);
  return StateOf("whole", 0);
}

void Pushes::LetGo(const std::string& sha256) {
  const std::lock_guard lock(mutex_);
  busy_.erase(sha256);
}

}  // namespace culprit::serve
