// SPDX-License-Identifier: Apache-2.0
#include "record/program_choice.h"

#include <gtest/gtest.h>

namespace culprit::record::TEST_FILE {
namespace {

TEST(ProgramChoices, EndWithWhatEveryKernelTakes) {
  for (const bool marks : {false, true}) {
    for (const bool cheap : {false, true}) {
      const std::vector<ProgramChoice> choices =
          ProgramChoices({.marks = marks, .direct_reads = cheap, .resumes = cheap});
      ASSERT_FALSE(choices.empty());
      EXPECT_EQ(choices.back().marks, MarkProgram::kNone);
      EXPECT_FALSE(choices.back().direct_reads);
      EXPECT_FALSE(choices.back().resumes);
    }
  }
}

TEST(ProgramChoices, AreOnlyOfWhatIsAskedFor) {
  ProgramWishes wishes = {.direct_reads = false, .resumes = false};
  for (const ProgramChoice& choice : ProgramChoices(wishes)) {
    EXPECT_EQ(choice.marks, MarkProgram::kNone);
    EXPECT_FALSE(choice.direct_reads);
    EXPECT_FALSE(choice.resumes);
  }
  wishes.marks = true;
  const std::vector<ProgramChoice> marked = ProgramChoices(wishes);
  ASSERT_EQ(marked.size(), 3u);
  EXPECT_EQ(marked[0].marks, MarkProgram::kFunction);
  EXPECT_EQ(marked[1].marks, MarkProgram::kSystemCall);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
