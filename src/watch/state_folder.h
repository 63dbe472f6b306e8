// SPDX-License-Identifier: Apache-2.0
//
// StateFolder: what a watch keeps between its runs.
//
//   FOLDER/profiles/BUILDID.cguard   learnt types and thresholds of a binary
//   FOLDER/corpus/                   traces of slow units (corpus.h)
//   FOLDER/reports/                  every slow unit, a file of JSON lines a day
//   FOLDER/signatures.json           what was found, by name
//   FOLDER/inbox.json                the last analysis
//   FOLDER/dumps/                    of the recorder, on their way into the corpus, each
//                                    with DUMP.units and DUMP.labels (intake.h)
//   FOLDER/*.log                     what training, recorder and analysis said
//   FOLDER/lock                      held while a watch runs
//
// One watch at a time; a second one is refused. A dump that was announced is in
// dumps/ or in the corpus: what a killed watch left in dumps/ is taken in by the
// next one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace culprit::watch {

class StateFolder {
 public:
  // Makes what is not there.
  static Result<StateFolder> Open(const std::string& folder);
  StateFolder(StateFolder&& other) noexcept;
  StateFolder& operator=(StateFolder&&) = delete;
  ~StateFolder();

  const std::string& path() const { return path_; }
  std::string Corpus() const { return path_ + "/corpus"; }
  std::string Dumps() const { return path_ + "/dumps"; }
  std::string Reports() const { return path_ + "/reports"; }
  std::string Signatures() const { return path_ + "/signatures.json"; }
  std::string InboxFile() const { return path_ + "/inbox.json"; }
  std::string ProfileOf(const std::string& build_id) const {
    return path_ + "/profiles/" + build_id + ".cguard";
  }
  // Traces that were dumped and not yet taken in, oldest first.
  std::vector<std::string> LeftDumps() const;

 private:
  StateFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;
};

// /var/lib/culprit/NAME of root, culprit/watch/NAME in the user's data folder.
Result<std::string> DefaultStateFolder(const std::string& name);

}  // namespace culprit::watch
