// SPDX-License-Identifier: Apache-2.0
//
// PerfSpaces: what is mapped where, per process, as a recording tells it: maps
// come, a new one hides what it covers, a fork copies all, an exec forgets all.
// Spaces are shared between a process and its children until one of them
// changes; version() names the contents, so whoever caches by it shares too.
// Kernel modules and the kernel itself are maps of a space of their own.
//
// Bounds, far above what machines have: kMaxMaps maps at a time, kMaxCopies of
// them copied for children in all. Beyond, maps are left out and counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/flat_map.h"

namespace culprit::import_ {

struct PerfMap {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;  // of `start`; modulo 2^64
  uint32_t module = 0;       // the owner's number
};

class PerfSpaces {
 public:
  static constexpr int64_t kKernelPid = -1;
  static constexpr uint64_t kMaxMaps = 1 << 20;
  static constexpr uint64_t kMaxCopies = 1 << 25;

  void Map(int64_t pid, const PerfMap& map);
  void Fork(int64_t parent_pid, int64_t pid);
  void Forget(int64_t pid) { spaces_.Erase(pid); }
  // nullptr: nothing is there.
  const PerfMap* Find(int64_t pid, uint64_t address) const;
  // 0: nothing is mapped.
  uint64_t version(int64_t pid) const;
  uint64_t left_out() const { return left_out_; }

 private:
  struct Space {
    explicit Space(uint64_t& all) : total(all) {}
    Space(const Space&) = delete;
    Space& operator=(const Space&) = delete;
    ~Space() { total -= counted; }
    void Recount() {
      total += maps.size() - counted;
      counted = maps.size();
    }

    std::map<uint64_t, PerfMap> maps;  // by start, disjoint
    uint64_t version = 0;
    uint64_t& total;  // over all spaces
    uint64_t counted = 0;
  };

  std::shared_ptr<Space> Copy(const Space& space);

  uint64_t total_ = 0;
  uint64_t copies_ = 0;
  uint64_t left_out_ = 0;
  FlatMap<int64_t, std::shared_ptr<Space>> spaces_;
  uint64_t versions_ = 0;
};

}  // namespace culprit::import_
