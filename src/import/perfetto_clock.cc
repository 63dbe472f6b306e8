// SPDX-License-Identifier: Apache-2.0
#include "import/perfetto_clock.h"

#include <algorithm>

#include "import/perfetto_proto.h"

namespace culprit::import_ {
namespace {

constexpr uint32_t kRealtimeClock = 1;
constexpr int64_t kMaxTime = int64_t{1} << 61;
constexpr size_t kMaxSnapshots = 1'000'000;
constexpr size_t kMaxClocks = 64;  // in one snapshot
constexpr int kMaxSteps = 3;

// ClockSnapshot: clocks = 1, primary_trace_clock = 2. Clock: clock_id = 1,
// timestamp = 2, is_incremental = 3, unit_multiplier_ns = 4.
struct ClockReading {
  uint32_t clock = 0;
  uint64_t time = 0;
  bool incremental = false;
  int64_t multiplier_ns = 1;
};

ClockReading ReadClock(std::string_view message) {
  ClockReading reading;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) reading.clock = static_cast<uint32_t>(field.value);
    if (field.number == 2) reading.time = field.value;
    if (field.number == 3) reading.incremental = field.value != 0;
    if (field.number == 4 && field.value != 0) {
      reading.multiplier_ns = static_cast<int64_t>(std::min<uint64_t>(field.value, 1'000'000'000));
    }
  }
  return reading;
}

std::optional<int64_t> Scaled(uint64_t time, int64_t multiplier_ns) {
  if (time > static_cast<uint64_t>(kMaxTime / multiplier_ns)) return {};
  return static_cast<int64_t>(time) * multiplier_ns;
}

}  // namespace

void PerfettoClocks::AddSnapshot(uint32_t sequence, std::string_view message) {
  if (snapshots_.size() >= kMaxSnapshots) return;
  std::vector<std::pair<Key, int64_t>> snapshot;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 2 && field.value > 0 && field.value < 64) {
      trace_clock_ = static_cast<uint32_t>(field.value);
    }
    if (field.number != 1 || snapshot.size() >= kMaxClocks) continue;
    const ClockReading reading = ReadClock(field.bytes);
    const Key key = KeyOf(reading.clock, sequence);
    units_[key] = {.multiplier_ns = reading.multiplier_ns,
                   .incremental = reading.incremental,
                   .last = reading.time};
    const std::optional<int64_t> time_ns = Scaled(reading.time, reading.multiplier_ns);
    if (!time_ns.has_value()) continue;
    snapshot.emplace_back(key, *time_ns);
  }
  const auto of = [&](uint32_t clock) {
    return std::find_if(snapshot.begin(), snapshot.end(),
                        [&](const auto& each) { return each.first == Key(clock, 0); });
  };
  const auto wall = of(kRealtimeClock);
  const auto own = of(trace_clock_);
  for (const auto& [key, time_ns] : snapshot) {
    const Reading reading{.time_ns = time_ns, .snapshot = snapshots_.size()};
    readings_[key].push_back(reading);
    if (own != snapshot.end()) direct_[key].push_back(reading);
  }
  if (wall != snapshot.end() && own != snapshot.end() && wall_offset_ns_ == 0) {
    wall_offset_ns_ = wall->second - own->second;
  }
  snapshots_.push_back(std::move(snapshot));
}

std::optional<int64_t> PerfettoClocks::Convert(const Key& from, int64_t time_ns, int depth) const {
  const Key target(trace_clock_, 0);
  if (from == target) return time_ns;
  const bool is_direct = direct_.contains(from);
  if ((!is_direct && !readings_.contains(from)) || depth >= kMaxSteps) return {};
  const std::vector<Reading>& list = is_direct ? direct_.at(from) : readings_.at(from);
  auto it = std::upper_bound(list.begin(), list.end(), time_ns,
                             [](int64_t time, const Reading& each) { return time < each.time_ns; });
  if (it != list.begin()) --it;
  const int64_t delta = time_ns - it->time_ns;
  const auto& snapshot = snapshots_[it->snapshot];
  for (const auto& [key, reading] : snapshot) {
    if (key == target) return reading + delta;
  }
  for (const auto& [key, reading] : snapshot) {
    if (key == from || key.second != 0) continue;
    const std::optional<int64_t> base = Convert(key, reading, depth + 1);
    if (base.has_value()) return *base + delta;
  }
  return {};
}

std::optional<int64_t> PerfettoClocks::ToTraceTime(uint32_t clock, uint32_t sequence,
                                                   uint64_t time) {
  const Key key = KeyOf(clock, sequence);
  const auto unit = units_.find(key);
  if (unit == units_.end()) {
    const std::optional<int64_t> plain = Scaled(time, 1);
    return plain.has_value() ? Convert(key, *plain, 0) : std::nullopt;
  }
  if (unit->second.incremental) {
    unit->second.last += time;
    time = unit->second.last;
  }
  const std::optional<int64_t> time_ns = Scaled(time, unit->second.multiplier_ns);
  if (!time_ns.has_value()) return {};
  const std::optional<int64_t> converted = Convert(key, *time_ns, 0);
  if (!converted.has_value() || *converted > kMaxTime || *converted < -kMaxTime) return {};
  return converted;
}

}  // namespace culprit::import_
