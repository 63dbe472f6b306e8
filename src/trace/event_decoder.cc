// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "trace/column_codec.h"
#include "trace/event_codec.h"
#include "trace/event_columns.h"
#include "trace/hand_overs.h"
#include "trace/owner_state.h"

namespace culprit::trace {

struct BlockDecoder::State {
  ColumnDecoder columns;
  std::array<std::string_view, 256> directory;
  std::array<std::array<std::vector<uint64_t>, kFields>, kEventKinds> fields;
  std::string kinds;
  std::string flags;
  std::vector<uint64_t> ranks;
  std::vector<uint32_t> stacks;  // ids by code
  std::vector<uint32_t> threads;
  std::vector<Event*> places;
  BlockInfo info;
  bool only_odd_flags = false;
  HandOvers hand_overs;
  std::string run_ends;  // as the encoder's
  std::string ready_ends;
  std::vector<uint32_t> who_leaves;
  struct Taker {
    Event* event;
    uint32_t at;  // the hand-over by which it got its CPU
  };
  std::vector<Taker> takers;  // whose peer is who leaves

  bool ReadDirectory(ByteReader& in);
  bool ReadRanks(uint8_t id, uint32_t limit, std::vector<uint32_t>& ids);
  bool ReadBytes(uint8_t id, size_t count, std::string& plane);
  bool ReadHandOvers();
  size_t DurationsOf(EventKind kind) const;
  bool ReadColumns(const IdLimits& limits);
  bool ReadHead(std::string_view payload, const IdLimits& limits);
  bool Assemble(std::span<Event* const> to);
  bool EndAtHandOver(uint8_t code, ThreadId owner, Event& event, uint32_t& at);
  bool NameThoseWhoLeave();
};

bool BlockDecoder::State::ReadDirectory(ByteReader& in) {
  directory = {};
  while (in.remaining() > 0) {
    const uint8_t id = in.U8();
    const std::string_view bytes = in.String();
    if (in.failed() || directory[id].data() != nullptr) return false;
    directory[id] = bytes;
  }
  return true;
}

bool BlockDecoder::State::ReadRanks(uint8_t id, uint32_t limit, std::vector<uint32_t>& ids) {
  // kCodeExpected stands for what the loop knows.
  ids.assign(kFirstRankCode, kNoId);
  ByteReader in(directory[id]);
  if (directory[id].empty()) return true;
  const uint64_t count = in.Varint();
  if (count > info.events || !columns.Column(in, count, ranks)) return false;
  for (const uint64_t rank : ranks) {
    if (rank >= limit) return false;
    ids.push_back(static_cast<uint32_t>(rank));
  }
  return true;
}

bool BlockDecoder::State::ReadBytes(uint8_t id, size_t count, std::string& plane) {
  if (directory[id].empty()) {
    plane.assign(count, '\0');
    return true;
  }
  ByteReader in(directory[id]);
  return columns.Bytes(in, count, plane);
}

bool BlockDecoder::State::ReadHandOvers() {
  hand_overs.Clear();
  takers.clear();
  if (directory[kHandOversColumn].empty()) return true;
  const uint32_t runs = info.kind_counts[static_cast<size_t>(EventKind::kRunning)];
  const uint32_t readies = info.kind_counts[static_cast<size_t>(EventKind::kReady)];
  ByteReader in(directory[kHandOversColumn]);
  if (!hand_overs.Read(in, runs, columns) || hand_overs.empty()) return false;
  who_leaves.assign(hand_overs.size(), kNoId);
  return ReadBytes(kRunEndsColumn, runs, run_ends) &&
         ReadBytes(kReadyEndsColumn, readies, ready_ends);
}

size_t BlockDecoder::State::DurationsOf(EventKind kind) const {
  const auto own = [](const std::string& ends) {
    return static_cast<size_t>(std::count(ends.begin(), ends.end(), char{kEndsByDuration}));
  };
  if (!hand_overs.empty() && kind == EventKind::kRunning) return own(run_ends);
  if (!hand_overs.empty() && kind == EventKind::kReady) return own(ready_ends);
  return info.kind_counts[static_cast<size_t>(kind)];
}

bool BlockDecoder::State::ReadColumns(const IdLimits& limits) {
  only_odd_flags = !directory[kOddFlagsColumn].empty();
  const uint8_t flags_column = only_odd_flags ? kOddFlagsColumn : kFlagsColumn;
  if (!ReadBytes(kKindsColumn, info.events, kinds) ||
      !ReadBytes(flags_column, info.events, flags)) {
    return false;
  }
  std::array<uint32_t, 256> counts = {};
  for (char kind : kinds) ++counts[static_cast<uint8_t>(kind)];
  if (!std::equal(info.kind_counts.begin(), info.kind_counts.end(), counts.begin())) return false;
  if (!ReadRanks(kStackRanksColumn, limits.stacks, stacks)) return false;
  if (!ReadRanks(kThreadRanksColumn, limits.threads, threads) || !ReadHandOvers()) return false;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      const std::string_view bytes = directory[FieldColumn(kind, field)];
      auto& values = fields[kind][field];
      values.clear();
      if (bytes.empty()) continue;
      ByteReader in(bytes);
      const size_t count =
          field == kDur ? DurationsOf(static_cast<EventKind>(kind)) : info.kind_counts[kind];
      if (!columns.Column(in, count, values)) return false;
    }
  }
  return true;
}

