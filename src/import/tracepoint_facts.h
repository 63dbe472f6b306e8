// SPDX-License-Identifier: Apache-2.0
//
// TracepointFacts: raw records of kernel tracepoints, read by the formats that
// came with them, to facts for the Assembler: switches, wakings, system calls,
// block requests, life cycles, trace marks, traced functions. The one decoder
// for whatever carries records of the kernel's ring buffer (trace.dat, raw
// pages). Records come in order of time, each with the stacks that followed it.
//
// sched_wakeup counts only as long as no sched_waking was seen, the events of
// single system calls only as long as no raw_syscalls were, so a recording of
// both is not counted twice. Memory: the formats, names and open calls of
// threads. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "import/event_format.h"
#include "import/kernel_stacks.h"
#include "import/trace_mark.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

struct TracepointRecord {
  int64_t time_ns = 0;
  uint16_t cpu = assemble::kNoCpu;
  uint64_t offset = 0;  // where it stood in the input, for diagnostics
  std::string_view data;
  std::string_view kernel_stack;  // whole records of ftrace:kernel_stack and
  std::string_view user_stack;    // ftrace:user_stack; empty: none
};

class TracepointFacts {
 public:
  enum class Kind : uint8_t {
    kNone,  // no such event in the formats
    kUnused,
    kSwitch,
    kWaking,
    kWakeup,
    kWakeupNew,
    kFork,
    kExit,
    kExec,
    kNewTask,
    kRename,
    kRawEnter,
    kRawExit,
    kEnter,
    kExitCall,
    kBlockIssue,
    kBlockComplete,
    kIrqEntry,
    kIrqExit,
    kSoftirqEntry,
    kSoftirqExit,
    kPrint,
    kFunction,
    kGraphEntry,
    kGraphExit,
    kKernelStack,
    kUserStack,
  };

  // All outlive this object; `symbols` may be nullptr.
  TracepointFacts(trace::TraceWriter& writer, assemble::Assembler& assembler,
                  Diagnostics& diagnostics, const symbol::KernelSymbols* symbols, ByteOrder order,
                  size_t long_bytes);

  void AddFormat(EventFormat format);
  size_t formats() const { return format_count_; }
  // A name from a list beside the records, for a thread whose records have none.
  void AddThreadName(int64_t tid, std::string_view name) { listed_names_[tid] = name; }
  // The kind of a record by its first two bytes.
  Kind KindOf(std::string_view data) const;

  Status Feed(const TracepointRecord& record);
  // Writes what is still open. Times of all records lie within [first, last].
  Status Finish();
  bool any() const { return records_ != 0; }
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }
  uint64_t records() const { return records_; }
  uint64_t unused() const { return unused_; }

 private:
  static constexpr size_t kFields = 5;
  struct Handler {
    Kind kind = Kind::kNone;
    std::unique_ptr<EventFormat> format;
    std::array<const EventField*, kFields> fields = {};
    const EventField* pid = nullptr;
    const EventField* flags = nullptr;
  };
  struct OpenCall {
    int64_t time_ns = 0;
    uint64_t address = 0;
    trace::StackId stack;
  };
  struct CpuState {
    std::string irq;  // the handler that runs, if any
    int64_t softirq = -1;
  };
  struct Known {
    size_t name_hash = 0;
    int64_t pid = -1;
  };
  using Fields = std::array<const EventField*, kFields>;

  Status Dispatch(const Handler& handler, const RecordView& view, const TracepointRecord& record);
  Status Switch(const Fields& fields, const RecordView& view, const TracepointRecord& record);
  Status Waking(const Handler& handler, const RecordView& view, const TracepointRecord& record,
                int64_t waker_tid, int64_t wakee_tid);
  void Fork(const Fields& fields, const RecordView& view, const TracepointRecord& record);
  Status Block(const Handler& handler, const RecordView& view, const TracepointRecord& record,
               int64_t tid);
  Status GraphExit(uint64_t address, const TracepointRecord& record, int64_t tid);
  Status GraphEntry(uint64_t address, const TracepointRecord& record, int64_t tid);
  Status Function(const Fields& fields, const RecordView& view, const TracepointRecord& record,
                  int64_t tid);
  void Interrupt(const Handler& handler, const RecordView& view, uint16_t cpu);
  void Name(int64_t tid, std::string_view name);
  std::string_view DeviceOn(uint16_t cpu) const;
  void ReadStack(std::string_view record, Kind kind);
  trace::StackId StackOf(const TracepointRecord& record);

  trace::TraceWriter& writer_;
  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  ByteOrder order_;
  size_t long_bytes_;
  KernelStacks kernel_;
  TraceMarks marks_;
  std::vector<std::unique_ptr<Handler>> handlers_;  // by common_type
  const Handler* kernel_stack_ = nullptr;
  const Handler* user_stack_ = nullptr;
  TaskStates states_;
  std::unordered_map<int64_t, Known> threads_;
  std::unordered_map<int64_t, std::string> listed_names_;
  std::unordered_map<int64_t, std::vector<OpenCall>> calls_;
  std::vector<CpuState> cpus_;
  std::vector<uint64_t> addresses_;
  std::vector<trace::FrameId> frames_;
  std::vector<uint8_t> traits_;
  size_t format_count_ = 0;
  bool any_waking_ = false;
  bool any_raw_syscall_ = false;
  uint64_t records_ = 0;
  uint64_t unused_ = 0;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
  // What a new task's clone flags said, until its fork record.
  int64_t new_task_ = -1;
  bool new_task_is_thread_ = false;
};

}  // namespace culprit::import_
