// SPDX-License-Identifier: Apache-2.0
//
// What the injected runtime and culprit say to each other: files in a session
// folder, of plain structs, so that neither side must trust or wait for the
// other. The runtime writes training logs (write(2) of whole buffers: a full
// disk loses records, which are counted, and never raises a signal) and shares
// three files by mmap, all allocated beforehand:
//
//   plan.N      culprit -> runtime   what to patch, sites, contexts, types
//   control     culprit -> runtime   which plan is wanted; looked at every 10 ms
//   slots.PID   runtime -> culprit   one UnitSlot per thread, counters
//   ring.PID    runtime -> culprit   violations and unit samples, lock-free
//   modules.PID    runtime -> culprit   in training, a line a module: index (decimal), bias, end
//                                       (hexadecimal), build-id ("-": none), path
//   functions.PID  runtime -> culprit   FunctionRecord by function id
//   log.PID.TID    runtime -> culprit   LogHeader, then words of the training log
//   held.PID       culprit -> runtime   HeldThread by thread, while they are held
//
// All integers are little-endian, all times nanoseconds of CLOCK_MONOTONIC
// unless named ticks. The folder's name reaches the target in kSessionVariable,
// or as the argument of culprit_guard_start() when attached. No member is a
// pointer; readers check magic, version, sizes and every index.
#pragma once

#include <atomic>
#include <cstdint>

