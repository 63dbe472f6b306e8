// SPDX-License-Identifier: Apache-2.0
#include "guard/loop_scan.h"

#include <algorithm>

namespace culprit::guard {
namespace {

constexpr size_t kMaxKeys = 256;                // distinct waits of a thread that are remembered
constexpr size_t kMaxObjects = 256;             // of one piece of evidence
constexpr size_t kMaxWakes = 1 << 20;           // objects that somebody wakes
constexpr int64_t kBaseWithoutHolder16 = 1024;  // further out than what the loop calls

// Waiting for a lock or for a child's end begins nothing.
bool CanHeadLoop(wire::WaitCall call) {
  return call != wire::WaitCall::kLock && call != wire::WaitCall::kChild &&
         call >= wire::WaitCall::kEpoll && call <= wire::WaitCall::kOther;
}

}  // namespace

// One thread's log. For every remembered wait the highest stack pointer entered
// since is needed; `since` of a key reaches only to the next newer key, so that an
// entry touches one number and a wait adds up the newer ones.
class LoopScan::Thread {
 public:
  Thread(LoopScan& scan, const LogFile& log)
      : scan_(scan), log_(log), ids_(scan.code_->FunctionIds(log.pid)) {}

  void Take(const LogRecord& record) {
    if (record.broken) Forget();
    switch (record.kind) {
      case wire::LogKind::kEnter:
        Enter(record.a, record.b);
        break;
      case wire::LogKind::kWaitEnter:
        WaitEnter(record);
        break;
      case wire::LogKind::kStack:
        TakeStack(record);
        break;
      case wire::LogKind::kWaitExit:
        WaitExit(record);
        break;
      case wire::LogKind::kWake:
        Wake(record);
        break;
      case wire::LogKind::kRead:
        Receive(record.words[0]);
        break;
      case wire::LogKind::kThread:  // another thread of the same id, perhaps
        Forget();
        break;
      default:
        break;
    }
  }

 private:
  // What the thread received so far.
  struct Input {
    uint64_t source = 0;  // of the last
    uint64_t times = 0;
  };
  struct Given {
    LoopEvidence* evidence = nullptr;
    uint64_t holder_sp16 = 0;
    uint64_t pairs = 0;  // since an enclosing loop's last iteration ended
  };
  struct Key {
    uint64_t address = 0;
    uint64_t sp16 = 0;
    wire::WaitCall call = wire::WaitCall::kOther;
    WaitSite site;
    uint64_t since = 0;         // highest stack pointer entered before the next newer key's wait
    std::vector<Frame> frames;  // innermost first
    std::vector<Given> given;   // evidence it gave, by holder
    uint64_t ready = 0;         // not yet given
    uint64_t object = 0;
    Input input;  // up to its wait
  };

  void Enter(uint32_t id, uint64_t sp16) {
    ++scan_.entries_;
    if (!keys_.empty() && keys_.back().since < sp16) keys_.back().since = sp16;
    while (!shadow_.empty() && shadow_.back().sp16 <= sp16) shadow_.pop_back();
    if (id >= ids_.size()) return;
    shadow_.push_back({ids_[id], sp16});
    if (ids_[id] < scan_.entered_.size()) scan_.entered_[ids_[id]] = 1;
  }

  // Who lets go of a lock begins nobody's work.
  void Wake(const LogRecord& record) {
    if (record.a == static_cast<uint32_t>(wire::WakeCall::kUnlock)) return;
    const std::pair<uint32_t, uint64_t> object = {log_.pid, record.words[1]};
    if (scan_.wakes_.size() >= kMaxWakes && !scan_.wakes_.contains(object)) return;
    ++scan_.wakes_[object][log_.tid];
  }

  void Receive(uint64_t source) {
    if (input_.times > 0 && source != input_.source) {
      ++scan_.source_changes_[{log_.pid, log_.tid}];
    }
    input_ = {source, input_.times + 1};
  }

  void Forget() {
    input_ = {};
    keys_.clear();
    shadow_.clear();
    open_ = false;
  }

