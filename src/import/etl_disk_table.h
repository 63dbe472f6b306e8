// SPDX-License-Identifier: Apache-2.0
//
// EtlDiskTable: disk requests of an ETW recording. An event at a request's
// beginning (not always recorded) knows who made it and when; the one at its
// end knows disk, size and how long it took. They are joined by the address of
// the request packet, once all are known and in order of time.
//
// Memory: 56 bytes an event, kMaxRows of them; beyond, they are counted.
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostics.h"
#include "import/etl_layout.h"

namespace culprit::import_ {

struct EtlDiskRequest {
  static constexpr uint32_t kUnknownDisk = UINT32_MAX;

  uint64_t start = 0;  // ticks
  uint64_t end = 0;
  bool finished = true;
  bool has_init = false;  // the stack at `start` is the requester's
  uint32_t disk = kUnknownDisk;
  uint32_t bytes = 0;
  uint8_t operation = 0;  // 0 read, 1 write, 2 flush
  uint32_t tid = kEtlNoId;
};

class EtlDiskTable {
 public:
  static constexpr size_t kMaxRows = size_t{1} << 23;

  struct Row {
    uint64_t time = 0;
    uint64_t packet = 0;
    bool is_init = false;
    uint8_t operation = 0;
    uint32_t disk = EtlDiskRequest::kUnknownDisk;
    uint32_t bytes = 0;
    uint32_t tid = kEtlNoId;
    uint64_t ticks = 0;  // how long it took, at its end
  };

  void Add(const Row& row);
  // The requests in order of their start; the table is empty afterwards.
  std::vector<EtlDiskRequest> Take(Diagnostics& diagnostics);

 private:
  std::vector<Row> rows_;
  uint64_t left_out_ = 0;
};

}  // namespace culprit::import_
