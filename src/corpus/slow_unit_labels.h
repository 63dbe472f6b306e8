// SPDX-License-Identifier: Apache-2.0
//
// Labels of a trace that was written because of a slow unit: `culprit watch` sets
// them, analyses read them. An instance of that trace is a symptom if it took at
// least the threshold that the trace has for its scenario; scenarios without one have
// no symptom in it. Names of labels, no code.
#pragma once

namespace culprit::corpus {

inline constexpr char kSlowTypeLabel[] = "watch.type";  // "setCommand"
// "redis-server: setCommand=1000000;redis-server: getCommand=2500000", in nanoseconds.
inline constexpr char kThresholdsLabel[] = "watch.thresholds";

}  // namespace culprit::corpus
