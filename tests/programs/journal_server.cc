// SPDX-License-Identifier: Apache-2.0
// A server with a journal. Each request looks something up under a lock; a second
// thread writes the journal to the disk now and then. With "held" it does so
// under the same lock, so that requests wait for the disk behind it; with "apart"
// it takes the lock only once the data is safe. The first operand names the file.
#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

constexpr int kRequests = 500;
constexpr int kParts = 12;  // of an entry of the journal, each made safe
constexpr size_t kBytes = size_t{1} << 20;
constexpr int64_t kWorkNs = 200'000;

std::mutex g_table;
uint64_t g_rows = 0;  // guarded by the lock
std::atomic<bool> g_done = false;
int g_requests[2];
int g_replies[2];

PLANTED void LookUpUnderTheLock() {
  const std::lock_guard<std::mutex> lock(g_table);
  ++g_rows;
}

PLANTED void Compute(int64_t cpu_ns) {
  const int64_t end_ns = programs::ThreadCpuNs() + cpu_ns;
  while (programs::ThreadCpuNs() < end_ns) {
  }
}

PLANTED bool AwaitRequest(char* request) { return read(g_requests[0], request, 1) == 1; }

PLANTED void ServeRequests() {
  char request = 0;
  while (AwaitRequest(&request)) {
    Compute(kWorkNs);
    LookUpUnderTheLock();
    if (write(g_replies[1], &request, 1) != 1) _exit(1);
  }
}

PLANTED void WriteToTheDisk(int file, const std::vector<char>& data) {
  for (int part = 0; part < kParts; ++part) {
    if (lseek(file, 0, SEEK_SET) < 0) _exit(1);
    if (write(file, data.data(), data.size()) != static_cast<ssize_t>(data.size())) _exit(1);
    if (fdatasync(file) != 0) _exit(1);
  }
}

PLANTED void WriteJournalUnderTheLock(int file, const std::vector<char>& data) {
  const std::lock_guard<std::mutex> lock(g_table);
  WriteToTheDisk(file, data);
  ++g_rows;
}

PLANTED void WriteJournalApart(int file, const std::vector<char>& data) {
  WriteToTheDisk(file, data);
  const std::lock_guard<std::mutex> lock(g_table);
  ++g_rows;
}

void KeepJournal(const char* path, bool held) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) _exit(1);
  std::vector<char> data(kBytes, 'j');
  for (char round = 0; !g_done; ++round) {
    data[0] = round;
    held ? WriteJournalUnderTheLock(file, data) : WriteJournalApart(file, data);
    programs::SleepMs(4);
  }
  close(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (pipe(g_requests) != 0 || pipe(g_replies) != 0) return 1;
  std::thread journal(&KeepJournal, argv[1], std::strcmp(argv[2], "held") == 0);
  std::thread server(&ServeRequests);
  int64_t slowest_ns = 0;
  for (int i = 0; i < kRequests; ++i) {
    programs::SleepMs(2);
    const int64_t from_ns = programs::NowNs();
    char byte = 'r';
    if (write(g_requests[1], &byte, 1) != 1 || read(g_replies[0], &byte, 1) != 1) return 1;
    const int64_t took_ns = programs::NowNs() - from_ns;
    if (took_ns > slowest_ns) slowest_ns = took_ns;
  }
  g_done = true;
  close(g_requests[1]);
  server.join();
  journal.join();
  programs::Tell(R"({"requests":%d,"slowest_ns":%ld})", kRequests, static_cast<long>(slowest_ns));
  return 0;
}
