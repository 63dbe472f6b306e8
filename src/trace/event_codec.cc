// SPDX-License-Identifier: Apache-2.0
#include "trace/event_codec.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "trace/column_codec.h"
#include "trace/owner_state.h"
#include "trace/syscall_operation.h"

namespace culprit::trace {
namespace {

// Fields with a column of their own for every kind.
enum Field : uint8_t { kStart, kDur, kStack, kOther, kCpu, kArg0, kArg1, kDetail, kFields };

// Column ids. Later versions may add some; readers skip what they do not know.
constexpr uint8_t kKindsColumn = 1;
constexpr uint8_t kFlagsColumn = 2;
constexpr uint8_t kStackRanksColumn = 3;
constexpr uint8_t kThreadRanksColumn = 4;
constexpr uint8_t kFirstFieldColumn = 16;

constexpr uint8_t FieldColumn(size_t kind, size_t field) {
  return static_cast<uint8_t>(kFirstFieldColumn + kind * 8 + field);
}

// Ids in columns: none, the one expected, or a rank in the block's own table,
// most frequent first, so that common ids are small numbers.
constexpr uint64_t kCodeNone = 0;
constexpr uint64_t kCodeExpected = 1;
constexpr uint64_t kFirstRankCode = 2;

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

void EncodeBlockInfo(const BlockInfo& info, ByteWriter& out) {
  out.Varint(info.events);
  out.SignedVarint(info.min_time_ns);
  out.SignedVarint(info.max_end_ns);
  for (uint32_t count : info.kind_counts) out.Varint(count);
  out.Varint(info.owners.size());
  uint32_t previous = 0;
  for (const BlockInfo::Owner& owner : info.owners) {
    const uint32_t slot = owner.thread.value + 1;  // none() is 0
    out.Varint(slot - previous);
    out.Varint(owner.events);
    previous = slot;
  }
}

bool DecodeBlockInfo(ByteReader& in, const IdLimits& limits, BlockInfo& info) {
  const uint64_t events = in.Varint();
  info.min_time_ns = in.SignedVarint();
  info.max_end_ns = in.SignedVarint();
  if (in.failed() || events == 0 || events > kMaxBlockEvents) return false;
  if (info.min_time_ns < -kMaxTimeNs || info.max_end_ns > kMaxTimeNs) return false;
  if (info.min_time_ns > info.max_end_ns) return false;
  info.events = static_cast<uint32_t>(events);
  uint64_t sum = 0;
  for (uint32_t& count : info.kind_counts) {
    count = static_cast<uint32_t>(std::min<uint64_t>(in.Varint(), kMaxBlockEvents + 1));
    sum += count;
  }
  if (sum != events) return false;
  const uint64_t owners = in.Varint();
  if (owners > events) return false;
  info.owners.clear();
  uint64_t slot = 0;
  sum = 0;
  for (uint64_t i = 0; i < owners; ++i) {
    const uint64_t step = in.Varint();
    const uint64_t count = in.Varint();
    if (in.failed() || step > UINT32_MAX || (step == 0 && i > 0) || count > events) return false;
    slot += step;
    sum += count;
    if (slot > limits.threads) return false;
    info.owners.push_back({.thread = slot == 0 ? ThreadId() : ThreadId(slot - 1),
                           .events = static_cast<uint32_t>(count)});
  }
  return !in.failed() && sum == events;
}

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

  void Begin(const BlockInfo& info);
  void Fill(const std::vector<Event>& events, const BlockInfo& info);
  void WriteRanks(uint8_t id, const RankTable& table, ByteWriter& out);
  void WriteFields(const BlockInfo& info, ByteWriter& out);
};

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
      const Row row = {ZigZag(static_cast<int64_t>(start)),
                       static_cast<uint64_t>(event.dur_ns),
                       stacks.Code(event.stack.value, expected.stack),
                       threads.Code(OtherOf(event).value, expected.other),
                       ZigZag(cpu_step),
                       ZigZag(is_call ? CallNumber(event.arg0) : event.arg0),
                       ZigZag(event.arg1),
                       is_call ? CallDetail(event.arg0) : 0};
      const uint32_t place = index[kind]++;
      for (size_t field = 0; field < kFields; ++field) {
        next[kind][field][place] = row[field];
        bits[kind][field] |= row[field];
      }
      kinds[i] = static_cast<char>(event.kind);
      flags[i] = static_cast<char>(event.flags);
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
      const std::span values(fields[kind][field].values.data(), info.kind_counts[kind]);
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
  WriteColumn(kFlagsColumn, flags_body.bytes(), writer);
  s.WriteRanks(kStackRanksColumn, s.stacks, writer);
  s.WriteRanks(kThreadRanksColumn, s.threads, writer);
  s.WriteFields(info, writer);
  out.append(writer.bytes());
}

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

  bool ReadDirectory(ByteReader& in);
  bool ReadRanks(uint8_t id, uint32_t limit, std::vector<uint32_t>& ids);
  bool ReadBytes(uint8_t id, std::string& plane);
  bool ReadColumns(const IdLimits& limits);
  bool ReadHead(std::string_view payload, const IdLimits& limits);
  bool Assemble(std::span<Event* const> to) const;
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

