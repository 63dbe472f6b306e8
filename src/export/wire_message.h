// SPDX-License-Identifier: Apache-2.0
//
// WireMessage: a protobuf message taken apart, for the tests of exporters.
// Independent of ProtoWriter: it reads by the wire format's rules alone and
// fails the test on bytes that break them. No part of the product uses it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace culprit::export_ {

class WireMessage {
 public:
  explicit WireMessage(std::string_view bytes) {
    ByteReader reader(bytes);
    while (reader.remaining() > 0 && !reader.failed()) {
      const uint64_t key = reader.Varint();
      EXPECT_TRUE((key & 7) == 0 || (key & 7) == 2) << "wire type " << (key & 7);
      if ((key & 7) == 0) {
        numbers_[key >> 3].push_back(reader.Varint());
      } else {
        texts_[key >> 3].emplace_back(reader.String());
      }
    }
    EXPECT_FALSE(reader.failed()) << "the message is cut";
  }

  bool Has(uint64_t field) const { return numbers_.contains(field) || texts_.contains(field); }
  uint64_t Number(uint64_t field) const {
    const auto it = numbers_.find(field);
    return it == numbers_.end() ? 0 : it->second.back();
  }
  std::vector<uint64_t> Numbers(uint64_t field) const {
    const auto it = numbers_.find(field);
    return it == numbers_.end() ? std::vector<uint64_t>() : it->second;
  }
  // A packed list.
  std::vector<uint64_t> Packed(uint64_t field) const {
    std::vector<uint64_t> values;
    const std::string bytes = Text(field);
    for (ByteReader reader(bytes); reader.remaining() > 0;) values.push_back(reader.Varint());
    return values;
  }
  std::string Text(uint64_t field) const {
    const auto it = texts_.find(field);
    return it == texts_.end() ? "" : it->second.back();
  }
  std::vector<std::string> Texts(uint64_t field) const {
    const auto it = texts_.find(field);
    return it == texts_.end() ? std::vector<std::string>() : it->second;
  }
  WireMessage Message(uint64_t field) const { return WireMessage(Text(field)); }
  std::vector<WireMessage> Messages(uint64_t field) const {
    std::vector<WireMessage> messages;
    for (const std::string& text : Texts(field)) messages.emplace_back(text);
    return messages;
  }

 private:
  std::map<uint64_t, std::vector<uint64_t>> numbers_;
  std::map<uint64_t, std::vector<std::string>> texts_;
};

}  // namespace culprit::export_
