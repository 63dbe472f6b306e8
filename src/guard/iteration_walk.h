// SPDX-License-Identifier: Apache-2.0
//
// IterationWalk: one training log as iterations of the event loops: from the
// return of a loop's wait call with something to the next of its waits. Tells a
// visitor:
//
//   void Begin(loop, ready, place)        an iteration begins
//   void Enter(function, depth16, return_address)
//                                         an entry inside; depth in units of 16 bytes
//   void Pass(function, sp16, return_address)
//                                         an entry outside, of any stack
//   void Lose()                           entries are missing, or it is another thread
//   void Read(bytes)                      input received inside
//   void Turn()                           the loop looks for work, before it waits or goes
//                                         on with what it finds: what was is a whole
//                                         iteration, and what follows one if it comes to a
//                                         Turn, none if it comes to its End
//   void End(dur_ns, complete)            it ended; not complete: damage, or the
//                                         thread left the loop: to be dropped
//
// The same rules as the runtime's (runtime/wire.h, PlanSite; runtime/loop_head.h):
// a wait heads a loop whose holder is on its stack at the loop's base; one deeper
// than the thread's base is an ordinary one, one further out replaces the base.
// Entries on another stack (signal stacks, coroutines) are counted and left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "guard/event_loops.h"
#include "guard/session_code.h"
#include "guard/training_log_reader.h"

namespace culprit::guard {

// Whether a function is on a stack with that stack pointer at entry.
enum class Held { kNo, kNotKnown, kYes };
Held AskHolder(const WaitStacks::Frames* stack, uint32_t holder, uint64_t base16);

class LoopSites {
 public:
  struct Head {
    uint32_t loop = kNoIndex;
    int64_t base_offset16 = 0;
    uint32_t holder = kNoIndex;
    bool hand_over = false;
    std::vector<Context> turns;

    uint64_t BaseOf(uint64_t sp16) const {
      return static_cast<uint64_t>(static_cast<int64_t>(sp16) + base_offset16) & kSpMask;
    }
  };
  LoopSites(const std::vector<EventLoop>& loops, const WaitStacks& stacks);

  // The loop that a wait with this stack pointer and stack is the head of; nullptr: none.
  const Head* Find(const WaitSite& site, uint64_t sp16, const WaitStacks::Frames* stack) const;
  const WaitStacks& stacks() const { return stacks_; }

 private:
  std::map<WaitSite, std::vector<Head>> sites_;
  const WaitStacks& stacks_;
};

// Stack pointers in units of 16 bytes: of the loop's calls, which lie below it, and of the wait.
struct LoopPlace {
  uint64_t base16 = 0;
  uint64_t sp16 = 0;
};

template <class Visitor>
class IterationWalk {
 public:
  IterationWalk(const SessionCode& code, const LoopSites& sites, const LogFile& log,
                Visitor& visitor)
      : code_(code), sites_(sites), log_(log), ids_(code.FunctionIds(log.pid)), visitor_(visitor) {}

  Status Run(Diagnostics& diagnostics) {
    CULPRIT_ASSIGN(LogCursor cursor, LogCursor::Open(log_, diagnostics));
    for (LogRecord record; cursor.Next(record);) {
      if (record.broken) Lose();
      if (record.kind == wire::LogKind::kEnter) {
        if (record.a < ids_.size() && ids_[record.a] != kNoIndex) {
          Enter(ids_[record.a], record.b, record.words[0]);
        }
      } else {
        Take(record);
      }
    }
    Drop();
    if (foreign_ > 0) diagnostics.Count("entry on another stack than the loop's", foreign_);
    return {};
  }

 private:
  static constexpr int64_t kDeepest16 = (int64_t{64} << 20) / 16;

