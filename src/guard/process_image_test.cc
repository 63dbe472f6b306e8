// SPDX-License-Identifier: Apache-2.0
#include "guard/process_image.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace culprit::guard::TEST_FILE {
namespace {

extern "C" [[gnu::noinline]] int GuardTestNamed() { return 42; }

TEST(ProcessImage, ReadsCodeOfMapsAndLeavesTheRest) {
  const ProcessImage image = ProcessImage::Parse(
      "aaaa0000-aaaa2000 r-xp 00001000 fe:00 12 /usr/bin/my server\n"
      "aaaa2000-aaaa3000 rw-p 00003000 fe:00 12 /usr/bin/my server\n"
      "bbbb0000-bbbb1000 r-xp 00000000 00:00 0\n"
      "cccc0000-cccc1000 r-xp 00000000 fe:00 13 /usr/lib/old.so (deleted)\n"
      "nonsense\n"
      "dddd0000-dddc0000 r-xp 00000000 fe:00 13 /backwards\n");
  ASSERT_EQ(image.code().size(), 3u);
  ASSERT_NE(image.Find(0xaaaa1fff), nullptr);
  EXPECT_EQ(image.Find(0xaaaa1fff)->path, "/usr/bin/my server");
  EXPECT_EQ(image.Find(0xaaaa1fff)->file_offset, 0x1000u);
  EXPECT_EQ(image.Find(0xaaaa2000), nullptr);
  EXPECT_EQ(image.Find(0xbbbb0000)->path, "");
  EXPECT_EQ(image.Find(0xcccc0000)->path, "") << "a replaced file names nothing";
  EXPECT_EQ(image.Find(0), nullptr);
}

TEST(ProcessImage, KnowsTheRuntimesCode) {
  const ProcessImage image = ProcessImage::Parse(
      "aaaa0000-aaaa2000 r-xp 00001000 fe:00 12 /usr/bin/server\n"
      "bbbb0000-bbbb1000 r-xp 00000000 00:00 0\n"
      "cccc0000-cccc1000 r-xp 00000000 fe:00 13 /usr/lib/culprit/libculprit_guard.so\n");
  EXPECT_EQ(image.OwnerOf(0xaaaa0000), ProcessImage::Owner::kOther);
  EXPECT_EQ(image.OwnerOf(0xbbbb0000), ProcessImage::Owner::kNoFile);
  EXPECT_EQ(image.OwnerOf(0xcccc0fff), ProcessImage::Owner::kRuntime);
  EXPECT_EQ(image.OwnerOf(0xcccc1000), ProcessImage::Owner::kNoFile);
}

TEST(ProcessImage, NamesTheCodeOfThisProcess) {
  const auto image = ProcessImage::Read(getpid());
  ASSERT_TRUE(image.ok());
  symbol::Symbolizer symbolizer;
  const auto place = reinterpret_cast<uint64_t>(&GuardTestNamed);
  const auto frames = NameFrames({place, 1}, true, image.value(), symbolizer);
  ASSERT_FALSE(frames.empty());
  EXPECT_NE(frames[0].function.find("GuardTestNamed"), std::string::npos);
  EXPECT_EQ(frames.back().ToString(), "[0x1]");
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