bool BlockDecoder::State::ReadBytes(uint8_t id, std::string& plane) {
  if (directory[id].empty()) {
    plane.assign(info.events, '\0');
    return true;
  }
  ByteReader in(directory[id]);
  return columns.Bytes(in, info.events, plane);
}

bool BlockDecoder::State::ReadColumns(const IdLimits& limits) {
  if (!ReadBytes(kKindsColumn, kinds) || !ReadBytes(kFlagsColumn, flags)) return false;
  std::array<uint32_t, 256> counts = {};
  for (char kind : kinds) ++counts[static_cast<uint8_t>(kind)];
  if (!std::equal(info.kind_counts.begin(), info.kind_counts.end(), counts.begin())) return false;
  if (!ReadRanks(kStackRanksColumn, limits.stacks, stacks)) return false;
  if (!ReadRanks(kThreadRanksColumn, limits.threads, threads)) return false;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      const std::string_view bytes = directory[FieldColumn(kind, field)];
      auto& values = fields[kind][field];
      values.clear();
      if (bytes.empty()) continue;
      ByteReader in(bytes);
      if (!columns.Column(in, info.kind_counts[kind], values)) return false;
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

bool BlockDecoder::State::Assemble(std::span<Event* const> to) const {
  std::array<std::array<Values, kFields>, kEventKinds> columns_of;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    for (size_t field = 0; field < kFields; ++field) {
      const auto& values = fields[kind][field];
      columns_of[kind][field] =
          values.empty() ? Values{&kZero, 0} : Values{values.data(), SIZE_MAX};
    }
  }
  std::array<uint32_t, kEventKinds> index = {};
  const char* kind_byte = kinds.data();
  const char* flag_byte = flags.data();
  const auto start = static_cast<uint64_t>(info.min_time_ns);
  const auto end = static_cast<uint64_t>(info.max_end_ns);
  bool bad = false;
  for (size_t o = 0; o < info.owners.size(); ++o) {
    const BlockInfo::Owner& owner = info.owners[o];
    Event* event = to[o];
    OwnerState expected(info.min_time_ns);
    for (uint32_t n = 0; n < owner.events; ++n, ++event) {
      const auto kind = static_cast<size_t>(*kind_byte++);
      const auto& field = columns_of[kind];
      const uint32_t i = index[kind]++;
      event->kind = static_cast<EventKind>(kind);
      event->flags = static_cast<uint8_t>(*flag_byte++);
      const uint64_t time =
          expected.ExpectedTime(event->kind) + static_cast<uint64_t>(UnZigZag(field[kStart][i]));
      const uint64_t dur = field[kDur][i];
      event->time_ns = static_cast<int64_t>(time);
      event->dur_ns = static_cast<int64_t>(dur);
      bad |= (time - start > end - start) | (dur > end - time);
      event->stack = StackId(IdOf(field[kStack][i], expected.stack, stacks, bad));
      const ThreadId other(IdOf(field[kOther][i], expected.other, threads, bad));
      const bool unwait = event->kind == EventKind::kUnwait;
      event->thread = unwait ? other : owner.thread;
      event->peer = unwait ? owner.thread : other;
      event->cpu = static_cast<uint16_t>(expected.cpu + UnZigZag(field[kCpu][i]));
      // What stands above the number of a call; files of version 1.0 have none, and
      // of other kinds it means nothing.
      const uint64_t above = event->kind == EventKind::kSyscall ? field[kDetail][i] << 32 : 0;
      event->arg0 = static_cast<int64_t>(static_cast<uint64_t>(UnZigZag(field[kArg0][i])) + above);
      event->arg1 = UnZigZag(field[kArg1][i]);
      expected.Advance(*event);
    }
  }
  return !bad;
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