namespace {

// A column, or for one that is not stored a zero that every index leads to.
struct Values {
  const uint64_t* values = nullptr;
  size_t mask = 0;

  uint64_t operator[](size_t i) const { return values[i & mask]; }
};
constexpr uint64_t kZero = 0;

// One id from its code; sets `bad` for a rank that does not exist.
uint32_t IdOf(uint64_t code, uint32_t expected, const std::vector<uint32_t>& ids, bool& bad) {
  const bool exists = code < ids.size();
  bad |= !exists;
  const uint32_t id = ids[exists ? code : kCodeNone];
  return code == kCodeExpected ? expected : id;
}

}  // namespace

// Of a run or a ready time that has all but its duration.
bool BlockDecoder::State::EndAtHandOver(uint8_t code, ThreadId owner, Event& event, uint32_t& at) {
  const bool runs = event.kind == EventKind::kRunning;
  const auto begin = static_cast<uint64_t>(event.time_ns) - static_cast<uint64_t>(info.min_time_ns);
  at = hand_overs.AtOrAfter(event.cpu, begin + (runs ? 1 : 0), code - kEndsAtNext);
  event.dur_ns = 0;
  if (at == HandOvers::kNowhere) return false;
  event.dur_ns = static_cast<int64_t>(hand_overs.TimeOf(at) - begin);
  if (runs) who_leaves[at] = owner.value;
  return true;
}

bool BlockDecoder::State::NameThoseWhoLeave() {
  for (const Taker& taker : takers) {
    if (who_leaves[taker.at] == kNoId) return false;
    taker.event->peer = ThreadId(who_leaves[taker.at]);
  }
  return true;
}

