// SPDX-License-Identifier: Apache-2.0
// Any bytes as sealed bytes, as they are and with a right hash behind them, so that
// what is inside is reached.
#include <xxhash.h>

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "corpus/sealed_bytes.h"

namespace {

void Read(const std::string& bytes) {
  const auto payload = culprit::corpus::Unseal("k", "i", bytes);
  if (!payload) return;
  CULPRIT_CHECK(culprit::corpus::IsSealed("k", "i", bytes));
  const std::string again = culprit::corpus::Seal("k", "i", *payload);
  CULPRIT_CHECK(culprit::corpus::Unseal("k", "i", again) == *payload);
}

std::string WithHash(const std::string& bytes) {
  culprit::ByteWriter out;
  out.Bytes(bytes);
  out.U64(XXH3_64bits(bytes.data(), bytes.size()));
  return out.Take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  Read(WithHash(bytes));
  // Behind the right magic, version, kind and id: a size and a frame.
  static const std::string head = culprit::corpus::Seal("k", "i", "").substr(0, 14);
  Read(WithHash(head + bytes));
  return 0;
}
