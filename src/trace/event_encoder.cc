// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "trace/column_codec.h"
#include "trace/event_codec.h"
#include "trace/event_columns.h"
#include "trace/hand_overs.h"
#include "trace/owner_state.h"
#include "trace/syscall_operation.h"

namespace culprit::trace {
namespace {

class RankTable {
 public:
  void Clear() {
    for (uint32_t id : ids_) counts_[id] = 0;
    ids_.clear();
  }

  uint64_t Code(uint32_t id, uint32_t expected) {
    if (id == kNoId) return kCodeNone;
    if (id == expected) return kCodeExpected;
    if (id >= counts_.size()) counts_.resize(id + 1 + id / 2);
    if (counts_[id]++ == 0) ids_.push_back(id);
    return kFirstRankCode + id;
  }

  // Orders the ids by frequency; from then on Ranked() translates codes.
  void Rank() {
    std::sort(ids_.begin(), ids_.end(), [&](uint32_t a, uint32_t b) {
      return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
    });
    for (size_t i = 0; i < ids_.size(); ++i) counts_[ids_[i]] = static_cast<uint32_t>(i);
  }
  uint64_t Ranked(uint64_t code) const {
    return code < kFirstRankCode ? code : kFirstRankCode + counts_[code - kFirstRankCode];
  }
  const std::vector<uint32_t>& ids() const { return ids_; }

 private:
  std::vector<uint32_t> counts_;  // by id; after Rank() the rank
  std::vector<uint32_t> ids_;
};

// Of an owner's events at one moment, the order in which they happened, so that
// each begins where the one before it ended: a wait of no length, the wake-up,
// a ready of no length, and what then lasts.
int RankAtOneTime(const Event& event) {
  if (event.kind == EventKind::kUnwait) return 1;
  if (event.dur_ns > 0) return 3;
  return event.kind == EventKind::kWait ? 0 : 2;
}

// Fills all of `info` but its owners; `slots` then holds the events of each
// owner. none() is UINT32_MAX: + 1 makes it slot 0, before all threads.
void Summarize(const std::vector<Event>& events, std::vector<uint32_t>& slots, BlockInfo& info) {
  slots.clear();
  info.events = static_cast<uint32_t>(events.size());
  info.min_time_ns = events.front().time_ns;
  info.max_end_ns = events.front().end_ns();
  info.kind_counts = {};
  for (const Event& event : events) {
    info.min_time_ns = std::min(info.min_time_ns, event.time_ns);
    info.max_end_ns = std::max(info.max_end_ns, event.end_ns());
    ++info.kind_counts[static_cast<size_t>(event.kind)];
    const size_t slot = OwnerOf(event).value + 1;
    if (slot >= slots.size()) slots.resize(slot + 1);
    ++slots[slot];
  }
}

// `slots` as Summarize() leaves them; afterwards where each owner's events end.
void GroupByOwner(std::vector<Event>& events, std::vector<Event>& scratch,
                  std::vector<uint32_t>& slots, BlockInfo& info) {
  info.owners.clear();
  uint32_t sum = 0;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    const uint32_t count = std::exchange(slots[slot], sum);
    if (count == 0) continue;
    info.owners.push_back({.thread = slot == 0 ? ThreadId() : ThreadId(slot - 1), .events = count});
    sum += count;
  }
  scratch.resize(events.size());
  for (const Event& event : events) scratch[slots[OwnerOf(event).value + 1]++] = event;
  events.swap(scratch);
  auto group = events.begin();
  const auto by_time = [](const Event& a, const Event& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : RankAtOneTime(a) < RankAtOneTime(b);
  };
  for (const BlockInfo::Owner& owner : info.owners) {
    const auto end = group + owner.events;
    if (!std::is_sorted(group, end, by_time)) std::stable_sort(group, end, by_time);
    group = end;
  }
}

void WriteColumn(uint8_t id, std::string_view bytes, ByteWriter& out) {
  out.U8(id);
  out.String(bytes);
}

}  // namespace

struct BlockEncoder::State {
  explicit State(int zstd_level) : columns(zstd_level) {}

  ColumnEncoder columns;
  RankTable stacks;
  RankTable threads;
  // A column's values, its size as of kind_counts; what lies behind is left over
  // from other blocks. `bits` has all bits that any of its values has.
  struct Values {
    std::vector<uint64_t> values;
    uint64_t bits = 0;
  };
  using Row = std::array<uint64_t, kFields>;

