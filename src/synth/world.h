// SPDX-License-Identifier: Apache-2.0
//
// World: the code that runs on all machines of one corpus: frames, stacks (a
// trie over the whole corpus) and, for each kind of thread, pools of stacks for
// what it does: computing, waiting for a lock, reading from disk. Built once
// from the seed; traces pick from the pools, so that the same stacks recur over
// thousands of traces while each trace holds only those it used.
//
// Immutable after construction and shared by all simulating threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "synth/op.h"
#include "synth/random.h"

namespace culprit::synth {

// Stacks for one purpose; early ones are picked more often.
struct StackPool {
  std::vector<WorldStack> stacks;

  WorldStack Pick(Random& random) const { return stacks[random.Skewed(stacks.size())]; }
};

// What one kind of thread can be seen doing.
struct Code {
  StackPool compute;
  StackPool lock_wait;
  StackPool lock_release;
  StackPool request;       // sends a message
  StackPool request_wait;  // waits for the reply
  StackPool take;          // waits to be asked
  StackPool reply;
  StackPool disk_read;
  StackPool disk_write;
  StackPool sleep;
  StackPool start;  // blocked when the trace began
};

// Kinds of threads. Scenario code stands under a root of its own, see World.
enum class Kind : uint8_t {
  kBrowserWorker,
  kExplorerWorker,
  kService,
  kAntiVirus,
  kConfiguration,
  kSystemWorker,
  kCompositor,
  kScheduler,
  kLauncher,
  kStageA,
  kStageB,
  kStageC,
  kStageD,
  kHttpListener,
  kHttpWorker,
  kHttpClient,
  kCount
};

// The stacks of planted behaviours; each pool holds variants of one path.
struct PlantStacks {
  // file-table-lock
  StackPool ui_restore_session;
  StackPool ui_file_table;  // the same path, not planted: fast tab creations
  StackPool ui_file_table_release;
  StackPool browser_file_table;
  StackPool browser_file_table_release;
  StackPool browser_mdu;
  StackPool browser_mdu_release;
  StackPool av_mdu;
  StackPool av_mdu_release;
  StackPool cm_mdu;
  StackPool cm_mdu_release;
  StackPool cm_wait_read;
  StackPool system_read_disk;
  StackPool system_decrypt;
  StackPool system_read_reply;
  // short-path-name
  StackPool short_path_fault;
  StackPool short_path_compute;
  // glyph-hot-loop
  StackPool find_glyph;
  // graphics-hard-fault
  StackPool menu_lock;
  StackPool menu_lock_release;
  StackPool compositor_lock;
  StackPool compositor_fault;
  StackPool compositor_release;
  StackPool system_page_disk;
  StackPool system_page_decrypt;
  StackPool system_page_reply;
  // accept-retry-loop
  StackPool accept_retry;
  // noise
  StackPool hold_until_settled;
  StackPool read_direct;
  StackPool wait_for_input;
  StackPool housekeeping;
};

class World {
 public:
  struct Frame {
    std::string module;
    std::string function;
    bool kernel_mode = false;
  };
  struct Stack {
    WorldStack parent = kNoStack;
    uint32_t frame = 0;
    uint32_t depth = 1;
  };

  // `mean_depth` is that of stacks of the Windows kind; servers are shallower.
  World(uint64_t seed, size_t mean_depth);

  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Stack>& stacks() const { return stacks_; }
  const Code& code(Kind kind) const { return codes_[static_cast<size_t>(kind)]; }
  // Code of a scenario: the named ones have their own, the others share some.
  const Code& ScenarioCode(size_t index) const { return scenarios_[index % scenarios_.size()]; }
  // By HttpCallIndex (scenario.h).
  const StackPool& HttpCall(size_t index) const { return http_calls_[index]; }
  const PlantStacks& plants() const { return plants_; }
  WorldStack timer_interrupt() const { return timer_interrupt_; }
  WorldStack input_interrupt() const { return input_interrupt_; }
  WorldStack disk_interrupt() const { return disk_interrupt_; }

 private:
  friend class WorldBuilder;

  std::vector<Frame> frames_;
  std::vector<Stack> stacks_;
  std::vector<Code> codes_;
  std::vector<Code> scenarios_;
  std::vector<StackPool> http_calls_;
  PlantStacks plants_;
  WorldStack timer_interrupt_ = kNoStack;
  WorldStack input_interrupt_ = kNoStack;
  WorldStack disk_interrupt_ = kNoStack;
};

}  // namespace culprit::synth
