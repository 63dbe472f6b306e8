// SPDX-License-Identifier: Apache-2.0
//
// What pprof's older formats have in common: a profile built address by
// address, and the text that follows the samples and says what the addresses
// are: a memory map (C++, Go), or a list of functions (Java).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "import/pprof_profile.h"

namespace culprit::import_ {

class LegacyProfile {
 public:
  explicit LegacyProfile(std::string bytes) {
    profile_.text = std::make_unique<const std::string>(std::move(bytes));
  }

  std::string_view text() const { return *profile_.text; }
  Profile& profile() { return profile_; }
  // Addresses are leaf first.
  void AddSample(const std::vector<uint64_t>& addresses, int64_t count, int64_t value,
                 uint64_t input_offset);
  // Lines like "00400000-00fcb000 r-xp 00000000 00:00 21306940  /bin/server" and
  // "  00400000-00fcb000: /bin/server"; the others are passed over.
  void ReadMemoryMap(std::string_view rest);
  // Lines like " 0x0000003 com.example.Work.run (Work.java:17)".
  void ReadJavaFunctions(std::string_view rest, Diagnostics& diagnostics);

 private:
  void AttachMappings();

  Profile profile_;
  std::unordered_map<uint64_t, uint32_t> location_of_;  // by address
};

// The first line of `rest`, without its end; removes it.
std::string_view TakeLine(std::string_view& rest);

}  // namespace culprit::import_
