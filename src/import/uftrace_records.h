// SPDX-License-Identifier: Apache-2.0
//
// The binary files of a uftrace data folder, each in order of time:
//
//   TID.dat      = { time u64, type 2 bits, more 1, magic 3 (5), depth 10,
//                  address 48 }, 16 bytes a record; arguments follow where
//                  `more` says so
//   perf-cpuN.dat = records of perf: switches, names, forks, exits
//
// How long arguments are depends on their types, which only the program's debug
// information knows; so the next record is found by its look: the magic, a time
// that goes on within the recording, an address of code. A place that looks like
// no record is skipped the same way and counted. Little-endian only, as all
// machines of uftrace are. Memory is one buffer a file. One thread at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/source.h"

namespace culprit::import_ {

enum class UftraceType : uint8_t { kEntry = 0, kExit = 1, kLost = 2, kEvent = 3 };

// What records of one recording have in common.
struct UftraceBounds {
  int64_t end_ns = INT64_MAX;                       // no record is later
  std::vector<std::pair<uint64_t, uint64_t>> code;  // where modules are; empty: not known

  bool IsCode(uint64_t address) const;
};

struct UftraceRecord {
  int64_t time_ns = 0;
  UftraceType type = UftraceType::kEntry;
  uint16_t depth = 0;
  uint64_t address = 0;  // kLost: how many
  uint64_t offset = 0;   // in the file
};

class UftraceTaskFile {
 public:
  // `bounds` and `diagnostics` outlive this object.
  UftraceTaskFile(const Bytes& bytes, size_t buffer_bytes, const UftraceBounds& bounds,
                  Diagnostics& diagnostics)
      : reader_(bytes, 0, buffer_bytes), bounds_(bounds), diagnostics_(diagnostics) {}

  // False: the file is at its end.
  Result<bool> Next(UftraceRecord& record);

 private:
  bool Plausible(std::string_view bytes) const;
  bool CanOnlyBeARecord(std::string_view bytes) const;
  // True: moved to the next place that looks like a record.
  Result<bool> Resync();

  BytesReader reader_;
  const UftraceBounds& bounds_;
  Diagnostics& diagnostics_;
  int64_t last_ns_ = 0;
};

struct UftracePerfRecord {
  int64_t time_ns = 0;
  uint32_t type = 0;  // of perf_data_layout.h
  uint16_t misc = 0;
  int64_t pid = -1;
  int64_t tid = -1;
  std::string_view name;  // of kRecordComm; valid until the next call
};

class UftracePerfFile {
 public:
  UftracePerfFile(const Bytes& bytes, size_t buffer_bytes, Diagnostics& diagnostics)
      : reader_(bytes, 0, buffer_bytes), diagnostics_(diagnostics) {}

  // False: the file is at its end, or nothing tells where the next record is.
  Result<bool> Next(UftracePerfRecord& record);

 private:
  BytesReader reader_;
  Diagnostics& diagnostics_;
  uint64_t skip_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace culprit::import_