  void WaitEnter(const LogRecord& record) {
    open_ = false;
    const auto call = static_cast<wire::WaitCall>(record.a);
    if (!CanHeadLoop(call) || (record.words[3] & wire::LogWait::kNonBlocking) != 0) return;
    const uint64_t address = record.words[2];
    size_t at = keys_.size();
    while (at > 0 && !(keys_[at - 1].address == address && keys_[at - 1].sp16 == record.b &&
                       keys_[at - 1].call == call)) {
      --at;
    }
    if (at == 0) {
      AddKey(address, record.b, call);
    } else {
      ClosePair(at - 1);
    }
    keys_.back().object = record.words[1];
    keys_.back().input = input_;
    if (call == wire::WaitCall::kRead || call == wire::WaitCall::kReceive) {
      Receive(record.words[1]);
    }
    open_ = true;
  }

  void AddKey(uint64_t address, uint64_t sp16, wire::WaitCall call) {
    if (keys_.size() == kMaxKeys) {
      keys_[1].since = std::max(keys_[1].since, keys_[0].since);
      keys_.erase(keys_.begin());
    }
    keys_.push_back({.address = address, .sp16 = sp16, .call = call});
    keys_.back().site = {scan_.code_->Resolve(log_.pid, address), call};
    const WaitStacks::Frames* known = scan_.stacks_.Find(log_, address, sp16);
    if (known != nullptr) keys_.back().frames = *known;
  }

  void ClosePair(size_t at) {
    uint64_t highest = 0;
    for (size_t i = at; i < keys_.size(); ++i) highest = std::max(highest, keys_[i].since);
    Key key = std::move(keys_[at]);
    if (at > 0) keys_[at - 1].since = std::max(keys_[at - 1].since, key.since);
    keys_.erase(keys_.begin() + static_cast<ptrdiff_t>(at));
    key.since = 0;
    size_t holder = 0;
    while (holder < key.frames.size() && key.frames[holder].sp16 <= highest) ++holder;
    if (holder < key.frames.size() || key.frames.empty()) {
      const LoopKey loop = LoopOf(key, holder);
      if (holder < key.frames.size()) {
        for (size_t i = at; i < keys_.size(); ++i) {
          CountInside(keys_[i], key.frames[holder].sp16, loop);
        }
        // Who waits in vain goes round where it waits, and on to the next job further out.
        if (!ReceivesFromOutside(key.call)) CountInside(key, key.frames[holder].sp16, loop);
      }
      LoopEvidence* evidence = AddEvidence(key, holder, loop);
      for (size_t i = at; evidence != nullptr && i < keys_.size(); ++i) {
        if (ReceivesFromOutside(keys_[i].call)) continue;
        ++evidence->across[keys_[i].site];
        if (IsMadeBy(keys_[i], key, holder)) ++evidence->across_in_holder[keys_[i].site];
      }
    }
    keys_.push_back(std::move(key));
  }

  static bool IsMadeBy(const Key& wait, const Key& loop, size_t holder) {
    if (holder >= loop.frames.size()) return false;
    const size_t own = std::min<size_t>(wire::kParkingFrames, wait.frames.size());
    const auto end = wait.frames.begin() + static_cast<ptrdiff_t>(own);
    return std::any_of(wait.frames.begin(), end,
                       [&](const Frame& frame) { return frame.sp16 == loop.frames[holder].sp16; });
  }

  // Loops of these waits that are held further in than the one that went round.
  static void CountInside(Key& key, uint64_t outer_sp16, const LoopKey& outer) {
    for (Given& given : key.given) {
      if (given.holder_sp16 >= outer_sp16) continue;
      const uint64_t pairs = std::exchange(given.pairs, 0);
      if (pairs > 0) given.evidence->inside[outer] += pairs;
    }
  }

  LoopKey LoopOf(const Key& key, size_t holder) const {
    LoopKey loop{.site = key.site, .base_offset16 = kBaseWithoutHolder16};
    if (holder < key.frames.size()) {
      loop.holder = key.frames[holder].function;
      loop.base_offset16 = static_cast<int64_t>(key.frames[holder].sp16 - key.sp16);
    }
    return loop;
  }

