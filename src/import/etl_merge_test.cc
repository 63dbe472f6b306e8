// SPDX-License-Identifier: Apache-2.0
#include "import/etl_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "import/etl_builder.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

// Samples of many buffers, out of order within and across them, against a sort.
TEST(EtlMerge, EventsComeInOrderOfTime) {
  std::mt19937 random(3);
  EtlBuilder builder;
  std::vector<uint64_t> times;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t time = 1000 + i * 10 + random() % 200;
    const auto cpu = static_cast<uint16_t>(random() % 6);
    if (random() % 5 == 0) {
      builder.Thread({time, cpu}, kEtlThreadRundownEnd, 1, 2);  // nothing to be told in order
    } else {
      builder.Sample({time, cpu}, static_cast<uint32_t>(i + 1), 0x1000);
      times.push_back(time);
    }
  }
  std::sort(times.begin(), times.end());
  const Source source = MemorySource("t", builder.Bytes());
  Diagnostics diagnostics;
  const EtlHeader header = ReadEtlHeader(source).value();
  const auto buffers = ListEtlBuffers(source.bytes(), header, diagnostics).value();
  ASSERT_GT(buffers.size(), 20u);
  const EtlSurvey survey =
      std::move(SurveyEtl(source.bytes(), header, buffers, diagnostics)).value();
  std::vector<uint64_t> told;
  EXPECT_TRUE(VisitEtlFacts(source.bytes(), header, buffers, survey.spans,
                            [&](const EtlEvent& event, uint64_t) -> Status {
                              told.push_back(event.time);
                              return {};
                            })
                  .ok());
  EXPECT_EQ(told, times);
  EXPECT_EQ(survey.samples, times.size());
  EXPECT_TRUE(diagnostics.empty());
}

TEST(EtlMerge, AnErrorEndsIt) {
  EtlBuilder builder;
  builder.Sample({2000, 0}, 1, 0);
  builder.Sample({3000, 0}, 1, 0);
  const Source source = MemorySource("t", builder.Bytes());
  Diagnostics diagnostics;
  const EtlHeader header = ReadEtlHeader(source).value();
  const auto buffers = ListEtlBuffers(source.bytes(), header, diagnostics).value();
  const EtlSurvey survey =
      std::move(SurveyEtl(source.bytes(), header, buffers, diagnostics)).value();
  int told = 0;
  const Status status = VisitEtlFacts(source.bytes(), header, buffers, survey.spans,
                                      [&](const EtlEvent&, uint64_t) -> Status {
                                        ++told;
                                        return Error{.message = "full"};
                                      });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
