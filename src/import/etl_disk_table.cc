// SPDX-License-Identifier: Apache-2.0
#include "import/etl_disk_table.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace culprit::import_ {
namespace {

EtlDiskRequest UnfinishedEtlRequest(const EtlDiskTable::Row& init) {
  return {.start = init.time,
          .end = init.time,
          .finished = false,
          .has_init = true,
          .operation = init.operation,
          .tid = init.tid};
}

}  // namespace

void EtlDiskTable::Add(const Row& row) {
  if (rows_.size() < kMaxRows) {
    rows_.push_back(row);
  } else {
    ++left_out_;
  }
}

std::vector<EtlDiskRequest> EtlDiskTable::Take(Diagnostics& diagnostics) {
  if (left_out_ != 0) diagnostics.Count("disk event beyond what is kept in memory", left_out_);
  // An end and a beginning at the same time: packets are used again at once.
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return std::tie(a.time, a.is_init, a.packet, a.disk, a.bytes) <
           std::tie(b.time, b.is_init, b.packet, b.disk, b.bytes);
  });
  std::vector<EtlDiskRequest> requests;
  std::unordered_map<uint64_t, Row> open;
  for (const Row& row : rows_) {
    const auto it = open.find(row.packet);
    if (row.is_init) {
      if (it != open.end()) {
        diagnostics.Count("disk request without its end");
        it->second = row;
      } else {
        open.emplace(row.packet, row);
      }
      continue;
    }
    EtlDiskRequest request = {.start = row.time - std::min(row.ticks, row.time),
                              .end = row.time,
                              .disk = row.disk,
                              .bytes = row.bytes,
                              .operation = row.operation,
                              .tid = row.tid};
    if (it != open.end()) {
      request.has_init = true;
      request.start = it->second.time;
      if (it->second.tid != kEtlNoId) request.tid = it->second.tid;
      open.erase(it);
    }
    requests.push_back(request);
  }
  for (const auto& [packet, init] : open) requests.push_back(UnfinishedEtlRequest(init));
  std::sort(requests.begin(), requests.end(), [](const EtlDiskRequest& a, const EtlDiskRequest& b) {
    return std::tie(a.start, a.end, a.disk, a.tid, a.bytes, a.operation) <
           std::tie(b.start, b.end, b.disk, b.tid, b.bytes, b.operation);
  });
  rows_ = {};
  return requests;
}

}  // namespace culprit::import_