  // nullptr: not of a module that can be guarded.
  LoopEvidence* AddEvidence(Key& key, size_t holder, const LoopKey& loop) {
    const uint32_t module = loop.site.returns_to.module;
    if (module == kNoIndex || scan_.code_->modules()[module].build_id.empty()) return nullptr;
    LoopEvidence& evidence = scan_.evidence_[loop];
    ++evidence.pairs;
    evidence.ready += std::exchange(key.ready, 0);
    if (key.input.times != 0 && key.input.times != input_.times) {
      ++(key.input.source == input_.source ? evidence.stayed : evidence.moved);
    }
    const uint64_t holder_sp16 = holder < key.frames.size() ? key.frames[holder].sp16 : 0;
    auto given = key.given.begin();
    while (given != key.given.end() && given->evidence != &evidence) ++given;
    if (given == key.given.end()) {
      given = key.given.insert(given, {.evidence = &evidence, .holder_sp16 = holder_sp16});
    }
    ++given->pairs;
    if (evidence.chain.empty()) {
      for (size_t i = std::min(holder + 1, key.frames.size()); i > 0; --i) {
        evidence.chain.push_back(key.frames[i - 1].function);
      }
      if (holder > 0 && holder < key.frames.size()) {
        const uint64_t depth16 = key.frames[holder].sp16 - key.frames[holder - 1].sp16;
        evidence.callee_depth = static_cast<int32_t>(depth16 * 16);
      }
    }
    if (evidence.objects.size() < kMaxObjects) evidence.objects.insert({log_.pid, key.object});
    if (evidence.threads.size() < kMaxObjects) evidence.threads.insert({log_.pid, log_.tid});
    if (holder < key.frames.size() && key.frames[holder].entered) evidence.holder_unwound = false;
    return &evidence;
  }

  void TakeStack(const LogRecord& record) {
    if (!open_) return;
    Key& key = keys_.back();
    key.frames.clear();
    for (size_t i = 0; i + 1 < record.words.size(); i += 2) {
      const uint64_t sp16 = record.words[i + 1] >> 4 & kSpMask;
      if (sp16 == 0) continue;
      CodeAddress place = scan_.code_->Resolve(log_.pid, record.words[i]);
      if (place.offset > 0) --place.offset;  // the call, not what follows it
      key.frames.push_back({scan_.code_->FunctionAt(place), sp16});
    }
    AddShadow(key);
    scan_.stacks_.Set(log_.pid, key.address, key.sp16, key.frames);
  }

  // What was entered and has not returned goes on where the runtime's stack ends.
  void AddShadow(Key& key) const {
    const uint64_t above = key.frames.empty() ? key.sp16 : key.frames.back().sp16;
    for (size_t i = shadow_.size(); i > 0; --i) {
      if (shadow_[i - 1].sp16 <= above) continue;
      key.frames.push_back(shadow_[i - 1]);
      key.frames.back().entered = true;
    }
  }

  void WaitExit(const LogRecord& record) {
    if (!open_) return;
    open_ = false;
    Key& key = keys_.back();
    if (record.b > 0) ++key.ready;
    if (key.frames.empty()) AddShadow(key);
  }

  LoopScan& scan_;
  const LogFile& log_;
  const std::vector<uint32_t>& ids_;
  std::vector<Key> keys_;  // the newest wait last
  std::vector<Frame> shadow_;
  Input input_;
  bool open_ = false;  // inside the newest key's wait
};

const WaitStacks::Frames* WaitStacks::Find(const LogFile& log, uint64_t address,
                                           uint64_t sp16) const {
  for (const uint32_t pid : {log.pid, log.parent_pid}) {
    const auto found = stacks_.find({pid, address, sp16});
    if (found != stacks_.end()) return &found->second;
  }
  return nullptr;
}

Status LoopScan::Read(const LogFile& log, Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(LogCursor cursor, LogCursor::Open(log, diagnostics));
  entered_.resize(code_->functions().size());
  Thread thread(*this, log);
  for (LogRecord record; cursor.Next(record);) thread.Take(record);
  return {};
}

}  // namespace culprit::guard
