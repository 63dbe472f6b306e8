// SPDX-License-Identifier: Apache-2.0
//
// A simulated server after the pattern of single-threaded key-value stores, for
// tests: main > serve (holds the loop) > process_events > poll; each ready event
// is handled by on_readable (which reads and runs its pipelined commands, each
// with its own tree of calls) or on_accept; flush_replies ends the round. What the
// commands were is known.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "guard/simulated_training.h"

namespace culprit::guard {

struct SimulatedLoad {
  uint64_t seed = 1;
  uint64_t iterations = 500;
  uint32_t commands = 8;       // kinds
  uint32_t max_ready = 5;      // events a wait returns: 1 .. max_ready
  uint32_t max_pipelined = 4;  // commands a client sends at once: 1 .. max_pipelined
};

class SimulatedServer {
 public:
  SimulatedServer(SimulatedThread& thread, const SimulatedLoad& load)
      : thread_(thread), load_(load), random_(load.seed) {}

  void Run() {
    thread_.Call("main", 64, [&] {
      thread_.Call("read_configuration");
      thread_.Call("serve", 48, [&] {
        for (uint64_t i = 0; i < load_.iterations; ++i) Iteration();
      });
    });
  }
  uint64_t commands() const { return done_; }
  uint64_t events() const { return events_; }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Iteration() {
    thread_.Call("process_events", 96, [&] {
      thread_.Call("flush_replies", 48, [&] {
        if (Below(2) == 0) thread_.Call("write_to_client");
      });
      // Now and then a timer: nothing is ready.
      const uint64_t ready = Below(10) == 0 ? 0 : 1 + Below(load_.max_ready);
      thread_.Call("poll", 32, [&] { thread_.Wait(wire::WaitCall::kEpoll, ready); });
      events_ += ready;
      for (uint64_t i = 0; i < ready; ++i) {
        if (Below(20) == 0) {
          thread_.Call("on_accept", 64, [&] { thread_.Call("make_client"); });
        } else {
          Readable();
        }
      }
    });
  }

  void Readable() {
    thread_.Call("on_readable", 80, [&] {
      const uint64_t commands = 1 + Below(load_.max_pipelined);
      thread_.Read(commands * 30 + Below(8));
      thread_.Call("parse_input", 64, [&] {
        for (uint64_t i = 0; i < commands; ++i) {
          for (uint64_t word = 0; word < 2 + Below(2); ++word) thread_.Call("make_word");
          Command();
        }
      });
    });
  }

  void Command() {
    ++done_;
    const std::string number = std::to_string(Below(load_.commands));
    thread_.Call("run_command", 64, [&] {
      thread_.Call("look_up_command");
      thread_.Call("command_" + number, 48, [&] {
        thread_.Call("find_key", 32, [&] { thread_.Call("hash"); });
        for (uint64_t i = 0; i < 4; ++i) thread_.Call("step_" + number + "_" + std::to_string(i));
        // Loops over data change counts, not paths.
        for (uint64_t i = Below(5); i > 0; --i) thread_.Call("step_" + number + "_0");
        thread_.Call("add_reply", 32, [&] { thread_.Call("copy"); });
      });
    });
  }

  SimulatedThread& thread_;
  const SimulatedLoad load_;
  std::mt19937_64 random_;
  uint64_t done_ = 0;
  uint64_t events_ = 0;
};

}  // namespace culprit::guard
