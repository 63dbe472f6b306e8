// SPDX-License-Identifier: Apache-2.0
#include <curl/curl.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/shell_word.h"
#include "push/target.h"

namespace culprit::push {
namespace {

constexpr long kConnectSeconds = 20;
constexpr long kSilentSeconds = 60;  // without a byte: cut
constexpr size_t kLongestAnswer = size_t{1} << 20U;

struct Answer {
  CURLcode result = CURLE_OK;
  long status = 0;
  std::string body;
};

struct Body {
  int fd = -1;
  Progress* progress = nullptr;
};

size_t TakeAnswer(char* data, size_t size, size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() < kLongestAnswer) body.append(data, size * count);
  return size * count;
}

size_t GiveBody(char* data, size_t size, size_t count, void* from) {
  const auto& body = *static_cast<Body*>(from);
  const ssize_t got = read(body.fd, data, size * count);
  if (got < 0) return CURL_READFUNC_ABORT;
  body.progress->Advance(static_cast<uint64_t>(got));
  return static_cast<size_t>(got);
}

// A transfer and what must outlive it.
class Transfer {
 public:
  Transfer(const std::string& url, const std::string& token) : curl_(curl_easy_init()) {
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
    Set(CURLOPT_WRITEFUNCTION, &TakeAnswer);
    Set(CURLOPT_WRITEDATA, &answer_.body);
    // Another host must not be given the token.
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    if (!token.empty()) Header("Authorization: Bearer " + token);
    Header("Expect:");
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(curl_);
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl_, option, value);
  }
  void Header(const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); }

  Answer Run() {
    Set(CURLOPT_HTTPHEADER, headers_);
    answer_.result = curl_easy_perform(curl_);
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &answer_.status);
    return std::move(answer_);
  }

 private:
  CURL* curl_;
  curl_slist* headers_ = nullptr;
  Answer answer_;
};

class ServerTarget : public Target {
 public:
  ServerTarget(std::string url, TargetOptions options)
      : url_(std::move(url)), options_(std::move(options)) {
    while (url_.ends_with('/')) url_.pop_back();
  }

  Result<Sent> Send(const Parcel& parcel, Progress& progress) override {
    uint64_t counted = 0;
    for (uint32_t attempt = 0;; ++attempt) {
      Result<State> state = Ask(parcel);
      if (state.ok() && state.value().whole) {
        progress.Advance(parcel.bytes - counted);
        return attempt == 0 ? Sent::kAlreadyThere : Sent::kSent;
      }
      Result<bool> done = state.ok() ? Put(parcel, state.value().bytes, progress, counted)
                                     : Result<bool>(state.error());
      if (done.ok() && done.value()) return Sent::kSent;
      if (!done.ok() && (final_ || attempt >= options_.retries)) return done.error();
      if (attempt >= options_.retries) {
        return Error{.message = url_ + " does not take the whole of it",
                     .file = parcel.path,
                     .hint = "run the same command again: it goes on where it stopped"};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200U << std::min(attempt, 8U)));
    }
  }

 private:
  struct State {
    bool whole = false;
    uint64_t bytes = 0;  // that are there
  };

  std::string UrlOf(const Parcel& parcel) const { return url_ + "/api/v1/pushes/" + parcel.sha256; }

  // A failure that another attempt cannot mend sets final_.
  Error Failed(const Answer& answer) {
    final_ = false;
    if (answer.result != CURLE_OK) {
      return {.message = url_ + ": " + curl_easy_strerror(answer.result),
              .hint = "run the same command again: it goes on where it stopped"};
    }
    final_ = answer.status < 500;
    std::string hint;
    if (answer.status == 401) hint = "give the server's token in CULPRIT_TOKEN, or with --token";
    if (answer.status == 403) hint = "the server must be started with --uploads";
    std::string body = answer.body.substr(0, answer.body.find('\n'));
    return {.message = url_ + " answers " + std::to_string(answer.status) + ": " + body,
            .hint = hint};
  }

  Result<State> Ask(const Parcel& parcel) {
    Transfer transfer(UrlOf(parcel), options_.token);
    const Answer answer = transfer.Run();
    if (answer.result != CURLE_OK || answer.status != 200) return Failed(answer);
    const auto json = nlohmann::json::parse(answer.body, nullptr, false);
    if (!json.is_object() || !json.contains("state") || !json["state"].is_string() ||
        !json.contains("bytes") || !json["bytes"].is_number_unsigned()) {
      final_ = true;
      return Error{.message = url_ + " does not answer as a culprit server does"};
    }
    return State{.whole = json["state"] == "whole", .bytes = json["bytes"].get<uint64_t>()};
  }

  // True when the server has the whole of it.
  Result<bool> Put(const Parcel& parcel, uint64_t from, Progress& progress, uint64_t& counted) {
    if (from > parcel.bytes) from = 0;
    const int fd = open(parcel.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || lseek(fd, static_cast<off_t>(from), SEEK_SET) < 0) {
      if (fd >= 0) close(fd);
      final_ = true;
      return Error{.message = "cannot be read", .file = parcel.path};
    }
    if (from > counted) {
      progress.Advance(from - counted);
      counted = from;
    }
    const uint64_t before = progress.done();
    Body body{fd, &progress};
    Transfer transfer(UrlOf(parcel), options_.token);
    transfer.Set(CURLOPT_UPLOAD, 1L);
    transfer.Set(CURLOPT_READFUNCTION, &GiveBody);
    transfer.Set(CURLOPT_READDATA, &body);
    transfer.Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(parcel.bytes - from));
    transfer.Header("X-Culprit-Offset: " + std::to_string(from));
    transfer.Header("X-Culprit-Size: " + std::to_string(parcel.bytes));
    transfer.Header("X-Culprit-Name: " + parcel.name);
    const Answer answer = transfer.Run();
    close(fd);
    counted += progress.done() - before;
    if (answer.result == CURLE_OK && answer.status == 200) return true;
    // 409: it has another number of bytes by now; asked again.
    if (answer.result == CURLE_OK && answer.status == 409) return false;
    return Failed(answer);
  }

  std::string url_;
  const TargetOptions options_;
  bool final_ = false;
};

}  // namespace

Result<std::unique_ptr<Target>> OpenServerTarget(const std::string& url,
                                                 const TargetOptions& options) {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!ready) return Error{.message = "libcurl cannot be used here"};
  return std::unique_ptr<Target>(std::make_unique<ServerTarget>(url, options));
}

}  // namespace culprit::push
