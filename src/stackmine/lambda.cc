// SPDX-License-Identifier: Apache-2.0
#include "stackmine/lambda.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"

namespace culprit::stackmine {
namespace {

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<uint64_t> ParseShare(std::string_view text) {
  text = Trim(text);
  const bool percent = text.ends_with('%');
  if (percent) text = Trim(text.substr(0, text.size() - 1));
  const std::optional<double> value = ParseDouble(text);
  if (!value) return std::nullopt;
  const double share = percent ? *value / 100 : *value;
  if (!(share > 0 && share <= 1)) return std::nullopt;
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(share * double{kShareOne})));
}

Result<LambdaRule> ParseTraceRule(std::string_view text) {
  LambdaRule rule{.kind = LambdaRule::Kind::kTraces, .share = 0};
  const std::string hint = "write it as traces=10%,delay=300ms";
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const std::string_view key = Trim(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : Trim(part.substr(equals + 1));
    if (key == "traces") {
      const auto share = ParseShare(value);
      if (!share) return Error{.message = "'" + std::string(value) + "' is no share", .hint = hint};
      rule.share = *share;
    } else if (key == "delay") {
      const auto delay_ns = ParseDuration(value);
      if (!delay_ns || *delay_ns <= 0) {
        return Error{.message = "'" + std::string(value) + "' is no delay", .hint = hint};
      }
      rule.delay_ns = *delay_ns;
    } else {
      return Error{.message = "'" + std::string(part) + "' is no part of a rule", .hint = hint};
    }
  }
  if (rule.share == 0 || rule.delay_ns == 0) {
    return Error{.message = "a rule needs both traces and delay", .hint = hint};
  }
  return rule;
}

int64_t ShareOf(uint64_t share, int64_t whole) {
  if (whole <= 0) return 0;
  // In two steps, so that nothing overflows; share is at most kShareOne.
  const auto one = static_cast<int64_t>(kShareOne);
  const auto part = static_cast<int64_t>(std::min(share, kShareOne));
  return whole / one * part + (whole % one * part + one - 1) / one;
}

int64_t ResolveLambda(const LambdaRule& rule, int64_t aoi_ns, uint64_t traces) {
  switch (rule.kind) {
    case LambdaRule::Kind::kCost:
      return std::max<int64_t>(1, rule.cost_ns);
    case LambdaRule::Kind::kShare:
      return std::max<int64_t>(1, ShareOf(rule.share, aoi_ns));
    case LambdaRule::Kind::kTraces: {
      const int64_t one_ns = ShareOf(rule.share, rule.delay_ns);
      const auto count = static_cast<int64_t>(std::max<uint64_t>(1, traces));
      return std::max<int64_t>(1, one_ns > INT64_MAX / count ? INT64_MAX : one_ns * count);
    }
    case LambdaRule::Kind::kTop:
      break;
  }
  return 1;
}

}  // namespace culprit::stackmine
