// SPDX-License-Identifier: Apache-2.0
//
// ViolationStore: reports of slow units on disk, a folder with one file a day,
// slow-units-YYYY-MM-DD.jsonl (UTC), one JSON object a line, appended whole. The
// folder's bytes are bounded: the oldest day goes first, and a day that alone is
// larger takes no more. Several collectors may write to one folder. One thread at
// a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "guard/unit_report.h"

namespace culprit::guard {

class ViolationStore {
 public:
  static constexpr uint64_t kDefaultMaxBytes = uint64_t{256} << 20;

  // Makes the folder where there is none.
  static Result<ViolationStore> Open(const std::string& folder,
                                     uint64_t max_bytes = kDefaultMaxBytes);
  Status Append(const UnitReport& report);
  uint64_t refused() const { return refused_; }  // for want of room
  const std::string& folder() const { return folder_; }

 private:
  ViolationStore(std::string folder, uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  // False: there is no room.
  bool MakeRoom(const std::string& today, uint64_t bytes) const;

  std::string folder_;
  uint64_t max_bytes_;
  uint64_t refused_ = 0;
};

}  // namespace culprit::guard
