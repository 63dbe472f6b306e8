// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_space.h"

#include <iterator>

namespace culprit::import_ {

std::shared_ptr<PerfSpaces::Space> PerfSpaces::Copy(const Space& space) {
  auto copy = std::make_shared<Space>(total_);
  if (total_ + space.maps.size() > kMaxMaps || copies_ + space.maps.size() > kMaxCopies) {
    left_out_ += space.maps.size();
    return copy;
  }
  copies_ += space.maps.size();
  copy->maps = space.maps;
  copy->Recount();
  return copy;
}

void PerfSpaces::Map(int64_t pid, const PerfMap& map) {
  if (map.end <= map.start) return;
  if (total_ >= kMaxMaps) {
    ++left_out_;
    return;
  }
  std::shared_ptr<Space>& space = *spaces_.Insert(pid).first;
  if (space == nullptr) {
    space = std::make_shared<Space>(total_);
  } else if (space.use_count() > 1) {
    space = Copy(*space);
  }
  space->version = ++versions_;
  auto& maps = space->maps;
  // What the new one covers goes; what it covers in part is cut.
  auto it = maps.upper_bound(map.start);
  if (it != maps.begin() && std::prev(it)->second.end > map.start) --it;
  while (it != maps.end() && it->second.start < map.end) {
    const PerfMap old = it->second;
    it = maps.erase(it);
    if (old.start < map.start) {
      PerfMap front = old;
      front.end = map.start;
      maps[front.start] = front;
    }
    if (old.end > map.end) {
      PerfMap back = old;
      back.file_offset += map.end - old.start;
      back.start = map.end;
      maps[back.start] = back;
      break;
    }
  }
  maps[map.start] = map;
  space->Recount();
}

void PerfSpaces::Fork(int64_t parent_pid, int64_t pid) {
  if (pid == parent_pid) return;
  const std::shared_ptr<Space>* parent = spaces_.Find(parent_pid);
  if (parent == nullptr) {
    spaces_.Erase(pid);
  } else {
    const std::shared_ptr<Space> shared = *parent;
    *spaces_.Insert(pid).first = shared;
  }
}

const PerfMap* PerfSpaces::Find(int64_t pid, uint64_t address) const {
  const std::shared_ptr<Space>* space = spaces_.Find(pid);
  if (space == nullptr) return nullptr;
  const auto& maps = (*space)->maps;
  auto it = maps.upper_bound(address);
  if (it == maps.begin()) return nullptr;
  --it;
  return address < it->second.end ? &it->second : nullptr;
}

uint64_t PerfSpaces::version(int64_t pid) const {
  const std::shared_ptr<Space>* space = spaces_.Find(pid);
  return space == nullptr ? 0 : (*space)->version;
}

}  // namespace culprit::import_
