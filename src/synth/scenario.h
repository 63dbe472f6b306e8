// SPDX-License-Identifier: Apache-2.0
//
// The scenarios that simulated users and clients start: ten with names of
// their own and the work they do, HttpRequest of the server, and as many
// generated ones as a preset asks for. Static data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::synth {

enum class UiProcess : uint8_t { kBrowser, kExplorer, kApp };

enum ScenarioIndex : uint32_t {
  kBrowserTabCreate,
  kBrowserTabClose,
  kBrowserTabSwitch,
  kBrowserFrameCreate,
  kWebPageNavigation,
  kMenuDisplay,
  kExplorerOpenFolder,
  kAppStartup,
  kAppAccessControl,
  kAppNonResponsive,
  kHttpRequest,
  kNamedScenarios
};

struct ScenarioSpec {
  std::string_view name;
  std::string_view root;  // the function that stands for it in stacks
  UiProcess process = UiProcess::kExplorer;
  uint32_t weight = 0;     // how often users start it, as in 003 table 1
  int64_t steps = 0;       // of an ordinary instance, about
  int64_t compute_ns = 0;  // of a step, median
};

// By ScenarioIndex.
const std::vector<ScenarioSpec>& NamedScenarios();
// Generated ones: number 0, 1, ... after the named.
std::string GeneratedScenarioName(size_t number);

// System calls of the server, by their arm64 numbers.
struct HttpCall {
  std::string_view name;
  uint32_t number = 0;
};
enum HttpCallIndex : uint32_t {
  kEpollWait,
  kAccept4,
  kRead,
  kOpenat,
  kFstat,
  kWritev,
  kClose,
  kAccept,
  kHttpCallCount
};
const std::vector<HttpCall>& HttpCalls();

}  // namespace culprit::synth
