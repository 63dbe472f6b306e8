// SPDX-License-Identifier: Apache-2.0
//
// CtfReader: the events of all stream files of a CTF trace, merged by time.
// Equal times come in the order of file names, so the outcome does not depend
// on the order of the files. Files that only begin later are opened later:
// memory is one packet per file that has events around the current time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/ctf_schema.h"
#include "import/ctf_stream.h"
#include "import/source.h"

namespace culprit::import_ {

// The metadata of the trace in `source`.
Result<CtfSchema> LoadCtfSchema(const Source& source, Diagnostics& diagnostics);

// Its stream files: those beside the metadata, by name.
std::vector<const SourceFile*> CtfStreamFiles(const Source& source);

class CtfReader {
 public:
  // All of them outlive the reader.
  CtfReader(CtfDecoder& decoder, std::span<const SourceFile* const> files,
            Diagnostics& diagnostics);

  // The file whose current event is the next by time; null at the end. Valid
  // until the next call.
  const CtfStreamFile* Next();

  uint64_t backward_steps() const { return backward_steps_; }
  const CtfPacketLedger& ledger() const { return ledger_; }

 private:
  // By time, then by name.
  bool Before(uint32_t a, uint32_t b) const;
  void SiftDown(size_t hole);

  CtfPacketLedger ledger_;
  std::vector<std::unique_ptr<CtfStreamFile>> files_;
  std::vector<uint32_t> heap_;  // of files_, the earliest first
  std::vector<bool> started_;
  bool top_is_used_ = false;
  uint64_t backward_steps_ = 0;
};

}  // namespace culprit::import_
