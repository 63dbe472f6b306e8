// SPDX-License-Identifier: Apache-2.0
//
// What the encodings of all parts (collector.h) have in common: lists of strings,
// diagnostics, forests, rows, facts of traces; and counts that are held against the
// bytes that are left before anything is reserved. Reading past the end sets the
// reader's failed(), as ever; a caller asks once at the end. Those that give a bool
// give false for what cannot be.
//
// Columns, not records: numbers of one kind stand together, which zstd likes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/diagnostics.h"

namespace culprit::corpus {

// How many elements follow; each takes at least `bytes_each`. 0 where there
// cannot be as many, with the reader failed.
size_t ReadCount(ByteReader& reader, size_t bytes_each = 1);

void WriteStrings(const std::vector<std::string>& strings, ByteWriter& writer);
std::vector<std::string> ReadStrings(ByteReader& reader);
// Views into what is read.
std::vector<std::string_view> ReadViews(ByteReader& reader);

void WriteDiagnostics(const Diagnostics& diagnostics, ByteWriter& writer);
Diagnostics ReadDiagnostics(ByteReader& reader);

// Numbers that may be UINT32_MAX for "none" are written one higher, none as zero.
constexpr uint64_t OrNone(uint32_t number) {
  return number == UINT32_MAX ? 0 : uint64_t{number} + 1;
}

// The parents of the nodes of a forest, where a parent stands before its children:
// how far back, mostly one. `parent_of(n)` is UINT32_MAX for a root.
template <class ParentOf>
void WriteParents(size_t nodes, const ParentOf& parent_of, ByteWriter& writer) {
  for (size_t n = 0; n < nodes; ++n) {
    const uint32_t parent = parent_of(n);
    writer.Varint(parent == UINT32_MAX ? 0 : n - parent);
  }
}
// `take(n, parent)` for each.
template <class Take>
bool ReadParents(size_t nodes, const Take& take, ByteReader& reader) {
  for (size_t n = 0; n < nodes; ++n) {
    const uint64_t back = reader.Varint();
    if (back > n) return false;
    take(n, back == 0 ? UINT32_MAX : static_cast<uint32_t>(n - back));
  }
  return !reader.failed();
}

// Rows of ⟨node, events, cost_ns⟩.
template <class Rows>
void WriteRows(const Rows& rows, ByteWriter& writer) {
  writer.Varint(rows.size());
  int64_t last = 0;
  for (const auto& row : rows) {
    writer.SignedVarint(int64_t{row.node} - last);
    last = row.node;
  }
  for (const auto& row : rows) writer.Varint(row.events);
  for (const auto& row : rows) writer.SignedVarint(row.cost_ns);
}
template <class Rows>
bool ReadRows(size_t nodes, Rows& rows, ByteReader& reader) {
  rows.resize(ReadCount(reader, 3));
  const auto end = static_cast<int64_t>(nodes);
  int64_t last = 0;
  for (auto& row : rows) {
    const int64_t step = reader.SignedVarint();
    if (step > end || step < -end) return false;
    last += step;
    if (last < 0 || last >= end) return false;
    row.node = static_cast<uint32_t>(last);
  }
  for (auto& row : rows) {
    const uint64_t events = reader.Varint();
    if (events > UINT32_MAX) return false;
    row.events = static_cast<uint32_t>(events);
  }
  for (auto& row : rows) row.cost_ns = reader.SignedVarint();
  return !reader.failed();
}

// Facts of traces: ⟨name, automatic, events⟩.
template <class Traces>
void WriteTraces(const Traces& traces, ByteWriter& writer) {
  writer.Varint(traces.size());
  for (const auto& facts : traces) {
    writer.String(facts.name);
    writer.U8(facts.automatic ? 1 : 0);
    writer.Varint(facts.events);
  }
}
template <class Traces>
void ReadTraces(Traces& traces, ByteReader& reader) {
  traces.resize(ReadCount(reader, 3));
  for (auto& facts : traces) {
    facts.name = reader.String();
    facts.automatic = reader.U8() != 0;
    facts.events = reader.Varint();
  }
}

// Options of automatic instances: ⟨idle, not_idle, kernel_threads⟩, and of no others,
// so that one that is added cannot be forgotten.
template <class Automatic>
void WriteAutomatic(const Automatic& automatic, ByteWriter& writer) {
  const auto& [idle, not_idle, kernel_threads] = automatic;
  WriteStrings(idle, writer);
  WriteStrings(not_idle, writer);
  writer.U8(kernel_threads ? 1 : 0);
}
template <class Automatic>
void ReadAutomatic(Automatic& automatic, ByteReader& reader) {
  automatic.idle = ReadStrings(reader);
  automatic.not_idle = ReadStrings(reader);
  automatic.kernel_threads = reader.U8() != 0;
}

}  // namespace culprit::corpus
