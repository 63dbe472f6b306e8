// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_compiler.h"

#include <algorithm>
#include <utility>

namespace culprit::import_ {
namespace {

constexpr size_t kMaxOps = 16 * 1024;
constexpr size_t kMaxSteps = 8 * 1024;
constexpr uint32_t kMaxModulus = 4096;
constexpr uint64_t kMaxBits = uint64_t{1} << 48;
constexpr uint16_t kMaxRegisters = 32'000;

struct NamedRole {
  CtfScope scope;
  std::string_view name;
  CtfRole role;
};

constexpr NamedRole kNamedRoles[] = {
    {CtfScope::kPacketHeader, "magic", CtfRole::kMagic},
    {CtfScope::kPacketHeader, "stream_id", CtfRole::kStreamClassId},
    {CtfScope::kPacketHeader, "stream_instance_id", CtfRole::kStreamId},
    {CtfScope::kPacketContext, "timestamp_begin", CtfRole::kBegin},
    {CtfScope::kPacketContext, "timestamp_end", CtfRole::kEnd},
    {CtfScope::kPacketContext, "content_size", CtfRole::kContentSize},
    {CtfScope::kPacketContext, "packet_size", CtfRole::kPacketSize},
    {CtfScope::kPacketContext, "packet_seq_num", CtfRole::kSequence},
    {CtfScope::kPacketContext, "events_discarded", CtfRole::kDiscarded},
    {CtfScope::kPacketContext, "cpu_id", CtfRole::kCpu},
    {CtfScope::kEventHeader, "id", CtfRole::kEventId},
    {CtfScope::kEventHeader, "timestamp", CtfRole::kTimestamp},
};

// Bits from one element to the next where elements follow without gaps; else 0.
uint32_t Stride(const CtfField& element) {
  const bool plain = element.kind == CtfKind::kInteger || element.kind == CtfKind::kSkipped;
  return plain && !element.reversed && element.bits % element.align == 0 ? element.bits : 0;
}

}  // namespace

CtfCompiler::CtfCompiler(const CtfSchema& schema, const CtfStreamClass& stream)
    : schema_(schema), stream_(stream) {
  for (const CtfField& field : schema.fields) {
    if (!field.reference.path.empty()) referenced_.insert(field.reference.path.back());
  }
  roots_.fill(kNoNode);
}

CtfProgram CtfCompiler::Begin(CtfScope scope, uint32_t field) {
  program_ = {};
  fence_ = 0;
  steps_ = 0;
  Scope(scope, field);
  return Finished();
}

// A program that ran out of room has jumps that lead nowhere.
CtfProgram CtfCompiler::Finished() {
  if (program_.ops.size() + 8 > kMaxOps) program_.ops = {{.kind = CtfOp::Kind::kImpossible}};
  return std::move(program_);
}

CtfProgram CtfCompiler::PacketHeader() {
  known_ = {kMaxModulus, 0};
  return Begin(CtfScope::kPacketHeader, schema_.packet_header);
}

CtfProgram CtfCompiler::PacketContext() {
  return Begin(CtfScope::kPacketContext, stream_.packet_context);
}

CtfProgram CtfCompiler::EventHeader() {
  known_ = {};
  CtfProgram program = Begin(CtfScope::kEventHeader, stream_.event_header);
  after_header_ = known_;
  return program;
}

CtfProgram CtfCompiler::Event(const CtfEventClass& event, std::span<const CtfWant> of_context,
                              std::span<const CtfWant> of_payload) {
  const size_t nodes = nodes_.size();
  const uint16_t registers = next_register_;
  program_ = {};
  fence_ = 0;
  steps_ = 0;
  known_ = after_header_;
  wants_ = of_context;
  Scope(CtfScope::kCommonContext, stream_.event_context);
  Scope(CtfScope::kEventContext, event.context);
  wants_ = of_payload;
  Scope(CtfScope::kPayload, event.payload);
  wants_ = {};
  for (const CtfScope scope :
       {CtfScope::kCommonContext, CtfScope::kEventContext, CtfScope::kPayload}) {
    roots_[static_cast<size_t>(scope)] = kNoNode;
  }
  nodes_.resize(nodes);
  next_register_ = registers;
  return Finished();
}

void CtfCompiler::Scope(CtfScope scope, uint32_t field) {
  if (field == kNoField) return;
  scope_ = scope;
  roots_[static_cast<size_t>(scope)] = static_cast<uint32_t>(nodes_.size());
  Field(field, {}, kNoNode, 0);
}

void CtfCompiler::Emit(const CtfOp& op) {
  if (program_.ops.size() < kMaxOps) program_.ops.push_back(op);
}

void CtfCompiler::Impossible() { Emit({.kind = CtfOp::Kind::kImpossible}); }

void CtfCompiler::Move(uint64_t bits) {
  known_.offset = static_cast<uint32_t>((known_.offset + bits) % known_.modulus);
}

void CtfCompiler::Skip(uint64_t bits) {
  Move(bits);
  if (bits == 0) return;
  if (program_.ops.size() > fence_ && program_.ops.back().kind == CtfOp::Kind::kSkip &&
      program_.ops.back().count < kMaxBits) {
    program_.ops.back().count += bits;
  } else {
    Emit({.kind = CtfOp::Kind::kSkip, .count = bits});
  }
}

void CtfCompiler::Align(uint32_t align) {
  if (align <= 1) return;
  if (align <= known_.modulus) {
    const uint32_t over = known_.offset % align;
    if (over != 0) Skip(align - over);
    return;
  }
  Emit({.kind = CtfOp::Kind::kAlign, .count = align});
  known_ = {std::min(align, kMaxModulus), 0};
}

CtfCompiler::Known CtfCompiler::Join(Known a, Known b) {
  uint32_t modulus = std::min(a.modulus, b.modulus);
  while (modulus > 1 && a.offset % modulus != b.offset % modulus) modulus /= 2;
  return {modulus, a.offset % modulus};
}

uint32_t CtfCompiler::AddNode(std::string_view name, uint32_t parent, uint32_t field,
                              uint16_t reg) {
  nodes_.push_back({name, parent, field, reg});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

uint16_t CtfCompiler::NewRegister() {
  if (next_register_ >= kMaxRegisters) {
    Impossible();
    return 0;
  }
  most_registers_ = std::max<size_t>(most_registers_, next_register_ + size_t{1});
  return next_register_++;
}

CtfRole CtfCompiler::RoleOf(const CtfField& field, std::string_view name) const {
  if (scope_ > CtfScope::kEventHeader) return CtfRole::kNone;
  if (field.role == CtfRole::kTimestamp && scope_ == CtfScope::kPacketContext) {
    return CtfRole::kBegin;
  }
  if (field.role != CtfRole::kNone) return field.role;
  for (const NamedRole& named : kNamedRoles) {
    if (named.scope == scope_ && named.name == name) return named.role;
  }
  return CtfRole::kNone;
}

uint16_t CtfCompiler::WantOf(std::string_view name, uint32_t parent) const {
  if (wants_.empty() || parent == kNoNode || parent != roots_[static_cast<size_t>(scope_)]) {
    return CtfOp::kNone;
  }
  const bool marked = schema_.major == 1 && name.starts_with('_');
  const std::string_view plain = name.substr(marked ? 1 : 0);
  for (const CtfWant& want : wants_) {
    if (want.name == plain) return static_cast<uint16_t>(kCtfRoles + want.slot);
  }
  return CtfOp::kNone;
}

uint32_t CtfCompiler::Descend(uint32_t node, const std::vector<std::string>& path) const {
  for (const std::string& step : path) {
    uint32_t child = static_cast<uint32_t>(nodes_.size());
    while (child-- > 0) {
      if (nodes_[child].parent == node && nodes_[child].name == step) break;
    }
    if (child == UINT32_MAX) return kNoNode;
    node = child;
  }
  return node;
}

const CtfCompiler::Node* CtfCompiler::Resolve(const CtfReference& reference,
                                              uint32_t parent) const {
  uint32_t found = kNoNode;
  if (reference.path.empty()) return nullptr;
  if (reference.origin != CtfScope::kSearch) {
    const uint32_t root = roots_[static_cast<size_t>(reference.origin)];
    if (root != kNoNode) found = Descend(root, reference.path);
  } else {
    for (uint32_t from = parent; from != kNoNode && found == kNoNode; from = nodes_[from].parent) {
      found = Descend(from, reference.path);
    }
    for (size_t scope = kCtfScopes; scope-- > 0 && found == kNoNode;) {
      if (roots_[scope] != kNoNode) found = Descend(roots_[scope], reference.path);
    }
  }
  if (found == kNoNode || nodes_[found].reg == CtfOp::kNone) return nullptr;
  return &nodes_[found];
}

void CtfCompiler::Field(uint32_t index, std::string_view name, uint32_t parent, int depth) {
  if (++steps_ > kMaxSteps || depth > kMaxCtfDepth || program_.ops.size() + 8 > kMaxOps) {
    return Impossible();
  }
  const CtfField& field = schema_.fields[index];
  switch (field.kind) {
    case CtfKind::kInteger:
    case CtfKind::kVarint:
      return Integer(field, index, name, parent);
    case CtfKind::kSkipped:
      Align(field.align);
      return Skip(field.bits);
    case CtfKind::kString:
      Align(8);
      Emit({.kind = CtfOp::Kind::kString, .value = WantOf(name, parent)});
      known_ = {8, 0};
      return;
    case CtfKind::kStruct: {
      Align(field.align);
      const uint32_t node = AddNode(name, parent, index, CtfOp::kNone);
      for (const CtfMember& member : field.members) {
        Field(member.field, member.name, node, depth + 1);
      }
      return;
    }
    case CtfKind::kArray:
      return Array(field, name, parent, depth);
    case CtfKind::kVariant:
      return Variant(field, name, parent, depth);
    case CtfKind::kOptional:
      return Optional(field, name, parent, depth);
  }
}

void CtfCompiler::Integer(const CtfField& field, uint32_t index, std::string_view name,
                          uint32_t parent) {
  if (field.reversed) return Impossible();
  Align(field.align);
  const CtfRole role = RoleOf(field, name);
  CtfOp op = {.kind =
                  field.kind == CtfKind::kVarint ? CtfOp::Kind::kVarint : CtfOp::Kind::kInteger};
  op.is_signed = field.is_signed;
  op.big_endian = field.order == CtfOrder::kBig;
  op.is_time = scope_ == CtfScope::kEventHeader && (field.has_clock || role == CtfRole::kTimestamp);
  op.bits = field.bits;
  op.value = role != CtfRole::kNone ? static_cast<uint16_t>(role) : WantOf(name, parent);
  if (referenced_.contains(name)) {
    op.save = NewRegister();
    AddNode(name, parent, index, op.save);
  }
  const bool kept = op.is_time || op.value != CtfOp::kNone || op.save != CtfOp::kNone;
  if (field.kind == CtfKind::kVarint) {
    Emit(op);
    known_ = {8, 0};
  } else if (kept) {
    Emit(op);
    Move(op.bits);
  } else {
    Skip(op.bits);
  }
}

void CtfCompiler::Array(const CtfField& field, std::string_view name, uint32_t parent, int depth) {
  uint16_t counter = CtfOp::kNone;
  if (field.dynamic) {
    const Node* length = Resolve(field.reference, parent);
    if (length == nullptr) return Impossible();
    counter = length->reg;
  }
  Align(field.align);
  const CtfField& element = schema_.fields[field.element];
  if (Stride(element) != 0) return Block(field, element, WantOf(name, parent), counter);
  const size_t loop = program_.ops.size();
  Emit({.kind = CtfOp::Kind::kLoop, .counter = counter, .count = field.length});
  Fence();
  known_ = {};
  const uint32_t node = AddNode(name, parent, kNoField, CtfOp::kNone);
  Field(field.element, {}, node, depth + 1);
  if (loop < program_.ops.size()) {
    program_.ops[loop].target = static_cast<uint32_t>(program_.ops.size());
  }
  Fence();
  known_ = {};
}

void CtfCompiler::Block(const CtfField& field, const CtfField& element, uint16_t value,
                        uint16_t counter) {
  const bool kept = value != CtfOp::kNone && element.bits % 8 == 0 && element.bits <= 64;
  if (!field.dynamic && field.length > kMaxBits / element.bits) return Impossible();
  if (!field.dynamic && !kept) return Skip(field.length * element.bits);
  Emit({.kind = CtfOp::Kind::kBlock,
        .big_endian = element.order == CtfOrder::kBig,
        .value = kept ? value : CtfOp::kNone,
        .counter = counter,
        .bits = element.bits,
        .count = field.length});
  if (field.dynamic) {
    const uint32_t step = element.bits & (0 - element.bits);
    const uint32_t modulus = std::min(known_.modulus, step);
    known_ = {modulus, known_.offset % modulus};
  } else {
    Move(field.length * element.bits);
  }
}

void CtfCompiler::Variant(const CtfField& field, std::string_view name, uint32_t parent,
                          int depth) {
  const Node* selector = Resolve(field.reference, parent);
  if (selector == nullptr) return Impossible();
  const CtfField& tag = schema_.fields[selector->field];
  const size_t at = program_.ops.size();
  Emit({.kind = CtfOp::Kind::kSwitch,
        .is_signed = tag.is_signed,
        .counter = selector->reg,
        .target = CtfProgram::kFail});
  const uint32_t node = AddNode(name, parent, kNoField, CtfOp::kNone);
  const Known before = known_;
  std::vector<CtfCase> cases;
  std::vector<size_t> jumps;
  Known after = {kMaxModulus, 0};
  bool first = true;
  for (const CtfMember& option : field.members) {
    const auto target = static_cast<uint32_t>(program_.ops.size());
    for (const CtfRange& range : option.ranges) cases.push_back({range, target});
    for (const CtfLabel& label : tag.labels) {
      if (option.ranges.empty() && label.name == option.name) {
        cases.push_back({label.range, target});
      }
    }
    known_ = before;
    Fence();
    Field(option.field, option.name, node, depth + 1);
    jumps.push_back(program_.ops.size());
    Emit({.kind = CtfOp::Kind::kJump});
    after = first ? known_ : Join(after, known_);
    first = false;
  }
  if (program_.ops.size() >= kMaxOps) return;
  for (const size_t jump : jumps) {
    program_.ops[jump].target = static_cast<uint32_t>(program_.ops.size());
  }
  program_.ops[at].count = (uint64_t{cases.size()} << 32) | program_.cases.size();
  program_.cases.insert(program_.cases.end(), cases.begin(), cases.end());
  Fence();
  known_ = first ? before : after;
}

void CtfCompiler::Optional(const CtfField& field, std::string_view name, uint32_t parent,
                           int depth) {
  const Node* selector = Resolve(field.reference, parent);
  if (selector == nullptr) return Impossible();
  const bool is_signed = schema_.fields[selector->field].is_signed;
  const size_t at = program_.ops.size();
  std::vector<CtfRange> ranges = field.ranges;
  if (ranges.empty() && is_signed) ranges = {{INT64_MIN, -1}, {1, INT64_MAX}};
  if (ranges.empty()) ranges = {{1, -1}};  // as unsigned: all but zero
  CtfOp op = {.kind = CtfOp::Kind::kSwitch, .is_signed = is_signed, .counter = selector->reg};
  op.count = (uint64_t{ranges.size()} << 32) | program_.cases.size();
  for (const CtfRange& range : ranges) {
    program_.cases.push_back({range, static_cast<uint32_t>(at + 1)});
  }
  Emit(op);
  Fence();
  const Known before = known_;
  Field(field.element, name, parent, depth + 1);
  if (at < program_.ops.size()) {
    program_.ops[at].target = static_cast<uint32_t>(program_.ops.size());
  }
  Fence();
  known_ = Join(before, known_);
}

}  // namespace culprit::import_
