// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_attr.h"

#include <bit>

namespace culprit::import_ {
namespace {

enum AttrFlag : unsigned {
  kFlagFreq = 10,
  kFlagTask = 13,
  kFlagSampleIdAll = 18,
  kFlagUseClockId = 25,
  kFlagContextSwitch = 26,
};

size_t Fields(uint64_t sample_type, uint64_t mask) {
  return static_cast<size_t>(std::popcount(sample_type & mask)) * 8;
}

}  // namespace

PerfAttr ParsePerfAttr(std::string_view bytes, bool big) {
  // A struct of an older kernel is shorter: what it lacks is zero.
  std::string whole(bytes.substr(0, 136));
  whole.resize(136, '\0');
  FieldReader in(whole, big);
  PerfAttr attr;
  attr.type = in.U32();
  in.Skip(4);
  attr.config = in.U64();
  attr.period_or_freq = in.U64();
  attr.sample_type = in.U64();
  attr.read_format = in.U64();
  const uint64_t flags = in.U64();
  // Bit fields are laid out from the other end on big-endian machines.
  const auto flag = [&](unsigned bit) { return (flags >> (big ? 63 - bit : bit) & 1) != 0; };
  attr.is_freq = flag(kFlagFreq);
  attr.has_tasks = flag(kFlagTask);
  attr.sample_id_all = flag(kFlagSampleIdAll);
  attr.use_clock_id = flag(kFlagUseClockId);
  attr.context_switch = flag(kFlagContextSwitch);
  in.Skip(24);
  attr.branch_sample_type = in.U64();
  attr.user_register_mask = in.U64();
  in.Skip(4);
  attr.clock_id = in.I32();
  attr.interrupt_registers = static_cast<uint32_t>(std::popcount(in.U64()));
  in.Skip(4);
  attr.max_stack = in.U16();
  return attr;
}

void PerfAttrs::Add(PerfAttr attr, const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) AddId(id, attrs_.size());
  attrs_.push_back(std::move(attr));
}

size_t PerfAttrs::ById(uint64_t id) const {
  const size_t* index = by_id_.Find(id);
  return index == nullptr || *index >= attrs_.size() ? 0 : *index;
}

// The id's place is the same in all attrs of a recording; only then could the
// recorder itself tell them apart.
size_t PerfAttrs::OfSample(std::string_view body, bool big) const {
  if (attrs_.size() == 1) return 0;
  const uint64_t type = attrs_.front().sample_type;
  size_t place = 0;
  if ((type & kSampleIdentifier) == 0) {
    if ((type & kSampleId) == 0) return 0;
    place = Fields(type, kSampleIp | kSampleTid | kSampleTime | kSampleAddr);
  }
  if (body.size() < place + 8) return 0;
  return ById(LoadInteger<uint64_t>(body.data() + place, big));
}

size_t PerfAttrs::OfRecord(std::string_view body, bool big) const {
  const uint64_t type = attrs_.front().sample_type;
  if (attrs_.size() == 1 || !attrs_.front().sample_id_all) return 0;
  size_t from_end = 8;
  if ((type & kSampleIdentifier) == 0) {
    if ((type & kSampleId) == 0) return 0;
    from_end = 8 + Fields(type, kSampleStreamId | kSampleCpu);
  }
  if (body.size() < from_end) return 0;
  return ById(LoadInteger<uint64_t>(body.data() + body.size() - from_end, big));
}

}  // namespace culprit::import_
