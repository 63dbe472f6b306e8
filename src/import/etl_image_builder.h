// SPDX-License-Identifier: Apache-2.0
//
// SmallEtlImage: a Windows image file written down for tests and as a seed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace culprit::import_ {

// An image of one section with two functions, 0x1100 to 0x1140, exported as
// "Open", and 0x1140 to 0x1180, and a debug id. An export of another image and
// one into the middle of a function name nothing.
inline std::string SmallEtlImage(uint16_t machine = 0x8664) {
  std::string section(0x400, '\0');
  const auto put = [&](size_t at, const std::string& bytes) {
    section.replace(at, bytes.size(), bytes);
  };
  const auto numbers = [](const std::vector<uint32_t>& values) {
    ByteWriter writer;
    for (const uint32_t value : values) writer.U32(value);
    return writer.Take();
  };
  // The export directory at 0x1200: three functions, three names.
  put(0x200, numbers({0, 0, 0, 0, 1, 3, 3, 0x1230, 0x1240, 0x1250}));
  put(0x230, numbers({0x1100, 0x1208, 0x1150}));
  put(0x240, numbers({0x1260, 0x1268, 0x1270}));
  put(0x250, std::string("\0\0\1\0\2\0", 6));
  put(0x260, "Open");
  put(0x268, "Away");
  put(0x270, "Middle");
  // The exception table at 0x1300, out of order.
  put(0x300, numbers({0x1140, 0x1180, 0, 0x1100, 0x1140, 0}));
  // The debug directory at 0x1340, its data at 0x1380.
  put(0x340, numbers({0, 0, 0, 2, 24, 0x1380, 0}));
  put(0x380, "RSDS" + numbers({0x51e29341, 0x156244ba, 0x1ba3a58b, 0xdce7dae2, 2}));
  ByteWriter out;
  out.Bytes("MZ" + std::string(58, '\0'));
  out.U32(64);
  out.Bytes(std::string("PE\0\0", 4));
  out.U16(machine);
  out.U16(1);
  out.Bytes(std::string(12, '\0'));
  out.U16(240);
  out.U16(0);
  out.U16(0x20b);
  out.Bytes(std::string(54, '\0'));
  out.U32(0x2000);
  out.Bytes(std::string(48, '\0'));
  out.U32(16);
  const std::map<int, std::pair<uint32_t, uint32_t>> directories = {
      {0, {0x1200, 40}}, {3, {0x1300, 24}}, {6, {0x1340, 28}}};
  for (int i = 0; i < 16; ++i) {
    const auto it = directories.find(i);
    out.U32(it == directories.end() ? 0 : it->second.first);
    out.U32(it == directories.end() ? 0 : it->second.second);
  }
  out.Bytes(".text" + std::string(3, '\0'));
  out.U32(0x400);
  out.U32(0x1000);
  out.U32(0x400);
  out.U32(0x200);
  out.Bytes(std::string(16, '\0'));
  std::string bytes = out.Take();
  bytes.resize(0x200);
  return bytes + section;
}

}  // namespace culprit::import_