  std::array<std::array<Values, kFields>, kEventKinds> fields;
  std::string kinds;
  std::string flags;
  std::vector<uint64_t> ranks;
  std::vector<Event> scratch;
  std::vector<uint32_t> slots;
  HandOvers hand_overs;
  std::string run_ends;              // of the runs, in their order
  std::string ready_ends;            // the same
  std::vector<uint32_t> ready_at;    // the hand-over
  std::vector<uint32_t> who_leaves;  // by hand-over

  void FindHandOvers(const std::vector<Event>& events, const BlockInfo& info);
  void WriteHandOvers(ByteWriter& out);
  bool EndsAtHandOver(EventKind kind, size_t place) const;
  uint32_t ExpectedOther(EventKind kind, size_t place, const OwnerState& expected) const;
  std::span<uint64_t> DurationsOf(EventKind kind, std::span<uint64_t> all) const;
  void Begin(const BlockInfo& info);
  void Fill(const std::vector<Event>& events, const BlockInfo& info);
  void WriteRanks(uint8_t id, const RankTable& table, ByteWriter& out);
  void WriteFields(const BlockInfo& info, ByteWriter& out);
};

void BlockEncoder::State::FindHandOvers(const std::vector<Event>& events, const BlockInfo& info) {
  run_ends.clear();
  ready_ends.clear();
  ready_at.clear();
  hand_overs.Clear();
  if (!columns.compresses()) return;
  hand_overs.Find(events, info.min_time_ns);
  if (hand_overs.empty()) return;
  who_leaves.assign(hand_overs.size(), kNoId);
  size_t i = 0;
  for (const BlockInfo::Owner& owner : info.owners) {
    hand_overs.BeginOwner();
    for (const size_t last = i + owner.events; i < last; ++i) {
      const Event& event = events[i];
      const auto begin = static_cast<uint64_t>(event.time_ns - info.min_time_ns);
      const auto end = static_cast<uint64_t>(event.end_ns() - info.min_time_ns);
      if (event.kind == EventKind::kRunning) {
        const uint32_t at = hand_overs.AtOrAfter(event.cpu, begin + 1, 0);
        const bool leaves = at != HandOvers::kNowhere && hand_overs.TimeOf(at) == end;
        run_ends.push_back(static_cast<char>(leaves ? kEndsAtNext : kEndsByDuration));
        if (leaves) who_leaves[at] = owner.thread.value;
      } else if (event.kind == EventKind::kReady) {
        const uint32_t steps = hand_overs.StepsTo(event.cpu, begin, end, kMaxSteps);
        const bool takes = steps != HandOvers::kNowhere;
        ready_ends.push_back(static_cast<char>(takes ? kEndsAtNext + steps : kEndsByDuration));
        ready_at.push_back(takes ? hand_overs.AtOrAfter(event.cpu, begin, steps) : 0);
      }
    }
  }
}

// The run or ready time that is the `place`th of its kind.
bool BlockEncoder::State::EndsAtHandOver(EventKind kind, size_t place) const {
  if (hand_overs.empty()) return false;
  if (kind == EventKind::kRunning) return run_ends[place] != kEndsByDuration;
  return kind == EventKind::kReady && ready_ends[place] != kEndsByDuration;
}

uint32_t BlockEncoder::State::ExpectedOther(EventKind kind, size_t place,
                                            const OwnerState& expected) const {
  const bool takes = kind == EventKind::kReady && EndsAtHandOver(kind, place);
  return takes ? who_leaves[ready_at[place]] : expected.other;
}

// Those that end at no hand-over, moved to the front of all.
std::span<uint64_t> BlockEncoder::State::DurationsOf(EventKind kind,
                                                     std::span<uint64_t> all) const {
  size_t left = 0;
  for (size_t place = 0; place < all.size(); ++place) {
    if (!EndsAtHandOver(kind, place)) all[left++] = all[place];
  }
  return all.first(left);
}

void BlockEncoder::State::WriteHandOvers(ByteWriter& out) {
  if (hand_overs.empty()) return;
  ByteWriter times, runs, readies;
  hand_overs.Write(columns, times);
  WriteColumn(kHandOversColumn, times.bytes(), out);
  columns.Bytes(run_ends, runs);
  WriteColumn(kRunEndsColumn, runs.bytes(), out);
  columns.Bytes(ready_ends, readies);
  WriteColumn(kReadyEndsColumn, readies.bytes(), out);
}