bool BlockDecoder::State::Assemble(std::span<Event* const> to) {
  std::array<std::array<Values, kFields>, kEventKinds> columns_of;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      const auto& values = fields[kind][field];
      columns_of[kind][field] =
          values.empty() ? Values{&kZero, 0} : Values{values.data(), SIZE_MAX};
    }
  }
  std::array<uint32_t, kEventKinds> index = {};
  std::array<uint32_t, kEventKinds> durations = {};
  std::array<const char*, kEventKinds> ends = {};  // null: all have durations
  if (!hand_overs.empty()) {
    ends[static_cast<size_t>(EventKind::kRunning)] = run_ends.data();
    ends[static_cast<size_t>(EventKind::kReady)] = ready_ends.data();
  }
  const char* kind_byte = kinds.data();
  const char* flag_byte = flags.data();
  const auto start = static_cast<uint64_t>(info.min_time_ns);
  const auto end = static_cast<uint64_t>(info.max_end_ns);
  bool bad = false;
  for (size_t o = 0; o < info.owners.size(); ++o) {
    const BlockInfo::Owner& owner = info.owners[o];
    Event* event = to[o];
    OwnerState expected(info.min_time_ns);
    hand_overs.BeginOwner();
    for (uint32_t n = 0; n < owner.events; ++n, ++event) {
      const auto kind = size_t{static_cast<uint8_t>(*kind_byte++)};
      const auto& field = columns_of[kind];
      const uint32_t i = index[kind]++;
      event->kind = static_cast<EventKind>(kind);
      event->flags = static_cast<uint8_t>(*flag_byte++);
      const uint64_t time =
          expected.ExpectedTime(event->kind) + static_cast<uint64_t>(UnZigZag(field[kStart][i]));
      event->time_ns = static_cast<int64_t>(time);
      event->cpu = static_cast<uint16_t>(expected.cpu + UnZigZag(field[kCpu][i]));
      event->stack = StackId(IdOf(field[kStack][i], expected.stack, stacks, bad));
      if (only_odd_flags) event->flags ^= expected.ExpectedFlags(event->kind, event->stack.value);
      const ThreadId other(IdOf(field[kOther][i], expected.other, threads, bad));
      const bool unwait = event->kind == EventKind::kUnwait;
      event->thread = unwait ? other : owner.thread;
      event->peer = unwait ? owner.thread : other;
      const uint8_t code =
          ends[kind] == nullptr ? kEndsByDuration : static_cast<uint8_t>(ends[kind][i]);
      if (code == kEndsByDuration) {
        event->dur_ns = static_cast<int64_t>(field[kDur][durations[kind]++]);
      } else {
        uint32_t at = 0;
        bad |= !EndAtHandOver(code, owner.thread, *event, at);
        const bool takes = event->kind == EventKind::kReady && field[kOther][i] == kCodeExpected;
        if (takes) takers.push_back({event, at});
      }
      bad |= (time - start > end - start) | (static_cast<uint64_t>(event->dur_ns) > end - time);
      // What stands above the number of a call; files of version 1.0 have none, and
      // of other kinds it means nothing.
      const uint64_t above = event->kind == EventKind::kSyscall ? field[kDetail][i] << 32 : 0;
      event->arg0 = static_cast<int64_t>(static_cast<uint64_t>(UnZigZag(field[kArg0][i])) + above);
      event->arg1 = UnZigZag(field[kArg1][i]);
      expected.Advance(*event);
    }
  }
  return !bad && NameThoseWhoLeave();
}

bool BlockDecoder::State::ReadHead(std::string_view payload, const IdLimits& limits) {
  ByteReader in(payload);
  return DecodeBlockInfo(in, limits, info) && ReadDirectory(in);
}

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {}
BlockDecoder::~BlockDecoder() = default;

bool BlockDecoder::Decode(std::string_view payload, const IdLimits& limits,
                          std::vector<Event>& events) {
  State& s = *state_;
  events.clear();
  if (!s.ReadHead(payload, limits) || !s.ReadColumns(limits)) return false;
  events.resize(s.info.events);
  s.places.clear();
  Event* next = events.data();
  for (const BlockInfo::Owner& owner : s.info.owners) {
    s.places.push_back(next);
    next += owner.events;
  }
  const bool ok = s.Assemble(s.places);
  if (!ok) events.clear();
  return ok;
}

bool BlockDecoder::DecodeInto(std::string_view payload, const IdLimits& limits,
                              const BlockInfo& expected, std::span<Event* const> places) {
  State& s = *state_;
  return s.ReadHead(payload, limits) && s.info.owners == expected.owners && s.ReadColumns(limits) &&
         s.Assemble(places);
}

bool BlockDecoder::DecodeInfo(std::string_view payload, const IdLimits& limits, BlockInfo& info) {
  ByteReader in(payload);
  return DecodeBlockInfo(in, limits, info);
}

}  // namespace culprit::trace
