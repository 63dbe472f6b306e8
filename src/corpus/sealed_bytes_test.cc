// SPDX-License-Identifier: Apache-2.0
#include "corpus/sealed_bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::corpus::TEST_FILE {
namespace {

std::string Noise(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random() % 7);
  return bytes;
}

TEST(SealedBytes, GiveBackWhatWasSealed) {
  for (const size_t size : {0UL, 1UL, 100UL, 100'000UL, 40'000'000UL}) {
    const std::string payload = Noise(size);
    const std::string sealed = Seal("mine", "id", payload);
    EXPECT_EQ(sealed, Seal("mine", "id", payload));
    EXPECT_TRUE(IsSealed("mine", "id", sealed));
    EXPECT_EQ(Unseal("mine", "id", sealed), payload) << size;
  }
}

TEST(SealedBytes, OfAnotherKindOrIdAreNone) {
  const std::string sealed = Seal("mine", "id", "payload");
  EXPECT_FALSE(Unseal("causes", "id", sealed));
  EXPECT_FALSE(Unseal("mine", "other", sealed));
  EXPECT_FALSE(IsSealed("mine", "i", sealed));
}

TEST(SealedBytes, ThatWereCutOrChangedAnywhereAreNone) {
  const std::string sealed = Seal("mine", "id", Noise(300));
  for (size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_FALSE(Unseal("mine", "id", sealed.substr(0, i))) << i;
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_FALSE(Unseal("mine", "id", changed)) << i;
  }
  EXPECT_FALSE(Unseal("mine", "id", sealed + "x"));
}

TEST(SealedBytes, DigestsAreTheSameEverywhere) {
  EXPECT_EQ(ShortDigest(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(ShortDigest("a"), ShortDigest("b"));
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
