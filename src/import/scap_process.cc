// SPDX-License-Identifier: Apache-2.0
#include "import/scap_process.h"

#include <algorithm>

#include "import/perf_data_layout.h"

namespace culprit::import_ {
namespace {

std::string_view String(FieldReader& reader) { return reader.Bytes(reader.U16()); }

// Fields in the order of the file, with the version that brought each.
ScapThread ReadThread(FieldReader& reader, int version) {
  ScapThread thread;
  thread.tid = static_cast<int64_t>(reader.U64());
  thread.pid = static_cast<int64_t>(reader.U64());
  thread.parent = static_cast<int64_t>(reader.U64());
  if (version >= 6) reader.Skip(8);  // session
  if (version >= 8) reader.Skip(8);  // process group
  thread.name = String(reader);
  thread.program = String(reader);
  if (version >= 7) (void)String(reader);  // path of the program
  thread.arguments = String(reader);
  (void)String(reader);                          // working directory
  reader.Skip(8 + 4 + 4 + 4);                    // file limit, flags, user, group
  if (version >= 2) reader.Skip(3 * 4 + 2 * 8);  // memory, page faults
  if (version >= 3) (void)String(reader);        // environment
  if (version >= 4) {
    reader.Skip(8 + 8);  // ids inside the container
    thread.cgroups = String(reader);
  }
  if (version >= 5) (void)String(reader);  // root
  return thread;
}

// The text of a NUL-ended list from `list`, which loses it.
std::string_view TakeItem(std::string_view& list) {
  const size_t end = std::min(list.find('\0'), list.size());
  const std::string_view item = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return item;
}

}  // namespace

bool ReadScapThreads(const ScapBlock& block, const std::function<void(const ScapThread&)>& use) {
  const int version = ScapProcessListVersion(block.type);
  std::string_view rest = block.body;
  // Less than a word is padding.
  while (rest.size() >= 4) {
    size_t length = rest.size();
    size_t begin = 0;
    if (version >= 9) {
      length = LoadInteger<uint32_t>(rest.data(), block.big);
      begin = 4;
      if (length < begin || length > rest.size()) return false;
    }
    FieldReader reader(rest.substr(begin, length - begin), block.big);
    const ScapThread thread = ReadThread(reader, version);
    if (reader.failed()) return false;
    use(thread);
    rest.remove_prefix(version >= 9 ? length : reader.position());
  }
  return true;
}

std::string ScapCommandLine(std::string_view program, std::string_view arguments) {
  std::string line(program);
  while (!arguments.empty()) {
    const std::string_view argument = TakeItem(arguments);
    line += line.empty() ? "" : " ";
    line += argument;
  }
  return line;
}

std::string_view ScapCgroup(std::string_view cgroups) {
  std::string_view longest;
  while (!cgroups.empty()) {
    const std::string_view item = TakeItem(cgroups);
    const std::string_view path = item.substr(std::min(item.find('=') + 1, item.size()));
    if (path.size() > longest.size()) longest = path;
  }
  return longest;
}

}  // namespace culprit::import_
