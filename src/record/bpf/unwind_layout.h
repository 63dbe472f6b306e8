// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// How unwind tables lie in the kernel's memory: the one header that the walker
// (unwind.h) and the recorder (unwind_image.h) share. Little-endian words of 32
// bits:
//
//   chunk  = kUnwindChunkWords words, filled from the front with pieces
//   piece  = index rows             for the code from an origin on, whole blocks
//   index  = { u16 }                the word of each block's first row, and of the
//                                   last block's end; an even number of them
//   row    = u16 offset in block, u16 rule     by offset; the first of a piece has
//                                   offset 0; valid up to the next row
//
// So a place in a piece is found by its block and a short search in it, and a row
// costs 4 bytes. Rules are shared by all tables; rule 0 says that nothing is known.
#ifndef CULPRIT_RECORD_BPF_UNWIND_LAYOUT_H_
#define CULPRIT_RECORD_BPF_UNWIND_LAYOUT_H_

#ifdef __cplusplus
#include <cstdint>
namespace culprit::record {
#endif

enum {
  kUnwindBlockBits = 9,  // a block is 512 bytes of code
  kUnwindChunkWords = 1 << 16,
  kUnwindChunks = 256,
  kUnwindRules = 1 << 14,
  kUnwindRanges = 1 << 16,
  kUnwindProcesses = 1 << 14,
  kUnwindRequestBytes = 1 << 14,
};

// The canonical frame address: the caller's stack pointer.
enum UnwindCfa {
  kCfaUnknown = 0,
  kCfaStack = 1,       // stack pointer + cfa_offset
  kCfaFrame = 2,       // frame pointer + cfa_offset
  kCfaStackDeref = 3,  // the word at stack pointer + cfa_offset, + extra
  kCfaFrameDeref = 4,  // the word at frame pointer + cfa_offset, + extra
  kCfaPlt = 5,         // stack pointer + cfa_offset, + 8 from byte `extra` of 16 on
  kCfaSignal = 6,      // all registers stand in the frame that the kernel made for a signal
};

// Where the caller's register is.
enum UnwindPlace {
  kPlaceSame = 0,     // in the register
  kPlaceCfa = 1,      // in memory, at the canonical frame address + offset
  kPlaceFrame = 2,    // in memory, at the frame pointer + offset
  kPlaceEnd = 3,      // nowhere: this is the outermost frame
  kPlaceUnknown = 4,  // by a rule that is not understood
};

struct UnwindRule {
  uint8_t cfa;           // UnwindCfa
  uint8_t return_place;  // UnwindPlace
  uint8_t frame_place;   // UnwindPlace of the caller's frame pointer
  uint8_t extra;
  int32_t cfa_offset;
  int32_t return_offset;
  int32_t frame_offset;
};

enum { kNoChunk = 0xffff };

// Executable addresses of a process that one piece describes; with kNoChunk none
// does, and frame pointers must lead on.
struct UnwindRange {
  uint64_t start;
  uint64_t end;     // exclusive
  uint64_t origin;  // where the piece's first block begins
  uint32_t index;   // the piece's first word
  uint32_t chunk;
};

// Its ranges are `count` from `first` on, by address.
struct UnwindProcess {
  uint32_t first;
  uint32_t count;
  uint64_t ask_after_ns;    // not before this time does the walker ask about it again
  uint64_t listed_ns;       // since then it has these ranges; 0: none, or its parent had them
  uint32_t version;         // of the list: another for every list ever made
  uint32_t chain_failures;  // stacks in a row whose frame pointers were of no use
};

// The walker asks for a process to be looked at: it has no ranges, or code was met
// that is in none.
struct UnwindRequest {
  uint64_t time_ns;
  uint32_t tgid;
  uint32_t pad;
};

// One for every CPU.
struct UnwindCounters {
  uint64_t walked;    // stacks walked with tables at hand
  uint64_t complete;  // of these, down to the outermost frame
  uint64_t frames;
  uint64_t guessed;   // frames found by frame pointers
  uint64_t unlisted;  // stacks of processes without ranges: walked by frame pointers
  uint64_t asked;     // requests
  uint64_t recalled;  // of those walked: found where they were found before (remembered.h)
  uint64_t joined;    // of those walked: the outer part was (remembered_callers.h)
  uint64_t proven;    // of those walked: by frame pointers that are right (proven_chains.h)
  // Only when asked to compare: against the kernel's walk by frame pointers.
  uint64_t same;
  uint64_t no_caller;  // frame pointers miss the leaf's caller, else the same
  uint64_t cut_short;  // frame pointers end earlier
  uint64_t cut_long;   // the tables end earlier
  uint64_t different;
};

#ifdef __cplusplus
inline bool operator==(const UnwindRule& a, const UnwindRule& b) {
  return a.cfa == b.cfa && a.return_place == b.return_place && a.frame_place == b.frame_place &&
         a.extra == b.extra && a.cfa_offset == b.cfa_offset && a.return_offset == b.return_offset &&
         a.frame_offset == b.frame_offset;
}
inline bool operator==(const UnwindRange& a, const UnwindRange& b) {
  return a.start == b.start && a.end == b.end && a.origin == b.origin && a.index == b.index &&
         a.chunk == b.chunk;
}
}  // namespace culprit::record
#endif
#endif  // CULPRIT_RECORD_BPF_UNWIND_LAYOUT_H_
