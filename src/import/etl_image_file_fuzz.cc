// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Windows image: nothing may crash or read past the end.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/etl_image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const auto file =
      import_::EtlImageFile::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!file) return 0;
  for (uint64_t offset = 0; offset < 0x4000; offset += 0x10) {
    const auto function = file->Find(offset);
    if (function) CULPRIT_CHECK(function->start <= offset);
  }
  return 0;
}
