// SPDX-License-Identifier: Apache-2.0
// Any bytes as a compressed buffer: never more comes out than is asked for.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "import/etl_xpress.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  constexpr size_t kWanted = 200'000;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string out;
  CULPRIT_CHECK(import_::UnpackXpress(bytes, kWanted, out) == (out.size() == kWanted));
  CULPRIT_CHECK(import_::UnpackXpressHuffman(bytes, kWanted, out) == (out.size() == kWanted));
  return 0;
}
