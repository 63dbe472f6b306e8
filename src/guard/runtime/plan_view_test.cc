// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/plan_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

// A plan with one member of each kind.
struct SmallPlan {
  wire::PlanHeader header = {};
  wire::PlanModule module = {};
  wire::PlanFunction function = {};
  wire::PlanContext context = {};
  wire::PlanSite site = {};
  wire::PlanType type = {};
};
static_assert(sizeof(SmallPlan) == sizeof(wire::PlanHeader) + sizeof(wire::PlanModule) +
                                       sizeof(wire::PlanFunction) + sizeof(wire::PlanContext) +
                                       sizeof(wire::PlanSite) + sizeof(wire::PlanType));

SmallPlan MakeSmallPlan() {
  SmallPlan plan;
  plan.header.magic = wire::Magic("CGPLAN01");
  plan.header.version = wire::kWireVersion;
  plan.header.mode = static_cast<uint32_t>(wire::Mode::kGuard);
  plan.header.bytes = sizeof(plan);
  plan.header.modules = plan.header.functions = plan.header.contexts = 1;
  plan.header.sites = plan.header.types = 1;
  std::strcpy(plan.module.file_name, "server");
  plan.function.contexts = 1;
  plan.context.return_module = wire::kAnyReturn;
  return plan;
}

bool Parses(SmallPlan plan, size_t size = sizeof(SmallPlan)) {
  std::vector<uint64_t> bytes(sizeof(plan) / 8);
  auto* data = reinterpret_cast<uint8_t*>(bytes.data());
  std::memcpy(data, &plan, sizeof(plan));
  plan.header.checksum = Fnv1a(data + sizeof(wire::PlanHeader), size - sizeof(wire::PlanHeader));
  plan.header.bytes = size;
  std::memcpy(data, &plan.header, sizeof(plan.header));
  PlanView view;
  return view.Parse(data, size);
}

TEST(PlanView, GivesOutWhatTheFileHolds) {
  SmallPlan plan = MakeSmallPlan();
  plan.type.threshold_ns = 77;
  const auto* body = reinterpret_cast<const uint8_t*>(&plan) + sizeof(wire::PlanHeader);
  plan.header.checksum = Fnv1a(body, sizeof(plan) - sizeof(wire::PlanHeader));
  PlanView view;
  ASSERT_TRUE(view.Parse(reinterpret_cast<const uint8_t*>(&plan), sizeof(plan)));
  EXPECT_EQ(view.mode(), wire::Mode::kGuard);
  EXPECT_STREQ(view.modules()[0].file_name, "server");
  EXPECT_EQ(view.types()[0].threshold_ns, 77u);
}

TEST(PlanView, RefusesEveryWrongIndexAndName) {
  const SmallPlan good = MakeSmallPlan();
  ASSERT_TRUE(Parses(good));
  const auto refused = [&](auto damage) {
    SmallPlan plan = good;
    damage(plan);
    return !Parses(plan);
  };
  EXPECT_TRUE(refused([](SmallPlan& p) { p.header.magic ^= 1; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.header.version = 2; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.header.mode = 4; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.header.types = 2; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.header.modules = 0xffffffff; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.module.build_id_size = 33; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { std::memset(p.module.file_name, 'x', 216); }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.function.module = 1; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.function.first_context = 1; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.function.contexts = 0xffffffff; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.context.bit = 512; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.context.return_module = 1; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.site.module = 1; }));
  EXPECT_TRUE(refused([](SmallPlan& p) { p.type.kind = 4; }));
}

TEST(PlanView, RefusesAPlanCutShortAnywhere) {
  const SmallPlan plan = MakeSmallPlan();
  for (size_t size = sizeof(wire::PlanHeader); size < sizeof(plan); ++size) {
    EXPECT_FALSE(Parses(plan, size)) << size;
  }
}

TEST(PlanView, RefusesAChangedByteBehindTheHeader) {
  SmallPlan plan = MakeSmallPlan();
  auto* bytes = reinterpret_cast<uint8_t*>(&plan);
  plan.header.checksum =
      Fnv1a(bytes + sizeof(wire::PlanHeader), sizeof(plan) - sizeof(wire::PlanHeader));
  PlanView view;
  ASSERT_TRUE(view.Parse(bytes, sizeof(plan)));
  for (size_t i = sizeof(wire::PlanHeader); i < sizeof(plan); ++i) {
    bytes[i] ^= 0x10;
    EXPECT_FALSE(view.Parse(bytes, sizeof(plan))) << i;
    bytes[i] ^= 0x10;
  }
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