  void Enter(uint32_t function, uint64_t sp16, uint64_t return_address) {
    if (!inside_) return visitor_.Pass(function, sp16, return_address);
    const auto depth16 = static_cast<int64_t>(base16_) - static_cast<int64_t>(sp16);
    if (depth16 > kDeepest16 || depth16 < -kDeepest16) {
      ++foreign_;
    } else if (depth16 <= 0) {
      Drop();  // the holder itself was left
      visitor_.Pass(function, sp16, return_address);
    } else {
      if (IsTurn(function, static_cast<int32_t>(depth16) * 16)) visitor_.Turn();
      visitor_.Enter(function, static_cast<int32_t>(depth16), return_address);
    }
  }

  bool IsTurn(uint32_t function, int32_t depth) const {
    return std::binary_search(turns_->begin(), turns_->end(), Context{function, depth});
  }

  void Take(const LogRecord& record) {
    switch (record.kind) {
      case wire::LogKind::kWaitEnter:
        WaitEnter(record);
        break;
      case wire::LogKind::kWaitExit:
        WaitExit(record);
        break;
      case wire::LogKind::kRead:
        if (inside_) visitor_.Read(record.b);
        break;
      case wire::LogKind::kThread:  // another thread of the same id, perhaps
        Lose();
        break;
      default:
        break;
    }
  }

  void WaitEnter(const LogRecord& record) {
    head_ = false;
    if ((record.words[3] & wire::LogWait::kNonBlocking) != 0) return;
    const Place& place = PlaceOf(record.words[2], static_cast<wire::WaitCall>(record.a), record.b);
    if (place.head == nullptr) return;
    if (place.head->hand_over) return Drop();
    const uint64_t base16 = place.head->BaseOf(record.b);
    if (base16 < base16_ && AskHolder(place.stack, holder_, base16_) != Held::kNo) return;
    if (inside_) {
      // An iteration of a loop further in, if the base moved out.
      const bool complete = base16 == base16_ && place.head->loop == loop_;
      visitor_.End(record.words[0] - begin_ns_, complete && record.words[0] >= begin_ns_);
      inside_ = false;
    }
    base16_ = base16;
    loop_ = place.head->loop;
    holder_ = place.head->holder;
    turns_ = &place.head->turns;
    head_ = true;
    wait16_ = record.b;
  }

  void WaitExit(const LogRecord& record) {
    if (!head_) {
      if (inside_ && record.words[2] > 0) visitor_.Read(record.words[2]);
      return;
    }
    head_ = false;
    if (record.b == 0) return;
    inside_ = true;
    begin_ns_ = record.words[0];
    visitor_.Begin(loop_, record.b, LoopPlace{base16_, wait16_});
  }

  void Lose() {
    Drop();
    visitor_.Lose();
  }

  void Drop() {
    if (inside_) visitor_.End(0, false);
    inside_ = false;
    head_ = false;
    base16_ = 0;
  }

  struct Place {
    const LoopSites::Head* head = nullptr;
    const WaitStacks::Frames* stack = nullptr;
  };
  // Threads come back to a few places: the stacks are asked once for each.
  const Place& PlaceOf(uint64_t address, wire::WaitCall call, uint64_t sp16) {
    const auto [known, made] = places_.try_emplace({address, call, sp16});
    Place& place = known->second;
    if (made) {
      place.stack = sites_.stacks().Find(log_, address, sp16);
      place.head = sites_.Find({code_.Resolve(log_.pid, address), call}, sp16, place.stack);
    }
    return place;
  }

  const SessionCode& code_;
  const LoopSites& sites_;
  const LogFile& log_;
  const std::vector<uint32_t>& ids_;
  Visitor& visitor_;
  std::map<std::tuple<uint64_t, wire::WaitCall, uint64_t>, Place> places_;
  bool inside_ = false;  // an iteration
  bool head_ = false;    // the wait that began last is the loop's
  uint64_t base16_ = 0;
  uint64_t wait16_ = 0;  // of the loop's last wait
  uint32_t loop_ = kNoIndex;
  uint32_t holder_ = kNoIndex;                   // of the loop
  const std::vector<Context>* turns_ = nullptr;  // of the loop, once in an iteration
  uint64_t begin_ns_ = 0;
  uint64_t foreign_ = 0;
};

}  // namespace culprit::guard
