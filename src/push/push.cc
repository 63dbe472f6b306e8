// SPDX-License-Identifier: Apache-2.0
#include "push/push.h"

#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "corpus/corpus.h"
#include "push/anonymize.h"

namespace culprit::push {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyBytes = 32;

// A folder of its own that goes when this does.
class ScratchFolder {
 public:
  static Result<ScratchFolder> Make() {
    std::error_code code;
    std::string path = (fs::temp_directory_path(code) / "culprit-push-XXXXXX").string();
    if (code || mkdtemp(path.data()) == nullptr) {
      return Error{.message = "cannot make a folder for what is sent",
                   .file = path,
                   .hint = "TMPDIR names another place"};
    }
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<std::vector<Parcel>> ParcelsOf(const std::string& source) {
  std::vector<Parcel> parcels;
  std::error_code code;
  if (fs::is_directory(source, code)) {
    CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(source));
    CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
    for (const corpus::TraceRow& row : rows) {
      parcels.push_back({corpus.TracePath(row), row.name, row.sha256, row.bytes});
    }
    return parcels;
  }
  CULPRIT_ASSIGN(const std::string sha256, FileSha256(source));
  const auto bytes = fs::file_size(source, code);
  parcels.push_back({source, fs::path(source).stem().string(), sha256, code ? 0 : bytes});
  return parcels;
}

// A name every target takes.
std::string PlainName(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_';
    plain += fine ? c : '-';
  }
  constexpr size_t kLongest = 100;
  if (plain.size() > kLongest) plain.resize(kLongest);
  while (plain.starts_with('.')) plain.erase(0, 1);
  return plain.empty() ? "trace" : plain;
}

Result<Parcel> Anonymous(const Parcel& parcel, const std::string& scratch, Pseudonyms& pseudonyms) {
  const std::string path = scratch + "/" + parcel.sha256 + ".ctrace";
  CULPRIT_TRY(AnonymizeTrace(parcel.path, path, pseudonyms));
  CULPRIT_ASSIGN(const std::string sha256, FileSha256(path));
  std::error_code code;
  const auto bytes = fs::file_size(path, code);
  return Parcel{path, pseudonyms.Text(parcel.name), sha256, code ? 0 : bytes};
}

}  // namespace

Status CheckSources(const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    std::error_code code;
    if (fs::is_directory(source, code)) {
      CULPRIT_TRY(corpus::Corpus::Open(source));
    } else {
      CULPRIT_TRY(InputFile::Open(source));
    }
  }
  return {};
}

Result<PushOutcome> Push(const std::vector<std::string>& sources, Target& target,
                         const PushOptions& options, Progress& progress) {
  std::vector<Parcel> parcels;
  uint64_t bytes = 0;
  for (const std::string& source : sources) {
    CULPRIT_ASSIGN(const std::vector<Parcel> some, ParcelsOf(source));
    parcels.insert(parcels.end(), some.begin(), some.end());
  }
  for (const Parcel& parcel : parcels) bytes += parcel.bytes;
  CULPRIT_ASSIGN(const ScratchFolder scratch, ScratchFolder::Make());
  Pseudonyms pseudonyms(options.key);
  for (const std::string& host : options.hosts) pseudonyms.AddHost(host);
  for (const std::string& user : options.users) pseudonyms.AddUser(user);
  PushOutcome outcome;
  progress.Start("sending", "bytes", bytes);
  for (const Parcel& source : parcels) {
    Result<Parcel> parcel = options.key.empty() ? Result<Parcel>(source)
                                                : Anonymous(source, scratch.path(), pseudonyms);
    Result<Sent> sent(Sent::kSent);
    if (parcel.ok()) {
      Parcel named = parcel.value();
      named.name = PlainName(named.name);
      sent = target.Send(named, progress);
      if (sent.ok()) {
        const bool fresh = sent.value() == Sent::kSent;
        ++(fresh ? outcome.sent : outcome.already_there);
        if (fresh) outcome.bytes += named.bytes;
      }
      std::error_code ignored;
      if (!options.key.empty()) fs::remove(named.path, ignored);
    }
    if (!parcel.ok()) outcome.failures.push_back({source.name, parcel.error()});
    if (!sent.ok()) outcome.failures.push_back({source.name, sent.error()});
  }
  progress.Finish();
  CULPRIT_TRY(target.Finish());
  outcome.replaced = pseudonyms.Counts();
  return outcome;
}

Result<std::string> UserKey() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = data != nullptr && *data != '\0' ? std::string(data)
                             : home != nullptr                ? std::string(home) + "/.local/share"
                                                              : std::string();
  if (folder.empty()) {
    return Error{.message = "there is no place for the key of pseudonyms", .hint = "set HOME"};
  }
  const std::string path = folder + "/culprit/pseudonyms.key";
  std::error_code code;
  if (!fs::exists(path, code)) {
    std::array<unsigned char, kKeyBytes> random = {};
    if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
      return Error{.message = "there is no randomness to be had"};
    }
    fs::create_directories(folder + "/culprit", code);
    const mode_t before = umask(0077);
    // Of two at once the first wins, and both use its key.
    static_cast<void>(WriteWholeFile(
        path, {reinterpret_cast<const char*>(random.data()), random.size()}, Overwrite::kRefuse));
    umask(before);
  }
  CULPRIT_ASSIGN(const std::string key, ReadWholeFile(path));
  if (key.size() != kKeyBytes) {
    return Error{.message = "is no key of pseudonyms", .file = path, .hint = "remove it"};
  }
  return key;
}

}  // namespace culprit::push
