// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

namespace culprit::cli {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Signal handlers can only reach globals.
volatile std::sig_atomic_t g_stop_asked = 0;

}  // namespace

StopSignals::StopSignals() {
  g_stop_asked = 0;
  struct sigaction stop = {};
  stop.sa_handler = [](int) { g_stop_asked = 1; };
  for (size_t i = 0; i < 3; ++i) sigaction(kStopSignals[i], &stop, &old_[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < 3; ++i) sigaction(kStopSignals[i], &old_[i], nullptr);
}

bool StopSignals::asked() const { return g_stop_asked != 0; }

}  // namespace culprit::cli
