// SPDX-License-Identifier: Apache-2.0
//
// ScapBuilder: a .scap written down block by block, for tests and as seeds of
// the fuzz target: in either byte order, events in any of their layouts, process
// lists of any version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/scap_block.h"

namespace culprit::import_ {

class ScapBuilder {
 public:
  explicit ScapBuilder(bool big = false, uint32_t event_block = kScapEventV2)
      : big_(big), event_block_(event_block) {
    Block(kScapSection, U32(kScapMagic) + U16(1) + U16(2) + U64(~uint64_t{0}));
    std::string host = "host-a";
    host.resize(128);
    Block(kScapMachine, U32(4) + U64(1 << 30) + U64(32'768) + host + U64(0) + U64(0));
  }

  struct Who {
    int64_t time_ns = 0;
    int64_t tid = 0;
    uint16_t cpu = 0;
  };

  void Event(const Who& who, uint16_t type, const std::vector<std::string>& values = {}) {
    const bool large = event_block_ == kScapEventLarge || event_block_ == kScapEventFlagsLarge;
    const bool has_count = event_block_ != kScapEvent && event_block_ != kScapEventFlags;
    const bool has_flags = event_block_ == kScapEventFlags || event_block_ == kScapEventFlagsV2 ||
                           event_block_ == kScapEventFlagsLarge;
    std::string tail;
    for (const std::string& value : values) {
      tail += large ? U32(static_cast<uint32_t>(value.size()))
                    : U16(static_cast<uint16_t>(value.size()));
    }
    for (const std::string& value : values) tail += value;
    const size_t length = 8 + 8 + 4 + 2 + (has_count ? 4 : 0) + tail.size();
    std::string body = U16(who.cpu) + (has_flags ? U32(0) : "");
    body += U64(static_cast<uint64_t>(who.time_ns)) + U64(static_cast<uint64_t>(who.tid));
    body += U32(static_cast<uint32_t>(length)) + U16(type);
    if (has_count) body += U32(static_cast<uint32_t>(values.size()));
    Block(event_block_, body + tail);
  }
  void Switch(const Who& who, int64_t next) { Event(who, 152, {I64(next)}); }

  // One process list with one thread.
  void Process(int version, int64_t tid, int64_t pid, std::string_view name,
               std::string_view cgroups) {
    constexpr uint32_t kTypes[] = {0x202, 0x207, 0x209, 0x210, 0x211, 0x212, 0x213, 0x214, 0x215};
    std::string entry = I64(tid) + I64(pid) + I64(1);
    if (version >= 6) entry += I64(1);
    if (version >= 8) entry += I64(1);
    entry += Text(name) + Text("/bin/" + std::string(name));
    if (version >= 7) entry += Text("/usr/bin/" + std::string(name));
    entry += Text(std::string_view("-a\0-b\0", 6)) + Text("/");
    entry += U64(1024) + U32(0) + U32(0) + U32(0);
    if (version >= 2) entry += U32(1) + U32(1) + U32(0) + U64(0) + U64(0);
    if (version >= 3) entry += Text(std::string_view("HOME=/\0", 7));
    if (version >= 4) entry += I64(1) + I64(1) + Text(cgroups);
    if (version >= 5) entry += Text("/");
    if (version >= 9) {
      entry += U32(7) + "later fields";
      entry = U32(static_cast<uint32_t>(entry.size() + 4)) + entry;
    }
    Block(kTypes[version - 1], entry);
  }

  void Block(uint32_t type, std::string body) {
    while (body.size() % 4 != 0) body += '\0';
    const auto length = static_cast<uint32_t>(body.size() + 12);
    bytes_ += U32(type) + U32(length) + body + U32(length);
  }

  std::string U16(uint16_t value) const { return Number(value, 2); }
  std::string U32(uint32_t value) const { return Number(value, 4); }
  std::string U64(uint64_t value) const { return Number(value, 8); }
  std::string I64(int64_t value) const { return U64(static_cast<uint64_t>(value)); }
  std::string Text(std::string_view text) const {
    return U16(static_cast<uint16_t>(text.size())) + std::string(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string Number(uint64_t value, size_t size) const {
    std::string out;
    for (size_t i = 0; i < size; ++i) {
      const size_t shift = 8 * (big_ ? size - 1 - i : i);
      out.push_back(static_cast<char>(value >> shift));
    }
    return out;
  }

  bool big_;
  uint32_t event_block_;
  std::string bytes_;
};

// Two threads: a read that waits, a generic call, a birth, an exec, a switch of
// each kind, a container, an end.
inline std::string SmallScap(bool big, uint32_t event_block) {
  ScapBuilder scap(big, event_block);
  scap.Process(9, 10, 10, "app", std::string_view("cpu=/docker/abc\0pids=/\0", 23));
  scap.Process(4, 11, 10, "worker", {});
  scap.Event({900, -1, 0}, 272,
             {std::string(R"({"container":{"id":"abc","name":"web","image":"nginx"}})") + '\0'});
  scap.Event({1000, 10, 0}, 6, {scap.I64(3), scap.U32(100)});
  scap.Switch({1200, 10, 0}, 11);
  scap.Event({1300, 11, 0}, 0, {scap.U16(108), scap.U16(14)});
  scap.Event({1350, 11, 0}, 1, {scap.U16(108)});
  scap.Switch({1500, 11, 0}, 10);
  scap.Event({1700, 10, 0}, 7, {scap.I64(-11), "data"});
  scap.Event({1750, 10, 0}, 222);
  std::vector<std::string> child = {scap.I64(0),  std::string("/bin/app\0", 9),
                                    "",           scap.I64(12),
                                    scap.I64(12), scap.I64(10),
                                    "/",          scap.I64(0),
                                    scap.U64(0),  scap.U64(0),
                                    scap.U32(0),  scap.U32(0),
                                    scap.U32(0),  std::string("child\0", 6),
                                    "cpu=/x",     scap.U32(0),
                                    scap.U32(0),  scap.U32(0),
                                    scap.I64(1),  scap.I64(1)};
  scap.Event({1800, 12, 1}, 223, child);
  child[0] = scap.I64(5);  // as the container counts
  child[3] = scap.I64(10);
  scap.Event({1850, 10, 0}, 223, child);
  child.resize(16);
  child[0] = scap.I64(0);
  child[3] = child[4] = scap.I64(12);
  child[1] = std::string("/bin/ls\0", 8);
  child[2] = std::string("-l\0/tmp\0", 8);
  child[13] = std::string("ls\0", 3);
  scap.Event({1900, 12, 1}, 292);
  scap.Event({1950, 12, 1}, 293, child);
  scap.Event({1960, 12, 1}, 234, {scap.U64(1), scap.U64(2)});
  scap.Event({1970, 12, 1}, 9998, {"new"});
  scap.Event({1980, 12, 1}, 186, {scap.I64(0)});
  scap.Switch({1990, 12, 1}, 0);
  return scap.bytes();
}

}  // namespace culprit::import_
