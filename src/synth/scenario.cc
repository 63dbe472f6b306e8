// SPDX-License-Identifier: Apache-2.0
#include "synth/scenario.h"

#include <iterator>

namespace culprit::synth {

const std::vector<ScenarioSpec>& NamedScenarios() {
  static const std::vector<ScenarioSpec> rows = {
      {"BrowserTabCreate", "Browser!TabCreate", UiProcess::kBrowser, 2491, 7, 2'600'000},
      {"BrowserTabClose", "Browser!TabClose", UiProcess::kBrowser, 989, 4, 1'900'000},
      {"BrowserTabSwitch", "Browser!TabSwitch", UiProcess::kBrowser, 2182, 4, 1'600'000},
      {"BrowserFrameCreate", "Browser!FrameCreate", UiProcess::kBrowser, 1304, 8, 3'000'000},
      {"WebPageNavigation", "Browser!NavigatePage", UiProcess::kBrowser, 7725, 10, 3'600'000},
      {"MenuDisplay", "Explorer!ShowMenu", UiProcess::kExplorer, 743, 4, 1'200'000},
      {"ExplorerOpenFolder", "Explorer!OpenFolder", UiProcess::kExplorer, 2200, 8, 2'200'000},
      {"AppStartup", "App!Startup", UiProcess::kApp, 900, 14, 5'000'000},
      {"AppAccessControl", "App!CheckAccess", UiProcess::kApp, 1547, 5, 1'800'000},
      {"AppNonResponsive", "App!PumpMessages", UiProcess::kApp, 631, 12, 4'000'000},
      {"HttpRequest", "httpd!process_request", UiProcess::kApp, 0, 4, 180'000},
  };
  return rows;
}

std::string GeneratedScenarioName(size_t number) {
  static constexpr std::string_view kAreas[] = {
      "Shell",   "Mail",   "Calendar", "Photo",   "Media",   "Editor",  "Sheet",
      "Network", "Search", "Settings", "Printer", "Account", "Desktop", "Backup"};
  static constexpr std::string_view kActions[] = {"Open",    "Save", "Scroll", "Resize", "Search",
                                                  "Preview", "Sync", "Launch", "Sort",   "Paste"};
  static constexpr std::string_view kThings[] = {"View",   "Item",   "Dialog",  "List", "Pane",
                                                 "Window", "Folder", "Message", "Page", "Chart"};
  constexpr size_t kAreaCount = std::size(kAreas);
  constexpr size_t kActionCount = std::size(kActions);
  constexpr size_t kThingCount = std::size(kThings);
  std::string name(kAreas[number % kAreaCount]);
  name += kThings[number / kAreaCount % kThingCount];
  name += kActions[number / (kAreaCount * kThingCount) % kActionCount];
  const size_t round = number / (kAreaCount * kThingCount * kActionCount);
  if (round > 0) name += std::to_string(round + 1);
  return name;
}

const std::vector<HttpCall>& HttpCalls() {
  static const std::vector<HttpCall> rows = {{"epoll_wait", 22}, {"accept4", 242}, {"read", 63},
                                             {"openat", 56},     {"fstat", 80},    {"writev", 66},
                                             {"close", 57},      {"accept", 202}};
  return rows;
}

}  // namespace culprit::synth
