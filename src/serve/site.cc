// SPDX-License-Identifier: Apache-2.0
#include "serve/site.h"

#include <openssl/crypto.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json_writer.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "page/page.h"
#include "serve/open_api.h"
#include "serve/pushes.h"
#include "serve/snapshot.h"
#include "serve/upload.h"
#include "stackmine/signature_store.h"

namespace culprit::serve {
namespace {

constexpr std::string_view kApi = "/api/v1/";
constexpr size_t kMaxProblems = 20;  // kept to be told
constexpr size_t kLongestNote = 4000;

// What a change of the corpus changes: size and time of the catalog, which is
// written in place, and of the journal beside it.
std::string CatalogState(const std::string& corpus) {
  std::string state;
  for (const char* name : {"/catalog.sqlite", "/catalog.sqlite-wal"}) {
    std::error_code code;
    const auto size = std::filesystem::file_size(corpus + name, code);
    state += code ? "-" : std::to_string(size);
    const auto time = std::filesystem::last_write_time(corpus + name, code);
    state += code ? ";" : "," + std::to_string(time.time_since_epoch().count()) + ";";
  }
  return state;
}

// "localhost:8080", "[::1]:8080" without the port.
std::string HostName(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

class CorpusSite : public Site, private UploadQueue {
 public:
  CorpusSite(SiteOptions options, page::Bundle bundle)
      : options_(std::move(options)),
        page_(std::make_shared<const std::string>(page::MakeServedPage(bundle))),
        policy_(page::ContentSecurityPolicy(bundle, true)),
        spool_(options_.corpus + "/uploads"),
        pushes_(options_.corpus, spool_, options_.max_upload_bytes) {}
  ~CorpusSite() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
  }

  void Begin() {
    worker_ = std::thread([this] { Work(); });
  }

  std::unique_ptr<BodySink> Sink(const HttpRequest& request) override;
  HttpResponse Answer(const HttpRequest& request) override;

 private:
  bool MayAsk(const HttpRequest& request, HttpResponse& refusal) const;
  HttpResponse AnswerApi(const HttpRequest& request, std::string_view what);
  HttpResponse GivePart(const HttpRequest& request, std::string_view name) const;
  HttpResponse GiveStatus() const;
  HttpResponse TakeMark(const HttpRequest& request);
  void Queue(Upload upload) override;

  void Work();
  void ImportQueued();
  void AnalyzeAgain();
  void Complain(const std::string& problem);

  const SiteOptions options_;
  const std::shared_ptr<const std::string> page_;
  const std::string policy_;
  const std::string spool_;
  Pushes pushes_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  bool stale_ = true;
  std::string state_ = "waiting";
  Progress::Report report_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::deque<Upload> uploads_;
  std::deque<std::string> problems_;
  std::thread worker_;
};

bool CorpusSite::MayAsk(const HttpRequest& request, HttpResponse& refusal) const {
  if (options_.loopback && options_.token.empty()) {
    const std::string host = HostName(request.Header("host"));
    if (host != "localhost" && !IsLoopback(host)) {
      refusal = TextResponse(403, "this server answers to localhost only\n");
      return false;
    }
  }
  if (options_.token.empty()) return true;
  const std::string wanted = "Bearer " + options_.token;
  const std::string& given = request.Header("authorization");
  // In constant time, so that the token cannot be guessed byte by byte.
  if (given.size() == wanted.size() &&
      CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0) {
    return true;
  }
  refusal = TextResponse(401, "a token is needed: Authorization: Bearer TOKEN\n");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return false;
}

std::unique_ptr<BodySink> CorpusSite::Sink(const HttpRequest& request) {
  constexpr std::string_view kTraces = "/api/v1/traces/";
  constexpr std::string_view kPushes = "/api/v1/pushes/";
  HttpResponse refusal;
  if (!options_.uploads || request.method != "PUT" || !MayAsk(request, refusal)) return nullptr;
  if (request.path.starts_with(kPushes)) {
    const std::string sha256 = request.path.substr(kPushes.size());
    return Pushes::IsName(sha256) ? pushes_.Take(request, sha256) : nullptr;
  }
  if (!request.path.starts_with(kTraces)) return nullptr;
  const Result<std::string> name = CleanTraceName(request.path.substr(kTraces.size()));
  if (!name.ok()) return nullptr;
  return MakeUploadSink(spool_, name.value(), options_.max_upload_bytes, *this);
}

HttpResponse CorpusSite::Answer(const HttpRequest& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.path == "/" || request.path == "/index.html") {
    if (!reads) return TextResponse(405, "only GET\n");
    HttpResponse response;
    response.content_type = "text/html; charset=utf-8";
    response.body = page_;
    response.headers = {{"Content-Security-Policy", policy_}, {"Cache-Control", "no-cache"}};
    return response;
  }
  if (!request.path.starts_with(kApi)) return TextResponse(404, "there is nothing here\n");
  HttpResponse refusal;
  if (!MayAsk(request, refusal)) return refusal;
  return AnswerApi(request, std::string_view(request.path).substr(kApi.size()));
}

HttpResponse CorpusSite::AnswerApi(const HttpRequest& request, std::string_view what) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (what == "status" && reads) return GiveStatus();
  if (what == "openapi.json" && reads) return JsonResponse(200, std::string(kOpenApi));
  if (what.starts_with("parts/") && reads) return GivePart(request, what.substr(6));
  if (what == "signatures" && request.method == "POST") return TakeMark(request);
  if (what.starts_with("traces/") && request.method == "PUT") {
    if (!options_.uploads) return TextResponse(403, "this server takes no uploads\n");
    const Result<std::string> name = CleanTraceName(what.substr(7));
    return TextResponse(400, (name.ok() ? "the upload is empty" : name.error().message) + "\n");
  }
  if (what.starts_with("pushes/") && (reads || request.method == "PUT")) {
    if (!options_.uploads) return TextResponse(403, "this server takes no uploads\n");
    const std::string sha256(what.substr(7));
    if (!Pushes::IsName(sha256)) return TextResponse(400, "a push is known by its SHA-256\n");
    return reads ? pushes_.State(sha256) : TextResponse(400, "the piece is empty\n");
  }
  const bool known = what == "status" || what == "signatures" || what == "openapi.json" ||
                     what.starts_with("parts/") || what.starts_with("traces/") ||
                     what.starts_with("pushes/");
  return known ? TextResponse(405, "not with this method\n")
               : TextResponse(404, "there is no such thing in the API\n");
}

