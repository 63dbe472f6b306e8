// SPDX-License-Identifier: Apache-2.0
#include "record/process_scan.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "record/machine.h"
#include "record/target.h"

namespace culprit::record::TEST_FILE {
namespace {

TEST(ProcessScan, ReadsExecutableMappingsOnly) {
  const auto map =
      ParseMapLine("7f0000001000-7f0000003000 r-xp 00002000 08:01 42    /usr/lib/a b.so");
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->start, 0x7f0000001000u);
  EXPECT_EQ(map->end, 0x7f0000003000u);
  EXPECT_EQ(map->file_offset, 0x2000u);
  EXPECT_EQ(map->path, "/usr/lib/a b.so");
  EXPECT_FALSE(ParseMapLine("7f0000001000-7f0000003000 rw-p 00002000 08:01 42 /x").has_value());
  EXPECT_EQ(ParseMapLine("1000-2000 r-xp 0 00:00 0")->path, "//anon");
  EXPECT_FALSE(
      ParseMapLine("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]"));
}

TEST(ProcessScan, NonsenseIsNoMapping) {
  for (const char* line : {"", "x", "1000 r-xp 0", "2000-1000 r-xp 0 0 0 /x", "1-z r-xp 0 0 0"}) {
    EXPECT_FALSE(ParseMapLine(line).has_value()) << line;
  }
}

TEST(ProcessScan, MappingsThatAreAskedForAreThoseOfTheList) {
  // Executable, of no file, and one of a file that is gone.
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* made = mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char path[] = "/tmp/culprit-code-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(3 * page)), 0);
  void* gone =
      mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, static_cast<off_t>(2 * page));
  close(fd);
  unlink(path);
  const std::vector<MapEntry> asked = ScanCode(getpid());
  const std::vector<MapEntry> listed = ReadCodeList(getpid());
  munmap(made, page);
  munmap(gone, page);
  EXPECT_EQ(asked, listed);
  EXPECT_GT(listed.size(), 4u);
  EXPECT_TRUE(ScanCode(1 << 30).empty());
}

TEST(ProcessScan, PrefersTheUnifiedCgroup) {
  EXPECT_EQ(ParseCgroup("5:cpu:/old\n0::/new/x\n"), "/new/x");
  EXPECT_EQ(ParseCgroup("5:cpu:/old\n0::/\n"), "/old");
  EXPECT_EQ(ParseCgroup(""), "/");
}

TEST(ProcessScan, FindsItself) {
  const auto self = ScanProcess(getpid(), true);
  ASSERT_TRUE(self.has_value());
  EXPECT_FALSE(self->is_kernel_thread);
  EXPECT_FALSE(self->name.empty());
  EXPECT_FALSE(self->maps.empty());
  ASSERT_FALSE(self->threads.empty());
  EXPECT_EQ(FindThread(self->threads.back().tid)->pid, getpid());
  const auto all = ListProcesses();
  EXPECT_TRUE(std::find(all.begin(), all.end(), getpid()) != all.end());
}

TEST(ProcessScan, AProcessThatIsNotThereIsNothing) {
  EXPECT_FALSE(ScanProcess(0x3fffffff, true).has_value());
  EXPECT_FALSE(FindThread(0x3fffffff).has_value());
  EXPECT_FALSE(FindProcesses({.pids = {0x3fffffff}}).ok());
  EXPECT_FALSE(FindProcesses({.cgroups = {"no/such/group"}}).ok());
}

TEST(ProcessScan, ANameFindsItsProcesses) {
  const auto self = ScanProcess(getpid(), false);
  const auto found = FindProcesses({.names = {self->name}});
  ASSERT_TRUE(found.ok());
  const auto& pids = found.value();
  EXPECT_TRUE(std::find(pids.begin(), pids.end(), getpid()) != pids.end());
}

TEST(Machine, AdjoiningInterruptEntriesAreOneRange) {
  const auto ranges = InterruptEntries(
      "ffff1000 T asm_sysvec_a\nffff1010 t asm_sysvec_b\nffff1030 T other\n"
      "ffff2000 t gic_handle_irq\nffff2080 t next\nffff3000 d el1h_64_irq\n",
      16);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].start, 0xffff2000u);
  EXPECT_EQ(ranges[0].end, 0xffff2080u);
  EXPECT_EQ(ranges[1].start, 0xffff1000u);
  EXPECT_EQ(ranges[1].end, 0xffff1030u);
  EXPECT_EQ(InterruptEntries("ffff1000 T asm_sysvec_a\nffff1010 t x\n", 0).size(), 0u);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
