// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/session_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "guard/runtime/test_folder.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

TEST(SessionFiles, NamesAreMadeOfTextAndNumbers) {
  EXPECT_STREQ(FileName("log.").Add(uint64_t{12}).Add(".").Add(uint64_t{0}).text(), "log.12.0");
  EXPECT_EQ(strlen(FileName("x").Add(std::string(100, 'y').c_str()).text()), 63u);
}

TEST(SessionFiles, DescriptorsAreHighAndClosedByExec) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  HeldFile file;
  ASSERT_TRUE(OpenSessionFile("a", O_WRONLY | O_CREAT, file));
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_GE(file.fd(), limit.rlim_cur > 600 ? 512 : 64);
  EXPECT_NE(fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
  file.Close();
  EXPECT_FALSE(file.held());
}

TEST(SessionFiles, WhoChangedItsUserWritesAnewBesideWhatItWrote) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  const auto write_anew = [](const char* text) {
    HeldFile file;
    if (!OpenSessionFileAnew(FileName("modules.").Add(uint64_t{7}), file)) return false;
    const bool written = write(file.fd(), text, strlen(text)) == static_cast<ssize_t>(strlen(text));
    file.Close();
    return written;
  };
  const auto read_back = [&](const char* name) {
    std::ifstream file(folder.path() + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_TRUE(write_anew("before"));
  ASSERT_TRUE(write_anew("root"));
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool done = setresuid(kNobody, kNobody, kNobody) == 0 && write_anew("once more") &&
                      write_anew("nobody");
    _exit(done ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_back("modules.7"), "root");
  EXPECT_EQ(read_back("modules.7.later"), "nobody");
}

TEST(SessionFiles, ADescriptorThatTheProgramTookOverIsNotOurs) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  HeldFile file;
  ASSERT_TRUE(OpenSessionFile("a", O_WRONLY | O_CREAT, file));
  EXPECT_TRUE(file.IsOurs());
  const int number = file.fd();
  const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(dup2(other, number), number);
  EXPECT_FALSE(file.IsOurs());
  file.Close();
  EXPECT_NE(fcntl(number, F_GETFD), -1);  // the program's is still open
  close(number);
  close(other);
}

TEST(SessionFiles, TheFolderIsFoundAgainWhenAllDescriptorsWereClosed) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  for (int fd = 500; fd < 700; ++fd) close(fd);
  HeldFile file;
  EXPECT_TRUE(OpenSessionFile("b", O_WRONLY | O_CREAT, file));
  file.Close();
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/b"));
}

TEST(SessionFiles, SharedMemoryIsTheFilesContents) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  const SharedMemory shared = CreateShared("shared", 10'000, 10'000);
  EXPECT_EQ(shared.allocated, 10'000u);
  auto* memory = static_cast<char*>(shared.memory);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory[9'999], 0);
  std::memcpy(memory, "culprit", 8);
  std::string read;
  std::getline(std::ifstream(folder.path() + "/shared"), read, '\0');
  EXPECT_EQ(read, "culprit");
  // Another one of that name is a new file: the old mapping stays as it was.
  ASSERT_NE(CreateShared("shared", 4'096, 4'096).memory, nullptr);
  EXPECT_STREQ(memory, "culprit");
}

TEST(SessionFiles, FilesThatAreTooShortOrTooLongAreNotRead) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  std::ofstream(folder.path() + "/c") << "0123456789";
  size_t bytes = 0;
  EXPECT_EQ(MapForReading("c", 11), nullptr);
  EXPECT_NE(MapForReading("c", 10), nullptr);
  EXPECT_EQ(ReadWhole("c", 9, bytes), nullptr);
  EXPECT_EQ(ReadWhole("none", 9, bytes), nullptr);
  const uint8_t* whole = ReadWhole("c", 10, bytes);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(std::string(whole, whole + bytes), "0123456789");
  EXPECT_FALSE(OpenSessionFolder("/no/such/folder"));
  EXPECT_FALSE(OpenSessionFolder(std::string(600, 'x').c_str()));
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
