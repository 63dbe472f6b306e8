// SPDX-License-Identifier: Apache-2.0
//
// SummaryStore: what analyses took from the traces of a corpus, kept so that a
// trace is read once for each kind of question and never again.
//
//   FOLDER/summaries/1e/1e5993….mine-0b7c52d1a9e8f3340b7c52d1a9e8f334
//
// The name says everything a summary depends on: the content of the trace, the
// kind, and a digest of the parameters and the version of the extraction; the
// file is sealed (sealed_bytes.h) with the same. So a summary is either right or
// not found: one that is damaged, foreign or of another version is made again, and
// two analyses that write one at once write the same bytes. Nothing here is
// needed: the folder may be removed at any time.
//
// Safe from several threads and processes. A folder that cannot be written is
// found out at the first Put, which is then the last that tries.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "corpus/summary_names.h"
#include "corpus/summary_stacks.h"

namespace culprit::corpus {

// What a payload begins with, that summaries share.
enum class SummaryHead : uint8_t {
  kNothing,
  kNames,   // a list of strings (summary_names.h)
  kStacks,  // stacks and their names (summary_stacks.h)
};

// What is extracted, apart from the trace.
struct SummaryKind {
  std::string name;        // "mine"; letters
  std::string parameters;  // all that the extraction depends on, its version included
  SummaryHead head = SummaryHead::kNothing;
};

class SummaryStore {
 public:
  explicit SummaryStore(const std::string& corpus_folder);

  // The payload; none if it is not there or not whole.
  std::optional<std::string> Get(std::string_view trace_sha256, const SummaryKind& kind);
  void Put(std::string_view trace_sha256, const SummaryKind& kind, std::string_view payload);

  // Why summaries could not be kept; empty if they could, or none was put.
  std::string why_not_kept() const;
  uint64_t bytes_read() const { return bytes_read_.load(); }
  uint64_t bytes_written() const {
    return bytes_written_.load() + names_.bytes_written() + stacks_.bytes_written();
  }

 private:
  std::string Pack(SummaryHead head, std::string_view payload);
  std::optional<std::string> Unpack(SummaryHead head, std::string payload);

  const std::string folder_;
  SummaryNames names_;
  SummaryStacks stacks_;
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string why_not_kept_;
};

std::string SummariesFolder(const std::string& corpus_folder);

// Removes the summaries of a trace, which is known by its hash or its file's name;
// it is no error if there are none.
void RemoveSummaries(const std::string& corpus_folder, std::string_view trace);

// One file in the folder of summaries.
struct SummaryFile {
  std::string path;   // relative to the corpus folder
  std::string trace;  // the beginning of its SHA-256; empty: no name of a summary
  uint64_t bytes = 0;
  int64_t used_s = 0;      // Unix time of the last reading or writing, about
  bool temporary = false;  // still being written, or left by a process that was killed
};
// By path, without the tables that they share. Empty where there is no folder.
std::vector<SummaryFile> ListSummaries(const std::string& corpus_folder);
// Whether it is whole and of this trace. Reads it.
bool IsWholeSummary(const std::string& corpus_folder, const SummaryFile& file,
                    std::string_view trace_sha256);

struct SummariesRemoved {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t files_left = 0;
  uint64_t bytes_left = 0;
};
// Removes those least lately used until at most `keep_bytes` are left, and the tables
// that they share with the last of them; the figures are of summaries alone.
Result<SummariesRemoved> TrimSummaries(const std::string& corpus_folder, uint64_t keep_bytes);

}  // namespace culprit::corpus
