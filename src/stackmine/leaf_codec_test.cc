// SPDX-License-Identifier: Apache-2.0
#include "stackmine/leaf_codec.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::stackmine {
namespace {

struct Call {
  uint32_t caller = UINT32_MAX;
  FrameSymbol frame = 0;
};

TEST(LeafCodec, TheReaderFindsWhatTheWriterSaw) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    // With many frames a caller has more than are told by their place.
    const uint32_t frames = 1 + static_cast<uint32_t>(random() % (seed % 3 == 0 ? 300 : 20));
    std::vector<Call> calls(2000);
    for (Call& call : calls) {
      const uint64_t caller = random() % (seed % 2 == 0 ? frames + 1 : 3);
      call.caller = caller >= frames ? UINT32_MAX : static_cast<uint32_t>(caller);
      call.frame = static_cast<FrameSymbol>(random() % frames);
    }
    LeafCodec writer(frames);
    LeafCodec reader(frames);
    for (const Call& call : calls) {
      const LeafCodec::Code code = writer.CodeOf(call.caller, call.frame);
      EXPECT_EQ(reader.FrameOf(call.caller, code.code, [&] { return code.spelled; }), call.frame);
    }
  }
}

TEST(LeafCodec, FramesInOrderOfFirstUseAndRepeatedCallsTakeNoSpelling) {
  LeafCodec writer(3);
  EXPECT_EQ(writer.CodeOf(UINT32_MAX, 0).code, 0U);
  EXPECT_EQ(writer.CodeOf(0, 1).code, 0U);
  EXPECT_EQ(writer.CodeOf(0, 2).code, 0U);
  EXPECT_EQ(writer.CodeOf(0, 1).code, 3U);
  EXPECT_EQ(writer.CodeOf(0, 1).code, 2U);
  EXPECT_EQ(writer.CodeOf(2, 1).code, 1U);
}

TEST(LeafCodec, RefusesWhatIsNoCode) {
  const auto spelled = [](int64_t number) { return [number] { return number; }; };
  for (const int64_t number : {INT64_MIN, int64_t{-2}, int64_t{1}, INT64_MAX}) {
    EXPECT_FALSE(LeafCodec(2).FrameOf(UINT32_MAX, 1, spelled(number))) << number;
  }
  EXPECT_FALSE(LeafCodec(2).FrameOf(UINT32_MAX, 2, spelled(0)));
  EXPECT_FALSE(LeafCodec(2).FrameOf(UINT32_MAX, UINT64_MAX, spelled(0)));
  EXPECT_FALSE(LeafCodec(0).FrameOf(UINT32_MAX, 0, spelled(0)));
}

}  // namespace
}  // namespace culprit::stackmine
