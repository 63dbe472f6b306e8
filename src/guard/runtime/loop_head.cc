// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/loop_head.h"

#include <algorithm>

#include "guard/runtime/unwinder.h"
#include "guard/runtime/violation_report.h"
#include "guard/runtime/wait_frame.h"

namespace culprit::guard::runtime {
namespace {

enum class Held { kNo, kNotKnown, kYes };

// The frames of the thread outside of the call, by their stack pointers at entry, as far out
// as the outermost base that is to be asked for.
class HolderSearch {
 public:
  HolderSearch(ThreadState& state, uint64_t sp, uint64_t outermost_base,
               uint32_t max = wire::kMaxFrames)
      : max_(max) {
    const AddressRange& stack = StackOf(state, sp);
    Registers registers = {};
    if (!FindCaller(sp + kCfaAboveEntry, stack, registers)) return;
    // Entries are told apart by sixteen bytes.
    const uint64_t last_cfa = outermost_base + kCfaAboveEntry + 15;
    count_ = Unwind(registers, stack, true, frames_, max, last_cfa);
  }

  Held Ask(uint64_t holder, uint64_t base_sp) const {
    if (holder == 0) return Held::kNotKnown;
    for (uint32_t i = 0; i < count_; ++i) {
      const StackFrame& frame = frames_[i];
      if (frame.cfa == 0) continue;
      const uint64_t entry_sp = (frame.cfa - kCfaAboveEntry) & ~uint64_t{15};
      if (entry_sp > base_sp) return Held::kNo;
      if (entry_sp == base_sp && frame.function == holder) return Held::kYes;
    }
    // A plan names holders that training reached in this way.
    return count_ == 0 || count_ == max_ ? Held::kNotKnown : Held::kNo;
  }

 private:
  StackFrame frames_[wire::kMaxFrames];
  uint32_t max_;
  uint32_t count_ = 0;
};

// Of several loops that hold it the outermost; what is known is worth more.
const SiteRule* Choose(const HolderSearch& search, const LoadedPlan& plan, const SiteRule& first,
                       uint64_t sp) {
  const SiteRule* best = nullptr;
  Held best_held = Held::kNo;
  for (const SiteRule* site = &first; site != nullptr; site = NextSite(plan, *site)) {
    const Held held = search.Ask(site->holder, BaseOf(*site, sp));
    if (held == Held::kNo || held < best_held) continue;
    if (held == best_held && best != nullptr && site->base_offset <= best->base_offset) continue;
    best = site;
    best_held = held;
  }
  return best;
}

uint64_t OutermostBase(const LoadedPlan& plan, const SiteRule& first, uint64_t sp) {
  uint64_t base = 0;
  for (const SiteRule* site = &first; site != nullptr; site = NextSite(plan, *site)) {
    base = std::max(base, BaseOf(*site, sp));
  }
  return base;
}

bool IsPowerOfTwo(uint32_t number) { return (number & (number - 1)) == 0; }

HeadMemo& MemoOf(ThreadState& state, uint64_t return_address, uint64_t sp) {
  const uint64_t hash = (return_address ^ sp >> 4) * 0x9e3779b97f4a7c15;
  return state.heads[hash >> 32 & (kHeadMemos - 1)];
}

bool IsOf(const HeadMemo& memo, const LoadedPlan& plan, uint64_t return_address, uint64_t sp) {
  return memo.generation == plan.generation && memo.sp == sp &&
         memo.return_address == return_address;
}

}  // namespace

const SiteRule* FindHead(ThreadState& state, const LoadedPlan& plan, const SiteRule& site,
                         uint64_t sp) {
  const uint64_t current = state.plan == &plan ? state.slot->base_sp : 0;
  if (site.holder == 0 && !site.shared) return BaseOf(site, sp) < current ? nullptr : &site;
  HeadMemo& memo = MemoOf(state, site.return_address, sp);
  const bool known = IsOf(memo, plan, site.return_address, sp);
  if (known) {
    // Another way may lead to the same stack pointer: asked again, ever more seldom.
    if (memo.head == nullptr && !IsPowerOfTwo(++memo.asked)) return nullptr;
    if (memo.head != nullptr && BaseOf(*memo.head, sp) >= current) return memo.head;
    if (memo.head != nullptr && memo.nested_in == current) return nullptr;
  }
  const HolderSearch search(state, sp, std::max(current, OutermostBase(plan, site, sp)));
  const SiteRule* head = Choose(search, plan, site, sp);
  const uint32_t asked = known ? memo.asked : 1;
  memo = {site.return_address, sp, head, 0, plan.generation, asked};
  if (head == nullptr || BaseOf(*head, sp) >= current) return head;
  // Inside of the loop that the thread is in, unless it left that.
  if (state.head->holder != 0 && search.Ask(state.head->holder, current) == Held::kNo) return head;
  memo.nested_in = current;
  return nullptr;
}

bool IsParking(ThreadState& state, const LoadedPlan& plan, uint64_t return_address, uint64_t sp) {
  const uint64_t key = ~return_address;  // what FindHead remembers of it is something else
  HeadMemo& memo = MemoOf(state, key, sp);
  const bool known = IsOf(memo, plan, key, sp);
  if (known && !IsPowerOfTwo(++memo.asked)) return false;
  const HolderSearch search(state, sp, state.slot->base_sp, wire::kParkingFrames);
  if (search.Ask(state.head->holder, state.slot->base_sp) == Held::kYes) return true;
  memo = {key, sp, nullptr, 0, plan.generation, known ? memo.asked : 1};
  return false;
}

}  // namespace culprit::guard::runtime
