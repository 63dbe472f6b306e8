// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packed summary, with a table beside it, and any bytes behind a list of
// names as a payload, which must come back as it was.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "corpus/part_codec.h"
#include "corpus/summary_names.h"

namespace {

using culprit::corpus::SummaryNames;

std::string Names(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("name " + std::to_string(i));
  culprit::ByteWriter out;
  culprit::corpus::WriteStrings(names, out);
  return out.Take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = (std::filesystem::temp_directory_path() /
                                     ("culprit-names-fuzz-" + std::to_string(::getpid())))
                                        .string();
  static SummaryNames names(folder);
  static const std::string table = names.Pack(Names(32)).substr(0, 33);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)names.Unpack(bytes);
  (void)names.Unpack(table + bytes);
  const std::string payload = Names(size % 40) + bytes;
  CULPRIT_CHECK(names.Unpack(names.Pack(payload)) == payload);
  return 0;
}
