// SPDX-License-Identifier: Apache-2.0
#include "import/tracepoint_table.h"

#include <algorithm>

namespace culprit::import_ {
namespace {

using Kind = TracepointFacts::Kind;

constexpr std::array<TracepointRow, 24> kRows = {{
    {"sched",
     "sched_switch",
     Kind::kSwitch,
     {"prev_comm", "prev_pid", "prev_state", "next_comm", "next_pid"}},
    {"sched", "sched_waking", Kind::kWaking, {"comm", "pid"}},
    {"sched", "sched_wakeup", Kind::kWakeup, {"comm", "pid", "success"}},
    {"sched", "sched_wakeup_new", Kind::kWakeupNew, {"comm", "pid"}},
    {"sched", "sched_process_fork", Kind::kFork, {"parent_pid", "child_pid", "child_comm"}},
    {"sched", "sched_process_exit", Kind::kExit, {"comm", "pid"}},
    {"sched", "sched_process_exec", Kind::kExec, {"filename", "pid"}},
    {"task", "task_newtask", Kind::kNewTask, {"comm", "pid", "clone_flags"}},
    {"task", "task_rename", Kind::kRename, {"newcomm", "pid"}},
    {"raw_syscalls", "sys_enter", Kind::kRawEnter, {"id", "args"}},
    {"raw_syscalls", "sys_exit", Kind::kRawExit, {"id", "ret"}},
    {"block", "block_rq_issue", Kind::kBlockIssue, {"dev", "sector", "nr_sector", "bytes", "rwbs"}},
    {"block",
     "block_rq_complete",
     Kind::kBlockComplete,
     {"dev", "sector", "nr_sector", "bytes", "rwbs"}},
    {"irq", "irq_handler_entry", Kind::kIrqEntry, {"name"}},
    {"irq", "irq_handler_exit", Kind::kIrqExit, {}},
    {"irq", "softirq_entry", Kind::kSoftirqEntry, {"vec"}},
    {"irq", "softirq_exit", Kind::kSoftirqExit, {"vec"}},
    {"ftrace", "print", Kind::kPrint, {"buf"}},
    {"ftrace", "function", Kind::kFunction, {"ip", "parent_ip"}},
    {"ftrace", "funcgraph_entry", Kind::kGraphEntry, {"func"}},
    {"ftrace", "funcgraph_exit", Kind::kGraphExit, {"func"}},
    {"ftrace", "kernel_stack", Kind::kKernelStack, {"caller", "size"}},
    {"ftrace", "user_stack", Kind::kUserStack, {"caller"}},
    {"ftrace", "fgraph_retaddr_entry", Kind::kGraphEntry, {"func"}},
}};

constexpr std::array<std::string_view, 11> kKernelThreads = {
    "kworker/",  "ksoftirqd/", "migration/", "cpuhp/", "rcu_",    "kthreadd",
    "kcompactd", "kswapd",     "khugepaged", "jbd2/",  "swapper/"};

constexpr std::array<std::string_view, 9> kDisks = {"ahci", "ata_", "nvme",  "virtio-blk", "sd",
                                                    "mmc",  "ufs",  "xhci_", "megasas"};
constexpr std::array<std::string_view, 6> kNetworks = {"eth", "enp", "ens", "eno", "wlan", "mlx"};

bool StartsWithAny(std::string_view text, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

}  // namespace

TracepointRow RowOf(std::string_view system, std::string_view name) {
  for (const TracepointRow& row : kRows) {
    if (row.name == name && (system.empty() || row.system == system)) return row;
  }
  if (system == "syscalls" || system.empty()) {
    if (name.starts_with("sys_enter_")) return {system, name, Kind::kEnter, {"__syscall_nr"}};
    if (name.starts_with("sys_exit_")) {
      return {system, name, Kind::kExitCall, {"__syscall_nr", "ret"}};
    }
  }
  return {.system = system, .name = name};
}

// The fields after the number are the arguments, one by one.
const EventField* OperationField(const EventFormat& format) {
  constexpr std::string_view kEnter = "sys_enter_";
  if (!format.name.starts_with(kEnter)) return nullptr;
  const std::string_view call = std::string_view(format.name).substr(kEnter.size());
  const std::optional<size_t> argument = trace::OperationArgument(call);
  if (!argument) return nullptr;
  const auto& fields = format.fields;
  const auto number = std::find_if(fields.begin(), fields.end(), [](const EventField& field) {
    return field.name == "__syscall_nr" || field.name == "nr";
  });
  if (static_cast<size_t>(fields.end() - number) < *argument + 2) return nullptr;
  return &number[static_cast<ptrdiff_t>(*argument) + 1];
}

int64_t EnteredCall(const RecordView& view, const EventField* number, const EventField* arguments,
                    std::optional<trace::SyscallAbi> abi) {
  const int64_t call = view.Signed(number);
  if (arguments == nullptr || !abi) return call;
  return trace::PackCallWith(call, *abi, [&](size_t index) {
    if (!arguments->is_array) return view.Unsigned(arguments);
    const std::string_view all = view.Array(arguments);
    const size_t width = all.size() / trace::kCallArguments;
    if (width == 0 || width > sizeof(uint64_t)) return uint64_t{0};
    return LoadUnsigned(all, index * width, width, view.order());
  });
}

int64_t BlockOperation(std::string_view rwbs) {
  const auto has = [&](char letter) { return rwbs.find(letter) != std::string_view::npos; };
  if (has('D')) return 3;
  if (has('W')) return 1;
  if (has('R')) return 0;
  return has('F') ? 2 : 0;
}

std::string_view DeviceOfIrq(std::string_view handler) {
  if (StartsWithAny(handler, kDisks)) return "disk";
  if (StartsWithAny(handler, kNetworks)) return "net";
  if (handler.find("timer") != std::string_view::npos) return "timer";
  return handler;
}

std::string_view DeviceOfSoftirq(int64_t vector) {
  switch (vector) {
    case 1:  // TIMER
    case 8:  // HRTIMER
      return "timer";
    case 2:  // NET_TX
    case 3:  // NET_RX
      return "net";
    case 4:  // BLOCK
    case 5:  // IRQ_POLL
      return "disk";
    default:
      return {};
  }
}

bool IsKernelThreadName(std::string_view name) { return StartsWithAny(name, kKernelThreads); }

std::string_view ShortName(std::string_view path) {
  constexpr size_t kMaxName = 15;
  return path.substr(path.rfind('/') + 1).substr(0, kMaxName);
}

}  // namespace culprit::import_
