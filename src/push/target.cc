// SPDX-License-Identifier: Apache-2.0
#include "push/target.h"

#include <utility>

#include "corpus/corpus.h"

namespace culprit::push {
namespace {

class FolderTarget : public Target {
 public:
  explicit FolderTarget(corpus::Corpus corpus) : corpus_(std::move(corpus)) {}

  Result<Sent> Send(const Parcel& parcel, Progress& progress) override {
    CULPRIT_ASSIGN(const corpus::AddOutcome outcome,
                   corpus_.Add(parcel.path, {.name = parcel.name}));
    progress.Advance(parcel.bytes);
    return outcome.kind == corpus::AddOutcome::Kind::kAdded ? Sent::kSent : Sent::kAlreadyThere;
  }

 private:
  corpus::Corpus corpus_;
};

}  // namespace

Result<std::unique_ptr<Target>> OpenFolderTarget(const std::string& folder) {
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Create(folder));
  return std::unique_ptr<Target>(std::make_unique<FolderTarget>(std::move(corpus)));
}

Result<std::unique_ptr<Target>> OpenTarget(const std::string& where, const TargetOptions& options) {
  if (where.starts_with("http://") || where.starts_with("https://")) {
    return OpenServerTarget(where, options);
  }
  // As with scp: a colon before the first slash is a host's.
  const size_t colon = where.find(':');
  if (colon != std::string::npos && colon < where.find('/')) {
    // A word that begins with '-' would be an option to ssh.
    if (colon == 0 || where.front() == '-' || colon + 1 == where.size()) {
      return Error{.message = "'" + where + "' names no host and folder",
                   .hint = "HOST:FOLDER, USER@HOST:FOLDER, a folder, or http://HOST:PORT"};
    }
    return OpenRemoteTarget(where.substr(0, colon), where.substr(colon + 1), options);
  }
  return OpenFolderTarget(where);
}

}  // namespace culprit::push
