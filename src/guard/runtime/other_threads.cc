// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/other_threads.h"

#include <algorithm>
#include <cstring>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {
namespace {

struct DirectoryRecord {
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t type;
};
constexpr size_t kNameOffset = 19;
constexpr uint64_t kSystemCallBytes = 2;  // on x86-64, which alone asks

uint32_t ThreadNumber(const char* text) {
  uint32_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    number = number * 10 + static_cast<uint32_t>(*text - '0');
  }
  return *text == 0 ? number : 0;
}

// The text of a small file; empty: not readable.
size_t ReadSmall(int folder, const char* thread, const char* name, char (&text)[512]) {
  char path[64] = {};
  size_t size = 0;
  for (const char* part : {thread, "/", name}) {
    for (; *part != 0 && size + 1 < sizeof(path); ++part) path[size++] = *part;
  }
  const int fd = RawOpenAt(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const long bytes = RawPread(fd, text, sizeof(text) - 1, 0);
  RawClose(fd);
  text[bytes > 0 ? bytes : 0] = 0;
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

bool IsTraced(int folder, const char* thread) {
  char text[512];
  if (ReadSmall(folder, thread, "stat", text) == 0) return false;
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 't';
}

// The last number of /proc/TID/syscall: "running" has none.
bool ProgramCounter(int folder, const char* thread, uint64_t& counter) {
  char text[512];
  if (ReadSmall(folder, thread, "syscall", text) == 0) return false;
  const char* last = std::strrchr(text, ' ');
  if (last == nullptr || last[1] != '0' || last[2] != 'x') return false;
  counter = 0;
  for (const char* digit = last + 3; *digit != 0 && *digit != '\n'; ++digit) {
    const int value = *digit <= '9' ? *digit - '0' : *digit - 'a' + 10;
    counter = counter << 4 | static_cast<uint64_t>(value & 15);
  }
  return true;
}

// What culprit says of the threads that it holds.
class HeldThreads {
 public:
  HeldThreads() {
    const auto pid = static_cast<uint64_t>(RawGetPid());
    threads_ = reinterpret_cast<const wire::HeldThread*>(
        ReadWhole(FileName("held.").Add(pid).text(), kMostBytes, bytes_));
  }
  ~HeldThreads() {
    if (threads_ != nullptr) RawUnmap(const_cast<wire::HeldThread*>(threads_), bytes_);
  }
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;

  bool Find(uint32_t thread, uint64_t& counter) const {
    if (threads_ == nullptr) return false;
    const wire::HeldThread* end = threads_ + bytes_ / sizeof(wire::HeldThread);
    const wire::HeldThread* at = std::find_if(
        threads_, end, [thread](const wire::HeldThread& held) { return held.tid == thread; });
    if (at == end) return false;
    counter = at->program_counter;
    return true;
  }

 private:
  static constexpr size_t kMostBytes = 16 << 20;
  const wire::HeldThread* threads_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

bool OtherThreads::AnyWithin(uint64_t begin, uint64_t end) const {
  const uint64_t* at = std::upper_bound(program_counters.begin(), program_counters.end(), begin);
  return at != program_counters.end() && *at < end;
}

OtherThreads LookAtOtherThreads() {
  OtherThreads threads;
  const int folder = RawOpenAt(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return threads;
  const auto self = static_cast<uint32_t>(RawGetTid());
  const HeldThreads held;
  bool all_known = true, any = false;
  alignas(8) char block[2048];
  long bytes = 0;
  while (all_known &&
         (bytes = RawSyscall(SYS_getdents64, folder, Word(block), sizeof(block))) > 0) {
    for (long offset = 0; all_known && offset < bytes;) {
      DirectoryRecord record;
      std::memcpy(&record, block + offset, sizeof(record));
      const char* name = block + offset + kNameOffset;
      offset += record.bytes;
      const uint32_t thread = ThreadNumber(name);
      if (thread == 0 || thread == self) continue;
      any = true;
      uint64_t counter = 0;
      // A thread in a system call may make it anew.
      all_known = IsTraced(folder, name) &&
                  (held.Find(thread, counter) || ProgramCounter(folder, name, counter)) &&
                  threads.program_counters.Append(counter) &&
                  threads.program_counters.Append(counter - kSystemCallBytes);
    }
  }
  RawClose(folder);
  if (!all_known || bytes < 0) return threads;
  threads.state = any ? OtherThreads::State::kStopped : OtherThreads::State::kNone;
  std::sort(threads.program_counters.begin(), threads.program_counters.end());
  return threads;
}

}  // namespace culprit::guard::runtime
