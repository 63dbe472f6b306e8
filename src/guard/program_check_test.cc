// SPDX-License-Identifier: Apache-2.0
#include "guard/program_check.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/test_folder.h"

namespace culprit::guard::TEST_FILE {
namespace {

std::string Executable(const TestFolder& folder, const std::string& name,
                       const std::string& bytes) {
  const std::string path = folder.Write(name, bytes);
  chmod(path.c_str(), 0755);
  return path;
}

std::string Reason(const Result<ProgramFacts>& result) {
  return result.ok() ? "" : result.error().message;
}

TEST(ProgramCheck, TakesADynamicProgramWithItsBuildId) {
  const auto facts = CheckProgram("/proc/self/exe");
  ASSERT_TRUE(facts.ok()) << facts.error().ToString();
  EXPECT_FALSE(facts.value().build_id.empty());
  EXPECT_FALSE(facts.value().is_script);
  EXPECT_TRUE(CheckProgram("sh").ok()) << "looked for in PATH";
  EXPECT_NE(Reason(CheckProgram("no-such-program-here")).find("PATH"), std::string::npos);
}

TEST(ProgramCheck, KnowsALinkByItsName) {
  const TestFolder folder;
  const std::string link = folder / "server";
  ASSERT_EQ(symlink("/bin/sh", link.c_str()), 0);
  const auto facts = CheckProgram(link);
  ASSERT_TRUE(facts.ok()) << facts.error().ToString();
  EXPECT_EQ(facts.value().name, link);
  EXPECT_EQ(facts.value().path, CheckProgram("/bin/sh").value().path);
  EXPECT_NE(facts.value().path, link);
}

TEST(ProgramCheck, FollowsScriptsToTheirInterpreter) {
  const TestFolder folder;
  const auto facts = CheckProgram(Executable(folder, "script", "#!/bin/sh -e\necho\n"));
  ASSERT_TRUE(facts.ok()) << facts.error().ToString();
  EXPECT_TRUE(facts.value().is_script);
  EXPECT_TRUE(CheckProgram(Executable(folder, "env", "#!/usr/bin/env sh\n")).ok());
  const std::string circle = folder / "circle";
  EXPECT_FALSE(CheckProgram(Executable(folder, "circle", "#!" + circle + "\n")).ok());
  EXPECT_FALSE(CheckProgram(Executable(folder, "text", "hello")).ok());
  EXPECT_FALSE(CheckProgram(Executable(folder, "empty", "")).ok());
}

TEST(ProgramCheck, SaysWhyAProgramCannotBeGuarded) {
  const TestFolder folder;
  const auto whole = ReadWholeFile("/proc/self/exe");
  ASSERT_TRUE(whole.ok());
  std::string bytes = whole.value().substr(0, 64 * 1024);
  Elf64_Ehdr header = {};
  std::memcpy(&header, bytes.data(), sizeof(header));

  std::string small = bytes;
  small[EI_CLASS] = ELFCLASS32;
  EXPECT_NE(Reason(CheckProgram(Executable(folder, "small", small))).find("32-bit"),
            std::string::npos);

  std::string other = bytes;
  Elf64_Ehdr changed = header;
  changed.e_machine = EM_RISCV;
  std::memcpy(other.data(), &changed, sizeof(changed));
  EXPECT_NE(Reason(CheckProgram(Executable(folder, "other", other))).find("not made for"),
            std::string::npos);

  std::string still = bytes;
  changed = header;
  changed.e_phnum = 0;
  std::memcpy(still.data(), &changed, sizeof(changed));
  EXPECT_NE(Reason(CheckProgram(Executable(folder, "still", still))).find("static"),
            std::string::npos);

  // A static program made by the compiler that is at hand, if there is one.
  const std::string source = folder.Write("main.c", "int main(void) { return 0; }\n");
  const std::string linked = folder / "linked";
  if (std::system(("cc -static -o " + linked + " " + source + " 2>/dev/null").c_str()) == 0) {
    EXPECT_NE(Reason(CheckProgram(linked)).find("static"), std::string::npos);
  }
  // What the linker of Go leaves, in a dynamic program.
  const std::string go = folder / "go";
  if (std::system(("objcopy --add-section .note.go.buildid=" + source + " /bin/sh " + go +
                   " 2>/dev/null && chmod 755 " + go)
                      .c_str()) == 0) {
    EXPECT_NE(Reason(CheckProgram(go)).find("Go program"), std::string::npos);
  }
  if (geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  const std::string setuid = Executable(folder, "setuid", whole.value());
  ASSERT_EQ(chown(setuid.c_str(), 12345, 12345), 0);
  ASSERT_EQ(chmod(setuid.c_str(), 04755), 0);
  EXPECT_NE(Reason(CheckProgram(setuid)).find("setuid"), std::string::npos);
}

TEST(ProgramCheck, HoldsTheBuildIdAgainstTheProfile) {
  Profile profile;
  profile.program = "/usr/bin/server";
  profile.modules = {{.build_id = "aabb", .path = "/usr/bin/server"},
                     {.build_id = "ccdd", .path = "/usr/lib/libc.so.6"}};
  EXPECT_TRUE(CheckBuildIds(profile, {.path = "/opt/renamed", .build_id = "aabb"}).ok());
  const Status other = CheckBuildIds(profile, {.path = "/opt/server", .build_id = "1234"});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("1234"), std::string::npos);
  EXPECT_NE(other.error().message.find("aabb"), std::string::npos);
  EXPECT_FALSE(CheckBuildIds(profile, {.path = "/usr/bin/vim", .build_id = "1234"}).ok());
  EXPECT_TRUE(CheckBuildIds(profile, {.path = "/bin/sh", .build_id = "1", .is_script = true}).ok());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
