// SPDX-License-Identifier: Apache-2.0
//
// CtfCompiler: from a CtfSchema to the programs that decode one stream class.
// Call PacketHeader, PacketContext and EventHeader once, in this order, then
// Event for each event class when it is first met. Registers of the first three
// keep their numbers for all events; those of an event are reused by the next.
// A class that cannot be decoded (a selector that does not exist, a description
// that explodes) gets a program that fails when that point is reached.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/ctf_program.h"
#include "import/ctf_schema.h"

namespace culprit::import_ {

// A field asked for by its name without the leading underscore that CTF 1.8
// tracers put before user-chosen names; several names may share a slot.
struct CtfWant {
  std::string_view name;
  uint16_t slot = 0;  // below kCtfWants
};

class CtfCompiler {
 public:
  CtfCompiler(const CtfSchema& schema, const CtfStreamClass& stream);

  CtfProgram PacketHeader();
  CtfProgram PacketContext();
  CtfProgram EventHeader();
  // `of_context` is looked for in both contexts, `of_payload` in the payload.
  CtfProgram Event(const CtfEventClass& event, std::span<const CtfWant> of_context,
                   std::span<const CtfWant> of_payload);
  // How many registers a machine needs for all programs made so far.
  size_t registers() const { return most_registers_; }

 private:
  static constexpr uint32_t kNoNode = UINT32_MAX;

  // A named field in the tree that references are looked up in.
  struct Node {
    std::string_view name;
    uint32_t parent = kNoNode;
    uint32_t field = kNoField;
    uint16_t reg = CtfOp::kNone;
  };
  // What is known about the position: offset modulo a power of two.
  struct Known {
    uint32_t modulus = 1;
    uint32_t offset = 0;
  };

  CtfProgram Begin(CtfScope scope, uint32_t field);
  CtfProgram Finished();
  void Scope(CtfScope scope, uint32_t field);
  void Field(uint32_t index, std::string_view name, uint32_t parent, int depth);
  void Integer(const CtfField& field, uint32_t index, std::string_view name, uint32_t parent);
  void Array(const CtfField& field, std::string_view name, uint32_t parent, int depth);
  void Block(const CtfField& field, const CtfField& element, uint16_t value, uint16_t counter);
  void Variant(const CtfField& field, std::string_view name, uint32_t parent, int depth);
  void Optional(const CtfField& field, std::string_view name, uint32_t parent, int depth);
  CtfRole RoleOf(const CtfField& field, std::string_view name) const;
  uint16_t WantOf(std::string_view name, uint32_t parent) const;
  const Node* Resolve(const CtfReference& reference, uint32_t parent) const;
  uint32_t Descend(uint32_t node, const std::vector<std::string>& path) const;
  uint32_t AddNode(std::string_view name, uint32_t parent, uint32_t field, uint16_t reg);
  uint16_t NewRegister();
  void Skip(uint64_t bits);
  void Align(uint32_t align);
  void Emit(const CtfOp& op);
  void Impossible();
  void Fence() { fence_ = program_.ops.size(); }
  void Move(uint64_t bits);
  static Known Join(Known a, Known b);

  const CtfSchema& schema_;
  const CtfStreamClass& stream_;
  std::set<std::string, std::less<>> referenced_;  // names that some reference ends in
  std::vector<Node> nodes_;
  std::array<uint32_t, kCtfScopes> roots_;
  std::span<const CtfWant> wants_;
  CtfProgram program_;
  CtfScope scope_ = CtfScope::kPayload;
  Known known_ = {};
  Known after_header_ = {};
  size_t fence_ = 0;  // operations before it may be jumped over
  size_t steps_ = 0;
  uint16_t next_register_ = 0;
  size_t most_registers_ = 0;
};

}  // namespace culprit::import_