HttpResponse CorpusSite::GivePart(const HttpRequest& request, std::string_view name) const {
  std::shared_ptr<const Snapshot> snapshot;
  {
    const std::lock_guard lock(mutex_);
    snapshot = snapshot_;
  }
  if (!snapshot) {
    HttpResponse response = TextResponse(503, "the first analysis is not done yet\n");
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  const auto found = snapshot->parts.find(name);
  if (found == snapshot->parts.end()) return TextResponse(404, "there is no such part\n");
  const Snapshot::PartBytes& part = found->second;
  HttpResponse response;
  response.content_type = "application/json";
  response.headers = {
      {"ETag", part.etag}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
  if (request.Header("if-none-match") == part.etag) {
    response.status = 304;
    return response;
  }
  response.body = part.json;
  if (request.Header("accept-encoding").find("gzip") != std::string::npos) {
    response.body = part.gzip;
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  return response;
}

HttpResponse CorpusSite::GiveStatus() const {
  JsonWriter json(JsonWriter::Style::kCompact);
  const std::lock_guard lock(mutex_);
  json.BeginObject().Field("tool", "culprit " CULPRIT_VERSION);
  json.Field("state", std::string_view(state_));
  json.Field("analysis", snapshot_ ? snapshot_->number : 0);
  json.Field("uploads", options_.uploads).Field("queued", uploads_.size());
  if (state_ == "analysing") {
    json.Field("what", std::string_view(report_.what)).Field("done", report_.done);
    json.Field("total", report_.total);
  }
  json.Key("problems").BeginArray();
  for (const std::string& problem : problems_) json.String(problem);
  json.EndArray().EndObject();
  return JsonResponse(200, json.Take() + "\n");
}

HttpResponse CorpusSite::TakeMark(const HttpRequest& request) {
  if (!request.Header("content-type").starts_with("application/json")) {
    return TextResponse(415, "send application/json\n");
  }
  if (options_.analysis.store.empty()) return TextResponse(409, "there is no signature store\n");
  const auto json = nlohmann::json::parse(request.body, nullptr, false);
  const auto text = [&](const char* key) -> std::string {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : std::string();
  };
  const auto status = stackmine::ParseSignatureStatus(text("status"));
  std::shared_ptr<const Snapshot> snapshot;
  {
    const std::lock_guard lock(mutex_);
    snapshot = snapshot_;
  }
  if (!status || text("note").size() > kLongestNote || text("name").size() > kLongestNote) {
    return TextResponse(400, "send cluster, status (new, known, fixed, ignored), name and note\n");
  }
  const auto found =
      snapshot ? snapshot->clusters.find(text("cluster")) : decltype(snapshot->clusters.end()){};
  if (!snapshot || found == snapshot->clusters.end()) {
    return TextResponse(404, "there is no such cluster\n");
  }
  stackmine::Signature signature = found->second;
  signature.name = text("name").empty() ? "cluster " + text("cluster") : text("name");
  signature.status = *status;
  signature.note = text("note");
  signature.source = options_.corpus;
  const Status stored =
      stackmine::ChangeStore(options_.analysis.store, [&](std::vector<stackmine::Signature>& all) {
        for (stackmine::Signature& old : all) {
          if (old.name != signature.name) continue;
          old.status = signature.status;
          old.note = signature.note;
          return Status();
        }
        all.push_back(signature);
        return Status();
      });
  if (!stored.ok()) return TextResponse(500, stored.error().ToString() + "\n");
  {
    const std::lock_guard lock(mutex_);
    stale_ = true;
  }
  wake_.notify_all();
  return JsonResponse(200, "{\"stored\":true}\n");
}

void CorpusSite::Queue(Upload upload) {
  {
    const std::lock_guard lock(mutex_);
    uploads_.push_back(std::move(upload));
  }
  wake_.notify_all();
}

void CorpusSite::Complain(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  problems_.push_back(problem);
  if (problems_.size() > kMaxProblems) problems_.pop_front();
}

void CorpusSite::Work() {
  std::string seen;
  for (;;) {
    ImportQueued();
    const std::string now = CatalogState(options_.corpus);
    bool stale = now != seen;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      stale = stale || stale_;
      stale_ = false;
    }
    if (stale) {
      AnalyzeAgain();
      seen = now;
    }
    std::unique_lock lock(mutex_);
    if (state_ == "importing") state_ = "ready";
    wake_.wait_for(lock, std::chrono::milliseconds(options_.poll_ms),
                   [&] { return stop_ || stale_ || !uploads_.empty(); });
    if (stop_) return;
  }
}

void CorpusSite::ImportQueued() {
  for (;;) {
    Upload upload;
    {
      const std::lock_guard lock(mutex_);
      if (uploads_.empty() || stop_) return;
      state_ = "importing";
      upload = std::move(uploads_.front());
      uploads_.pop_front();
    }
    const Result<uint64_t> added = ImportUpload(upload, options_.corpus);
    if (!added.ok()) Complain(upload.name + ": " + added.error().message);
  }
}

void CorpusSite::AnalyzeAgain() {
  uint64_t number = 1;
  {
    const std::lock_guard lock(mutex_);
    state_ = "analysing";
    if (snapshot_) number = snapshot_->number + 1;
  }
  Progress progress([this](const Progress::Report& report) {
    const std::lock_guard lock(mutex_);
    report_ = report;
  });
  const Result<analyze::Analysis> analysis =
      analyze::Analyze(options_.corpus, options_.analysis, progress);
  std::shared_ptr<const Snapshot> made;
  if (analysis.ok()) {
    made = MakeSnapshot(analysis.value(), number);
  } else {
    Complain(analysis.error().ToString());
  }
  const std::lock_guard lock(mutex_);
  if (made) snapshot_ = std::move(made);
  state_ = "ready";
}

}  // namespace

Result<std::unique_ptr<Site>> Site::Open(const SiteOptions& options) {
  CULPRIT_ASSIGN(const page::Bundle bundle, page::FindBundle());
  CULPRIT_TRY(corpus::Corpus::Open(options.corpus));
  if (options.uploads) {
    std::error_code code;
    std::filesystem::create_directories(options.corpus + "/uploads", code);
    if (code) {
      return Error{.message = "cannot make a folder for uploads: " + code.message(),
                   .file = options.corpus + "/uploads"};
    }
  }
  auto site = std::make_unique<CorpusSite>(options, bundle);
  site->Begin();
  return std::unique_ptr<Site>(std::move(site));
}

}  // namespace culprit::serve