void BlockEncoder::State::Begin(const BlockInfo& info) {
  stacks.Clear();
  threads.Clear();
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (Values& column : fields[kind]) {
      if (column.values.size() < info.kind_counts[kind]) {
        column.values.resize(info.kind_counts[kind]);
      }
      column.bits = 0;
    }
  }
  kinds.resize(info.events);
  flags.resize(info.events);
}

void BlockEncoder::State::Fill(const std::vector<Event>& events, const BlockInfo& info) {
  std::array<std::array<uint64_t*, kFields>, kEventKinds> next;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      next[kind][field] = fields[kind][field].values.data();
    }
  }
  std::array<Row, kEventKinds> bits = {};
  std::array<uint32_t, kEventKinds> index = {};
  size_t i = 0;
  for (const BlockInfo::Owner& owner : info.owners) {
    OwnerState expected(info.min_time_ns);
    for (const size_t end = i + owner.events; i < end; ++i) {
      const Event& event = events[i];
      const auto kind = static_cast<size_t>(event.kind);
      const auto start = static_cast<uint64_t>(event.time_ns) - expected.ExpectedTime(event.kind);
      const auto cpu_step = static_cast<int16_t>(event.cpu - expected.cpu);
      const bool is_call = event.kind == EventKind::kSyscall;
      const uint32_t place = index[kind]++;
      const uint32_t other = ExpectedOther(event.kind, place, expected);
      const Row row = {ZigZag(static_cast<int64_t>(start)),
                       static_cast<uint64_t>(event.dur_ns),
                       stacks.Code(event.stack.value, expected.stack),
                       threads.Code(OtherOf(event).value, other),
                       ZigZag(cpu_step),
                       ZigZag(is_call ? CallNumber(event.arg0) : event.arg0),
                       ZigZag(event.arg1),
                       is_call ? CallDetail(event.arg0) : 0};
      for (size_t field = 0; field < kFields; ++field) {
        next[kind][field][place] = row[field];
        bits[kind][field] |= row[field];
      }
      kinds[i] = static_cast<char>(event.kind);
      flags[i] =
          static_cast<char>(event.flags ^ expected.ExpectedFlags(event.kind, event.stack.value));
      expected.Advance(event);
    }
  }
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) fields[kind][field].bits = bits[kind][field];
  }
}

void BlockEncoder::State::WriteRanks(uint8_t id, const RankTable& table, ByteWriter& out) {
  ranks.assign(table.ids().begin(), table.ids().end());
  ByteWriter body;
  body.Varint(ranks.size());
  columns.Column(ranks, body);
  WriteColumn(id, body.bytes(), out);
}

void BlockEncoder::State::WriteFields(const BlockInfo& info, ByteWriter& out) {
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      if (fields[kind][field].bits == 0) continue;
      std::span values(fields[kind][field].values.data(), info.kind_counts[kind]);
      if (field == kDur) values = DurationsOf(static_cast<EventKind>(kind), values);
      if (field == kStack || field == kOther) {
        const RankTable& table = field == kStack ? stacks : threads;
        for (uint64_t& code : values) code = table.Ranked(code);
      }
      ByteWriter body;
      columns.Column(values, body);
      WriteColumn(FieldColumn(kind, field), body.bytes(), out);
    }
  }
}

BlockEncoder::BlockEncoder(int zstd_level) : state_(std::make_unique<State>(zstd_level)) {}
BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::Encode(std::vector<Event>& events, std::string& out, BlockInfo& info) {
  CULPRIT_CHECK(!events.empty() && events.size() <= kMaxBlockEvents);
  State& s = *state_;
  Summarize(events, s.slots, info);
  GroupByOwner(events, s.scratch, s.slots, info);
  s.FindHandOvers(events, info);
  s.Begin(info);
  s.Fill(events, info);
  s.stacks.Rank();
  s.threads.Rank();

  ByteWriter writer;
  EncodeBlockInfo(info, writer);
  ByteWriter body;
  s.columns.Bytes(s.kinds, body);
  WriteColumn(kKindsColumn, body.bytes(), writer);
  ByteWriter flags_body;
  s.columns.Bytes(s.flags, flags_body);
  WriteColumn(kOddFlagsColumn, flags_body.bytes(), writer);
  s.WriteRanks(kStackRanksColumn, s.stacks, writer);
  s.WriteRanks(kThreadRanksColumn, s.threads, writer);
  s.WriteHandOvers(writer);
  s.WriteFields(info, writer);
  out.append(writer.bytes());
}

}  // namespace culprit::trace
