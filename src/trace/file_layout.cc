// SPDX-License-Identifier: Apache-2.0
#include "trace/file_layout.h"

#include <xxhash.h>

#include "base/bytes.h"

namespace culprit::trace {
namespace {

constexpr size_t kHashedHeadBytes = 12;  // tag and length

uint32_t HeadHash(std::string_view head) {
  return static_cast<uint32_t>(XXH3_64bits(head.data(), kHashedHeadBytes));
}

}  // namespace

uint64_t PayloadHash(std::string_view payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

std::string EncodeFileHead() {
  ByteWriter out;
  out.Bytes(kFileMagic);
  out.U16(kMajorVersion);
  out.U16(kMinorVersion);
  out.U32(0);
  return out.Take();
}

std::string EncodeSectionHead(std::string_view tag, std::string_view payload) {
  ByteWriter out;
  out.Bytes(tag);
  out.U64(payload.size());
  out.U32(HeadHash(out.bytes()));
  out.U64(PayloadHash(payload));
  return out.Take();
}

std::optional<SectionHead> DecodeSectionHead(std::string_view bytes) {
  if (bytes.size() < kSectionHeadBytes) return {};
  ByteReader in(bytes);
  SectionHead head;
  head.tag = std::string(in.Bytes(4));
  head.length = in.U64();
  if (in.U32() != HeadHash(bytes)) return {};
  head.hash = in.U64();
  return head;
}

}  // namespace culprit::trace
