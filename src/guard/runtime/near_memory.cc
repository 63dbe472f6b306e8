// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/near_memory.h"

#include <sys/auxv.h>

#include <algorithm>

#include "guard/runtime/code_address.h"
#include "guard/runtime/code_writer.h"
#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kMaxTake = 4096;
constexpr uint64_t kAlignment = 64 << 10;  // of islands: the largest page there is
constexpr uint64_t kLowestAddress = 64 << 10;

uint64_t PageBytes() { return getauxval(AT_PAGESZ); }

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

bool InReach(const AddressRange& range, uint64_t address) {
  return Distance(range.begin, address) < NearMemory::kReach &&
         Distance(range.end, address) < NearMemory::kReach;
}

// "begin-end rwxp ...\n" lines out of blocks of text.
class MapsParser {
 public:
  explicit MapsParser(MappedArray<Mapping>& mappings) : mappings_(mappings) {}

  bool Feed(char letter) {
    if (letter == '\n') {
      const bool good = field_ < 3 || mappings_.Append(mapping_);
      mapping_ = {};
      field_ = 0;
      previous_ = 0;
      return good;
    }
    switch (field_) {
      case 0:
        Address(letter, '-', mapping_.range.begin);
        break;
      case 1:
        Address(letter, ' ', mapping_.range.end);
        break;
      case 2:
        mapping_.readable |= letter == 'r';
        mapping_.writable |= letter == 'w';
        mapping_.executable |= letter == 'x';
        if (letter == ' ') ++field_;
        break;
      default:
        mapping_.stack |= letter == 't' && previous_ == 's';  // only "[stack]" in brackets
        previous_ = letter == '[' || previous_ == '[' ? letter : 0;
        break;
    }
    return true;
  }

 private:
  void Address(char letter, char end, uint64_t& value) {
    if (letter == end) {
      ++field_;
    } else {
      const int digit = letter <= '9' ? letter - '0' : letter - 'a' + 10;
      value = value << 4 | static_cast<uint64_t>(digit & 15);
    }
  }

  MappedArray<Mapping>& mappings_;
  Mapping mapping_;
  int field_ = 0;
  char previous_ = 0;
};

bool MapAt(uint64_t address, uint64_t size) {
  const long result =
      RawSyscall(SYS_mmap, static_cast<long>(address), static_cast<long>(size), PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (result < 0 && result > -4096) return false;
  // Kernels before 4.17 take the flag for a hint.
  if (static_cast<uint64_t>(result) != address) {
    RawSyscall(SYS_munmap, result, static_cast<long>(size));
    return false;
  }
  return true;
}

bool Protect(uint64_t address, uint64_t size, int protection) {
  return RawSyscall(SYS_mprotect, static_cast<long>(address), static_cast<long>(size),
                    protection) == 0;
}

// The best place of the free memory before mappings[next]: 0 when none is in reach.
// The heap grows up from the break and a stack down, so what they would grow
// into is left to them.
uint64_t PlaceInGap(AddressRange gap, bool below_stack, uint64_t address) {
  const auto heap_end = static_cast<uint64_t>(RawSyscall(SYS_brk, 0));
  if (heap_end >= gap.begin && heap_end < gap.end) gap.end = heap_end & ~(kAlignment - 1);
  gap.begin = (gap.begin + kAlignment - 1) & ~(kAlignment - 1);
  const uint64_t size = NearMemory::kIslandBytes;
  if (gap.end < gap.begin || gap.end - gap.begin < 2 * size) return 0;
  uint64_t best = 0;
  for (const uint64_t at : {gap.begin, (gap.end - 2 * size) & ~(kAlignment - 1)}) {
    if (at < gap.begin || (at != gap.begin && below_stack)) continue;
    if (!InReach({at, at + size}, address)) continue;
    if (best == 0 || Distance(at, address) < Distance(best, address)) best = at;
  }
  return best;
}

// The place nearest to the code wins: it leaves most of the reach for the code's
// other side.
uint64_t NearestPlace(const MappedArray<Mapping>& mappings, uint64_t address) {
  uint64_t best = 0;
  uint64_t previous_end = kLowestAddress;
  for (const Mapping& mapping : mappings) {
    const uint64_t at = PlaceInGap({previous_end, mapping.range.begin}, mapping.stack, address);
    if (at != 0 && (best == 0 || Distance(at, address) < Distance(best, address))) best = at;
    previous_end = mapping.range.end;
  }
  return best;
}

}  // namespace

bool ReadMappings(MappedArray<Mapping>& mappings) {
  mappings.clear();
  const int fd = RawOpenAt(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  MapsParser parser(mappings);
  char block[4096];
  bool good = true;
  long bytes = 0;
  while (good && (bytes = RawSyscall(SYS_read, fd, Word(block), sizeof(block))) > 0) {
    for (long i = 0; i < bytes; ++i) good = good && parser.Feed(block[i]);
  }
  RawClose(fd);
  return good && bytes == 0 && !mappings.empty();
}

NearMemory::Island* NearMemory::Map(uint64_t address) {
  MappedArray<Mapping> mappings;
  if (!ReadMappings(mappings)) return nullptr;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const uint64_t at = NearestPlace(mappings, address);
    if (at == 0) return nullptr;
    if (MapAt(at, kIslandBytes)) {
      const Island island{{at, at + kIslandBytes}, at, at, at};
      return islands_.Append(island) ? &islands_.back() : nullptr;
    }
    // Somebody else mapped there meanwhile, or the kernel forbids the place: look again,
    // with that place counted as taken.
    Mapping taken;
    taken.range = {at, at + kIslandBytes};
    if (!mappings.Append(taken)) return nullptr;
    std::sort(mappings.begin(), mappings.end(),
              [](const Mapping& a, const Mapping& b) { return a.range.begin < b.range.begin; });
  }
  return nullptr;
}

NearMemory::Island* NearMemory::FindOrMap(uint64_t address, uint64_t size) {
  const auto fits = [&](const Island& island) {
    return InReach(island.range, address) && island.next + size <= island.range.end;
  };
  if (last_ < islands_.size() && fits(islands_[last_])) return &islands_[last_];
  for (size_t i = 0; i < islands_.size(); ++i) {
    if (fits(islands_[i])) {
      last_ = i;
      return &islands_[i];
    }
  }
  Island* island = Map(address);
  if (island != nullptr) last_ = islands_.size() - 1;
  return island;
}

uint8_t* NearMemory::Take(uint64_t address, uint64_t size) {
  size = (size + 15) & ~uint64_t{15};
  Island* island = size <= kMaxTake ? FindOrMap(address, size) : nullptr;
  if (island == nullptr) return nullptr;
  while (island->next + size > island->ready) {
    if (!Protect(island->ready, PageBytes(), PROT_READ | PROT_WRITE)) return nullptr;
    island->ready += PageBytes();
  }
  auto* memory = BytesAt(island->next);
  island->next += size;
  used_bytes_ += size;
  return memory;
}

void NearMemory::Shrink(uint64_t unused) {
  unused &= ~uint64_t{15};
  islands_[last_].next -= unused;
  used_bytes_ -= unused;
}

bool NearMemory::Seal() {
  bool sealed = true;
  for (Island& island : islands_) {
    if (island.open == island.ready) continue;
    FlushCode(island.open, island.next - island.open);
    sealed &= Protect(island.open, island.ready - island.open, PROT_READ | PROT_EXEC);
    island.open = island.next = island.ready;
  }
  return sealed;
}

}  // namespace culprit::guard::runtime