namespace culprit::guard::wire {

inline constexpr char kSessionVariable[] = "CULPRIT_GUARD_SESSION";
inline constexpr uint32_t kWireVersion = 9;
// Behind the name of a file (modules.PID, functions.PID) that a process wrote anew as another
// user than it was: it cannot change the first one, and this one is right.
inline constexpr char kLaterFile[] = ".later";
inline constexpr uint32_t kContextWords = 8;  // distinct contexts of a plan: 512 at most
inline constexpr uint32_t kMaxThreads = 4096;
inline constexpr uint32_t kMaxFrames = 96;
inline constexpr uint32_t kIslands = 8;  // of trampolines, that culprit hears of
inline constexpr uint64_t kIslandBytes = 1ull << 20;
inline constexpr uint32_t kMaxBuildId = 32;

constexpr uint64_t Magic(const char (&text)[9]) {
  uint64_t magic = 0;
  for (int i = 7; i >= 0; --i) magic = magic << 8 | static_cast<uint8_t>(text[i]);
  return magic;
}

// ---- the plan ---------------------------------------------------------------

enum class Mode : uint32_t {
  kOff = 0,        // nothing is done but at the wait calls
  kTrain = 1,      // every function of every module not in a kSkip module writes its entry
  kCalibrate = 2,  // guards as in kGuard, and every unit is a sample in the ring
  kGuard = 3,
};

// A loadable file. In kTrain the listed ones carry flags only and all others are
// patched; in the other modes functions refer to it by index. A module whose
// build-id differs from the loaded one's is left alone and counted.
struct PlanModule {
  enum Flags : uint32_t { kSkip = 1 };
  uint32_t flags;
  uint32_t build_id_size;
  uint8_t build_id[kMaxBuildId];
  char file_name[216];  // the last part of the path, ends with 0
};

// A function whose entry is patched. offset: its address in the ELF file's own
// address space (what .eh_frame_hdr says).
struct PlanFunction {
  enum Flags : uint32_t {
    kHandler = 1,  // entered in one of its contexts with kBoundary: a sub-unit begins
    kCommand = 2,  // the same inside a handler (pipelined commands): ends the handler's unit
                   // or the command before
  };
  uint64_t offset;
  uint32_t module;
  uint32_t flags;
  uint32_t first_context;  // its contexts are consecutive
  uint32_t contexts;
};

// <function, depth>, optionally told apart by the return address; the first of a
// function's contexts that fits an entry is the entry's. depth: stack
// pointer of the loop's site (UnitSlot::base_sp) minus stack pointer at entry,
// both rounded down to 16 as the training log has them.
struct PlanContext {
  enum Flags : uint32_t {
    kBoundary = 1,  // entering it begins a sub-unit
    kTail = 2,      // entering it after a handler ends that and begins the iteration's tail
    kNoBit = 4,     // a boundary that tells nothing about the type: sets no bit
    kTurn = 8,      // entering it ends the iteration and begins another (PlanSite::kTurns)
  };
  int32_t depth;
  uint32_t flags;
  uint32_t bit;            // of the unit's context set
  uint32_t return_module;  // kAnyReturn: not looked at
  uint64_t return_offset;
};
inline constexpr uint32_t kAnyReturn = 0xffffffff;

// A wait call that ends and begins iterations of a loop: known by the call and
// by the return address into the program's own module. The stack pointer is that
// at entry of the call, rounded down to 16. One call may head several loops (that
// of an event library) or none (a wait somewhere in a unit): it heads the loop
// whose holder's frame has base_sp as its stack pointer at entry. The same call
// deeper in a unit, while the holder of the thread's base_sp is on the stack, is an
// ordinary wait of that unit; one further out replaces base_sp (the outermost wins).
struct PlanSite {
  enum Flags : uint32_t {
    // A thread waits here to be given work by others, and then has a loop of its own:
    // the wait ends that loop, and begins nothing.
    kHandOver = 1,
    // The loop looks for work, by a call with kTurn, and waits here only if there is none:
    // what it does between the call and the wait belongs to no unit.
    kTurns = 2,
    // A wait for other threads that the loop's holder makes itself, or by what it calls
    // (kParkingFrames), is like one with kHandOver, wherever in it.
    kParks = 4,
  };
  uint64_t return_offset;
  uint32_t module;
  uint32_t call;  // WaitCall
  uint32_t loop;
  int32_t base_offset;     // base_sp = stack pointer at the call + this
  uint32_t holder_module;  // kAnyHolder: not looked at
  uint32_t flags;
  uint64_t holder_offset;  // where the function begins
};
inline constexpr uint32_t kAnyHolder = 0xffffffff;
inline constexpr uint32_t kParkingFrames = 2;  // from such a wait's caller to the holder, with both

enum class UnitKind : uint32_t { kIteration = 0, kHandler = 1, kCommand = 2, kTail = 3 };

struct PlanType {
  enum Flags : uint32_t {
    kRare = 1,  // hardly seen in training: units are of it only if they are much like it
  };
  uint32_t kind;  // UnitKind
  uint32_t loop;
  uint32_t flags;
  uint32_t unused;
  uint64_t threshold_ns;  // of wall time without run delay
  uint64_t contexts[kContextWords];
};

struct PlanHeader {
  uint64_t magic;  // Magic("CGPLAN01")
  uint32_t version;
  uint32_t mode;
  uint64_t bytes;     // of the whole file
  uint64_t checksum;  // FNV-1a (64 bit) of everything behind the header
  uint32_t modules, functions, contexts, sites, types, context_bits;
  uint64_t floor_ns;              // no unit below is ever reported
  uint64_t unknown_ns;            // threshold of units like no type
  uint64_t iteration_ns;          // of a whole iteration, per ready event; 0: not checked
  uint32_t min_similarity_ppm;    // below: unknown type
  uint32_t hit_counting;          // 1: the paper's counting of hits instead of Jaccard
  uint32_t max_reports_a_second;  // of stacks, per process
  uint32_t sample_every;          // kGuard: one unit in so many is a sample too; 0: none
  uint64_t max_hits_a_second;  // of one function, per process: above it is unpatched; 0: no bound
  uint64_t log_bytes;          // kTrain: of logs per process at most
  uint64_t log_times;          // kTrain, 1: every entry with its time, and of detoured calls only
                               // their places (kTime, kPlace, kOwnWork)
};
// Behind it, in this order, the arrays: PlanModule, PlanFunction, PlanContext,
// PlanSite, PlanType, each 8-byte aligned (their sizes are multiples of 8).

// ---- control ----------------------------------------------------------------

struct Control {
  uint64_t magic;  // Magic("CGCTRL01")
  uint32_t version;
  // plan.N is wanted; the runtime changes over at the next unit boundary of any
  // thread. kRemove: every original byte is restored, wait calls included.
  std::atomic<uint32_t> wanted;
  std::atomic<uint64_t> collector_beat_ns;  // of culprit; older than 5 s: nobody listens
};
inline constexpr uint32_t kRemove = 0xffffffff;

// ---- slots ------------------------------------------------------------------

// Written by its thread alone; culprit reads it to find units that hang. The
// sequence is odd while the thread changes it. The first 64 bytes and the contexts
// are what guards and the ends of units touch.
struct alignas(64) UnitSlot {
  std::atomic<uint32_t> tid;  // 0: free
  std::atomic<uint32_t> sequence;
  uint64_t base_sp;
  uint64_t hits, units;      // of this thread so far; first hits (Hook) as by samples
  uint64_t begin_ticks;      // of the unit; 0: the thread waits
  uint64_t deadline_ticks;   // a guard that is hit later asks whether it is too slow
  uint64_t overdue_ticks;    // the unit may last so long; culprit looks at it from then on
  uint32_t kind;             // UnitKind
  uint32_t done;             // sub-units begun in the iteration
  uint64_t iteration_ticks;  // begin of the iteration
  uint32_t loop;
  uint32_t ready;  // events of the iteration
  uint64_t contexts[kContextWords];
  uint64_t delay_ns;       // run delay as last read...
  uint64_t delay_ticks;    // ...at this time; 0: never
  uint64_t read_ns;        // delay_ticks by the clock of the records
  uint64_t trickle_ticks;  // an output may trickle since then (trickle.h); 0: none does
};

struct SlotsHeader {
  uint64_t magic;  // Magic("CGSLOT01")
  uint32_t version;
  uint32_t pid;
  uint32_t parent_pid;                    // of the process it was forked from with guards; 0
  std::atomic<uint32_t> plan;             // that is in force
  std::atomic<uint32_t> patched;          // functions
  std::atomic<uint32_t> refused;          // functions that could not be patched
  std::atomic<uint32_t> removed;          // by the back-off
  std::atomic<uint32_t> foreign_modules;  // build-id differs from the plan's
  std::atomic<uint64_t> lost_log_bytes, lost_records, units, violations, suppressed;
  // ns = base_ns + (ticks - base_ticks) * ticks_mult >> 32
  uint64_t base_ticks, base_ns, ticks_mult;
  std::atomic<uint32_t> ended;  // the runtime let go (exit, removal)
  std::atomic<uint32_t> slots;  // none at or above it was ever used
  // Where trampolines are: the begins of kIslandBytes each; 0: no more.
  std::atomic<uint64_t> islands[kIslands];
};
// Behind it kMaxThreads slots, at offset 256. Slots fill from the front. A child
// makes its files at its first unit (one that only execs makes none), through a
// descriptor of the folder, when it may have given up its user's rights: the
// folder must let anybody create files in it.
inline constexpr uint32_t kSlotsOffset = 256;
static_assert(sizeof(SlotsHeader) <= kSlotsOffset);

// ---- held.PID ---------------------------------------------------------------

// While culprit holds the process's other threads: where they are. A process that has changed
// its user may not read that of itself in /proc.
struct HeldThread {
  uint64_t tid, program_counter;
};

// ---- ring -------------------------------------------------------------------

// A bounded queue of many writers and one reader. Cell n%kRingCells is free for
// number n when turn == 2*(n/kRingCells), full when it is one more. A writer that
// finds the cell of number `head` free takes the number by compare-and-exchange of
// `head` (it never takes a number that it cannot write: the reader would wait for
// it for ever), and gives up (lost_records) when the cell is not free.
inline constexpr uint32_t kRingCells = 1024;
inline constexpr uint32_t kCellBytes = 1024;

enum class RecordKind : uint32_t { kViolation = 1, kSamples = 2, kModules = 3, kPlanLoaded = 4 };

struct Violation {
  enum Flags : uint32_t {
    kUnknownType = 1,
    kIterationCheck = 2,
    kStackFromSite = 4,  // taken at the unit's end: says where the loop is, not what was slow
    kStillRunning = 8,   // at a guard past the deadline: stack, type and times as they were then
    kEndOfRunning = 16,  // a unit told of by kStillRunning has ended. It may have kept its
                         // threshold in the end
    kTrickles = 32,      // not one unit, but many that wrote to one descriptor (trickle.h)
  };
  uint32_t type;  // index in the plan; kUnknown
  uint32_t flags;
  uint32_t tid, loop, unit_kind, similarity_ppm;
  // Of a tail all parts of its iteration, which begin with it; the threshold is
  // then that of its type for each ready event. A unit's records have one begin_ns,
  // and so has its sample.
  uint64_t begin_ns, wall_ns, run_delay_ns, cpu_ns, threshold_ns;
  uint64_t units;    // kTrickles: so many; `ready`: the events of all of them
  uint64_t told_ns;  // when this was written: between a tail's parts there are handlers
  uint64_t contexts[kContextWords];
  uint32_t frames, ready;
  uint64_t frame[kMaxFrames];  // innermost first, return addresses
};
inline constexpr uint32_t kUnknown = 0xffffffff;
inline constexpr uint32_t kWholeIteration = 0xfffffffe;

struct Sample {
  uint32_t type;  // or kUnknown, or kWholeIteration: time per ready event of an
                  // iteration that was also cut into sub-units
  uint32_t tid;
  uint64_t begin_ns;
  uint64_t wall_ns;       // a tail's for each ready event
  uint32_t run_delay_ns;  // saturated
  uint32_t similarity_ppm;
};

struct Cell {
  std::atomic<uint64_t> turn;
  uint32_t kind;   // RecordKind
  uint32_t count;  // of samples
  union {
    Violation violation;
    Sample samples[(kCellBytes - 16) / sizeof(Sample)];
    uint8_t bytes[kCellBytes - 16];
  };
};
static_assert(sizeof(Cell) == kCellBytes);

struct RingHeader {
  uint64_t magic;  // Magic("CGRING01")
  uint32_t version;
  uint32_t cells;
  alignas(64) std::atomic<uint64_t> head;  // next number to write
  alignas(64) std::atomic<uint64_t> tail;  // next number to read
};
// Behind it kRingCells cells, at offset 256.
inline constexpr uint32_t kRingOffset = 256;
static_assert(sizeof(RingHeader) <= kRingOffset);

// ---- functions and training log ----------------------------------------------

struct FunctionsHeader {
  uint64_t magic;  // Magic("CGFUNC01")
  uint32_t version;
  uint32_t inherits_pid;  // ids below first_id are that process's; 0: none
  uint32_t first_id;
  uint32_t reserved;
};
struct FunctionRecord {
  uint64_t offset;  // in the ELF file's address space
  uint32_t module;  // index of modules.PID
  uint32_t size;
};

struct LogHeader {
  uint64_t magic;  // Magic("CGLOG_01")
  uint32_t version;
  uint32_t pid, tid, parent_pid;
  uint64_t begin_ns;
};

// The log is a sequence of records. The first word is kind << 60 | a << 40 | b;
// some kinds are followed by more words.
enum class LogKind : uint32_t {
  kEnter = 1,      // a: function id, b: stack pointer at entry >> 4 (low 40 bits); words: the
                   // return address, without authentication bits
  kWaitEnter = 2,  // a: WaitCall, b: stack pointer at entry of the call >> 4; words: ns, object,
                   // site (return address), flags (LogWait)
  kWaitExit = 3,   // a: WaitCall, b: ready events (0: timed out or failed); words: ns, result,
                   // bytes read (0 if it reads nothing)
  kStack = 4,      // a: frames; once per new (site, sp) of the thread, right behind kWaitEnter;
                   // words: per frame, innermost first, the return address (the first is the
                   // site) and the stack pointer at entry of the function it lies in
                   // (arm64: its CFA, x86-64: its CFA - 8; 0: not known)
  kRead = 5,       // b: bytes that a call which is no boundary received; words: object
  kWake = 6,       // a: WakeCall; words: ns, object: what it signals (address, or device:inode
                   // of eventfd, pipe, socket pair as kObjectFd forms it)
  kLost = 7,       // b: bytes of log lost here
  kThread = 8,     // a thread begins; words: ns, tid of its maker (0: unknown)
  kFork = 9,       // in the maker; b: pid of the child; words: ns
  kTime = 10,      // a and b together: ns; of the next record, which is kEnter or kPlace
  kPlace = 11,     // a detoured call, which writes no kEnter; b: stack pointer at its entry >> 4;
                   // words: the return address
  kOwnWork = 12,   // the runtime's own system calls; words: from ns, until ns
};

// An object that is a file descriptor: this bit, and a hash of device and inode
// (of the descriptor's number where all of a kind share one inode: eventfd,
// epoll). Both ends of a pipe are one object.
inline constexpr uint64_t kObjectFd = uint64_t{1} << 63;

struct LogWait {
  enum Flags : uint64_t { kNonBlocking = 1, kTimeout = 2 };  // kTimeout: it has a finite one
};

enum class WaitCall : uint32_t {
  kEpoll = 1,
  kPoll,
  kSelect,
  kAccept,
  kRead,
  kReceive,
  kCondition,
  kSemaphore,
  kFutex,
  kSleep,
  kSignal,
  kAio,
  kLock,
  kChild,
  kOther,
};

enum class WakeCall : uint32_t {
  kConditionSignal = 1,
  kConditionBroadcast,
  kSemaphore,
  kFutex,
  kWrite,  // write to a pipe, eventfd, socket pair
  kUnlock,
};

}  // namespace culprit::guard::wire
