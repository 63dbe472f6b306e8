// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "import/strace_line.h"
#include "trace/syscall_operation.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::EventKind;

ImportedTrace FromText(const std::string& text) {
  return ImportTrace(StraceImporter(), MemorySource("t", text));
}

std::vector<trace::Event> Calls(const ImportedTrace& imported) {
  std::vector<trace::Event> calls;
  for (const trace::Event& event : imported.trace.events) {
    if (event.kind == EventKind::kSyscall) calls.push_back(event);
  }
  return calls;
}

TEST(Strace, ReadsResults) {
  const auto result = [](std::string_view line) { return ParseStraceLine(line)->result; };
  EXPECT_EQ(result("read(3, \") = 7\", 832) = 832 <0.000366>"), 832);
  EXPECT_EQ(result("brk(NULL)                 = 0x558e238c5000"), 0x558e238c5000);
  EXPECT_EQ(result("access(\"/x\", R_OK) = -1 ENOENT (No such file or directory)"), -2);
  EXPECT_EQ(result("openat(AT_FDCWD, \"/etc\", O_RDONLY) = 3</etc> <0.1>"), 3);
  EXPECT_EQ(result("poll([{fd=3}], 1, 5) = 1 ([{fd=3, revents=POLLIN}])"), 1);
  EXPECT_EQ(result("exit_group(0)                      = ?"), std::nullopt);
  EXPECT_EQ(result("wait4(-1, 0, 0, NULL) = ? ERESTARTSYS (To be restarted)"), -512);
  EXPECT_FALSE(ParseStraceLine("hello world"));
  EXPECT_FALSE(ParseStraceLine("main() returned"));
}

TEST(Strace, TakesArgumentsApart) {
  const std::string_view arguments =
      "7, EPOLL_CTL_ADD, 9, {events=EPOLLIN|EPOLLET, data={u32=9, u64=9}}) = 0 <0.000010>";
  EXPECT_EQ(StraceArgument(arguments, 0), "7");
  EXPECT_EQ(StraceArgument(arguments, 1), "EPOLL_CTL_ADD");
  EXPECT_EQ(StraceArgument(arguments, 3), "{events=EPOLLIN|EPOLLET, data={u32=9, u64=9}}");
  EXPECT_EQ(StraceArgument(arguments, 4), "");
  EXPECT_EQ(StraceArgument("3, \"a, \\\", b\", 8) = 8", 2), "8");
  EXPECT_EQ(StraceArgument("0xffff, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>", 3), "NULL");
  EXPECT_EQ(StraceArgument("", 0), "");
  EXPECT_EQ(StraceArgument("3, \"never ended", 1), "");
}

TEST(Strace, CallsHaveTheirOperation) {
  const ImportedTrace imported = FromText(
      "7 1.000000 futex(0xaaaaf0, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000005>\n"
      "7 2.000000 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0 <0.000005>\n"
      "7 3.000000 ioctl(3, FIONBIO, [1]) = 0 <0.000005>\n"
      "7 4.000000 read(3, \"x\", 1) = 1 <0.000005>\n"
      "7 5.000000 futex(0xaaaaf0, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, "
      "FUTEX_BITSET_MATCH_ANY <unfinished ...>\n"
      "8 5.500000 ioctl(4, _IOC(_IOC_NONE, 0x94, 0x9, 0), 0) = 0 <0.000005>\n"
      "7 6.000000 <... futex resumed>) = 0 <1.000000>\n");
  const auto number = [](std::string_view name) {
    return trace::SyscallNumber(name, trace::SyscallAbi::kArm64);
  };
  std::vector<int64_t> calls;
  for (const trace::Event& event : Calls(imported)) calls.push_back(event.arg0);
  EXPECT_EQ(calls, (std::vector<int64_t>{trace::PackCall(number("futex"), 1),
                                         trace::PackCall(number("fcntl"), 4),
                                         trace::PackCall(number("ioctl"), 0x5421), number("read"),
                                         trace::PackCall(number("futex"), 9), number("ioctl")}));
}

TEST(Strace, ReadsNamesOfThreadsAddressesAndNumbers) {
  for (const std::string_view line :
       {"1403<my app> 09:03:15.965810 brk(NULL)      = 0xaaaafd885000 <0.000007>",
        "[pid  1403<my app>] 09:03:15.965810 brk(NULL) = 0xaaaafd885000 <0.000007>",
        "1403  09:03:15.965810 [0000ffff93e225cc] brk(NULL) = 0xaaaafd885000 <0.000007>",
        "1403  09:03:15.965810 [ 214] brk(NULL)  = 0xaaaafd885000 <0.000007>",
        "1403<x> 09:03:15.965810 [ 214] [0000ffff93e225cc] brk(NULL) = 0xaaaafd885000 <0.000007>",
        "1403  09:03:15.965810 [????????????????] brk(NULL) = 0xaaaafd885000 <0.000007>"}) {
    const auto parsed = ParseStraceLine(line);
    ASSERT_TRUE(parsed) << line;
    EXPECT_EQ(parsed->tid, 1403) << line;
    EXPECT_EQ(parsed->name, "brk") << line;
    EXPECT_EQ(parsed->dur_ns, 7000) << line;
  }
  for (const std::string_view line : {"1403<my", "1403<", "[pid 12<", "[pid 12", "7 [", "[]"}) {
    EXPECT_FALSE(ParseStraceLine(line)) << line;
  }
}

TEST(Strace, JoinsWhatOthersInterrupted) {
  const ImportedTrace imported = FromText(
      "12 1700000000.000000 execve(\"/bin/app\", [\"app\"], 0x0) = 0 <0.000500>\n"
      "12 1700000000.001000 access(\"/x\", R_OK) = -1 ENOENT (No such file) <0.000100>\n"
      "12 1700000000.002000 clone(child_stack=0, flags=CLONE_THREAD) = 13 <0.000050>\n"
      "13 1700000000.003000 read(4,  <unfinished ...>\n"
      "12 1700000000.004000 write(5, \"x\", 1) = 1 <0.000200>\n"
      " > /usr/lib/libc.so.6(__write+0x14) [0xe1234]\n"
      " > /bin/app(main+0x20) [0x820]\n"
      "13 1700000000.005000 <... read resumed>\"x\", 1) = 1 <0.002000>\n"
      "12 1700000000.006000 --- SIGCHLD {si_signo=SIGCHLD} ---\n"
      "12 1700000000.007000 exit_group(0) = ?\n"
      "12 1700000000.008000 +++ exited with 0 +++\n");
  ASSERT_TRUE(imported.status.ok());
  const std::vector<trace::Event> calls = Calls(imported);
  ASSERT_EQ(calls.size(), 6u);
  EXPECT_EQ(imported.trace.metadata.arch, "x86_64");  // arm64 has no access()
  EXPECT_EQ(imported.Thread(calls[0].thread).find("app"), 0u);
  EXPECT_EQ(calls[1].arg1, -2);
  EXPECT_EQ(calls[3].arg0, trace::SyscallNumber("read", trace::SyscallAbi::kX86_64));
  EXPECT_EQ(calls[3].dur_ns, 2'000'000);
  EXPECT_EQ(calls[4].dur_ns, 200'000);
  EXPECT_EQ(imported.Stack(calls[4].stack), "app!main;libc.so.6!__write");
}

TEST(Strace, AddsRelativeTimes) {
  const auto calls =
      Calls(FromText("     0.000000 read(3, \"\", 1) = 0 <0.000010>\n"
                     "     0.000500 write(1, \"\\n\", 1\n"
                     ")        = 1 <0.000042>\n"
                     "     0.000100 close(3) = 0 <0.000020>\n"));
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[1].time_ns - calls[0].time_ns, 500'000);
  EXPECT_EQ(calls[1].dur_ns, 42'000);  // torn by the program's own output
  EXPECT_EQ(calls[2].time_ns - calls[0].time_ns, 600'000);
}

TEST(Strace, TimesOfDayGoOnAtMidnight) {
  const auto calls =
      Calls(FromText("[pid  7] 23:59:59.900000 read(3, \"\", 1) = 0 <0.000010>\n"
                     "[pid  7] 00:00:00.100000 read(3, \"\", 1) = 0 <0.000010>\n"));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].time_ns - calls[0].time_ns, 200'000'000);
}

TEST(Strace, AnyTruncationIsReadable) {
  const std::string whole =
      "[pid 7] 1700000000.1 read(3,  <unfinished ...>\n"
      "[pid 8] 1700000000.2 close(3) = -1 EBADF (Bad file descriptor) <0.1>\n"
      "[pid 7] 1700000000.3 <... read resumed>\"\", 1) = 0 <0.2>\n +++ exited with 0 +++\n";
  for (size_t size = 0; size <= whole.size(); ++size) (void)FromText(whole.substr(0, size));
}

TEST(Strace, ReadsARealProgram) {
  if (std::system("command -v strace >/dev/null 2>&1") != 0) GTEST_SKIP() << "no strace here";
  const std::string path =
      (std::filesystem::temp_directory_path() / ("culprit-strace-" + std::to_string(::getpid())))
          .string();
  const std::string command =
      "strace -f -ttt -T -o " + path + " sh -c 'ls / | cat' >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "strace may not trace here";
  const auto sources = OpenSources(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(sources.front().ok());
  const ImportedTrace imported = ImportTrace(StraceImporter(), sources.front().value());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_GT(Calls(imported).size(), 50u);
  EXPECT_EQ(imported.Counted("line that strace does not write"), 0u);
  EXPECT_EQ(imported.Counted("system call without a known number"), 0u);
}

TEST(Strace, ReadsTheRealOne) {
  const std::string path =
      CULPRIT_SOURCE_DIR "/../shared/data/syscalls/perfview-dotnet-info.strace.zip";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto sources = OpenSources(path);
  ASSERT_TRUE(sources.front().ok());
  const ImportedTrace imported = ImportTrace(StraceImporter(), sources.front().value());
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(Calls(imported).size(), 6570u);
  EXPECT_EQ(imported.Counted("system call without a known number"), 0u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
