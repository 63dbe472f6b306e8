// SPDX-License-Identifier: Apache-2.0
//
// ForeignSamples: small inputs of every format that import reads, written by the
// builders of its tests and by our own exporters. Fuzz targets start from them
// (make_seeds.cc), and every importer is held to what it must survive on them
// (foreign_cut_test.cc). No part of the product uses it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/sample_trace.h"
#include "export/target.h"
#include "import/archive.h"
#include "import/ctf_test_trace.h"
#include "import/etl_builder.h"
#include "import/jfr_builder.h"
#include "import/perf_data_builder.h"
#include "import/ring_buffer_sample.h"
#include "import/scap_builder.h"
#include "import/stored_bytes.h"
#include "import/trace_dat_builder.h"
#include "import/uftrace_builder.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace culprit {

using Seeds = std::vector<std::string>;

inline Seeds PerfScriptSeeds() {
  return {"app 12/13 [001] 1.000001: 1000 cpu-clock:\n\t  4010 main+0x10 (/bin/app)\n\n",
          "app 12 [001] 1.5: sched:sched_switch: prev_comm=app prev_pid=12 prev_prio=120 "
          "prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\n"};
}

inline Seeds FoldedSeeds() { return {"main;f;g 12\nmain;f 3\n", "app-12/13;main;f_[k] 7\n"}; }

inline Seeds FtraceTextSeeds() {
  return {
      "# tracer: nop\n app-12 (12) [001] d..2 1.000001: sched_waking: comm=b pid=13 "
      "prio=120 target_cpu=001\n app-12 (12) [001] ... 1.2: tracing_mark_write: B|12|x\n",
      "  app-12 [000] 1.000001: sched_switch: prev_comm=app prev_pid=12 prev_prio=120 "
      "prev_state=S ==> next_comm=b next_pid=13 next_prio=120\n"
      "  b-13 [000] 1.000100: kernel_stack: <stack trace>\n => schedule (ffff0010)\n"};
}

inline Seeds StraceSeeds() {
  return {
      "12 1700000000.000001 read(3, \"x\", 1) = 1 <0.000010>\n"
      "12 1700000000.1 futex(0x1, FUTEX_WAIT, 1 <unfinished ...>\n",
      "[pid 7] 10:00:00.5 openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No) <0.1>\n"
      " > /lib/libc.so.6(__open+0x14) [0xe1234]\n+++ exited with 0 +++\n"};
}

inline void FillPerfData(import_::PerfDataBuilder& builder) {
  constexpr uint64_t kKernel = import_::kContextKernel;
  constexpr uint64_t kUser = import_::kContextUser;
  builder.CommRecord({.time = 0, .pid = 10, .tid = 10}, "server");
  builder.Mmap2({.pid = 10, .tid = 10}, 2, 0x400000, 0x1000, 0x2000, "/opt/server");
  builder.Switch({.time = 1000, .cpu = 0, .pid = 10, .tid = 10}, 10, 0, 1,
                 {kKernel, 0xffff800080000500, kUser, 0x400120});
  builder.Waking({.time = 4000, .cpu = 1, .pid = 20, .tid = 20}, 10);
  builder.Switch({.time = 5000, .cpu = 0, .pid = 0, .tid = 0}, 0, 10, 0);
  builder.Clock({.time = 5500, .cpu = 0, .pid = 10, .tid = 10}, {kUser, 0x400200, 0x400800});
  builder.Enter({.time = 6000, .cpu = 0, .pid = 10, .tid = 10}, 63);
  builder.Exit({.time = 6400, .cpu = 0, .pid = 10, .tid = 10}, 63, 7);
  builder.FinishedRound();
}

inline Seeds PerfDataSeeds() {
  using import_::PerfDataBuilder;
  Seeds seeds;
  for (const bool big : {false, true}) {
    for (const auto layout : {PerfDataBuilder::Layout::kFile, PerfDataBuilder::Layout::kPipe,
                              PerfDataBuilder::Layout::kDied}) {
      PerfDataBuilder builder(big);
      FillPerfData(builder);
      seeds.push_back(builder.Bytes(layout));
    }
  }
  for (const uint32_t type : {import_::kRecordCompressed, import_::kRecordCompressed2}) {
    PerfDataBuilder builder;
    FillPerfData(builder);
    builder.Compress(type, 100);
    seeds.push_back(builder.Bytes(PerfDataBuilder::Layout::kFile));
  }
  PerfDataBuilder stacks;
  stacks.UseArch("x86_64");
  stacks.UseUserState({.mask = 0xff0fff,
                       .registers = std::vector<uint64_t>(20, 0x400120),
                       .stack = std::string(64, '\1')});
  FillPerfData(stacks);
  seeds.push_back(stacks.Bytes(PerfDataBuilder::Layout::kFile));
  return seeds;
}

inline Seeds TraceDatSeeds() {
  using import_::TraceDatBuilder;
  return {TraceDatBuilder(import_::ByteOrder::kLittle, 8).Version6(),
          TraceDatBuilder(import_::ByteOrder::kBig, 4).Version6(),
          TraceDatBuilder(import_::ByteOrder::kLittle, 8).Version7("none", nullptr),
          TraceDatBuilder(import_::ByteOrder::kLittle, 8).Version7("zstd", import_::PackZstd)};
}

inline Seeds RingBufferSeeds() {
  using import_::MakeTraceDatPages;
  using import_::RingSample;
  const auto pages = MakeTraceDatPages(RingSample());
  return {pages.cpu0, pages.cpu1, pages.cpu0 + pages.cpu1};
}

// What culprit itself writes in a format it also reads.
inline Seeds ExportedSeeds(std::string_view target, bool unpack) {
  Seeds seeds;
  for (const std::string& trace :
       {export_::SampleBytes(),
        trace::EncodeTrace(trace::RandomTrace({.seed = 3, .events = 200}))}) {
    const auto reader = trace::TraceReader::FromBytes(trace, "seed");
    std::string bytes;
    const auto done = export_::FindTarget(target)->to_sink(reader.value(), {},
                                                           [&](std::string_view part) -> Status {
                                                             bytes += part;
                                                             return {};
                                                           });
    if (!done.ok()) continue;
    if (unpack) {
      import_::UnpackBudget budget{.bytes = 1 << 24, .members = 2};
      auto unpacked = import_::Unpack(import_::MemoryBytes(bytes), "seed", budget);
      if (unpacked.files.empty()) continue;
      (void)unpacked.files.front().bytes->ReadAt(0, 1 << 24, bytes);
    }
    seeds.push_back(bytes);
  }
  return seeds;
}

inline Seeds PerfettoSeeds() { return ExportedSeeds("perfetto", false); }

inline Seeds PprofSeeds() {
  Seeds seeds = ExportedSeeds("pprof", true);
  seeds.emplace_back("--- contention:\ncycles/second = 1000\n10 2 @ 0x10 0x20\n");
  return seeds;
}

inline Seeds ScapSeeds() {
  Seeds seeds;
  for (const bool big : {false, true}) {
    for (const uint32_t block :
         {import_::kScapEvent, import_::kScapEventFlagsV2, import_::kScapEventLarge}) {
      seeds.push_back(import_::SmallScap(big, block));
    }
  }
  return seeds;
}

inline Seeds JfrSeeds() {
  return {import_::SmallJfr(true), import_::SmallJfr(false), import_::SmallJfr(true, false)};
}

inline void FillEtl(import_::EtlBuilder& builder) {
  constexpr uint64_t kBegin = import_::EtlBuilder::kStart;
  builder.Process({kBegin, 0}, import_::kEtlProcessRundownStart, 100, "app.exe");
  builder.Thread({kBegin, 0}, import_::kEtlThreadRundownStart, 100, 11, "main");
  builder.Image({kBegin, 0}, import_::kEtlImageRundownStart, 100, 0x400000, 0x10000, "\\App.exe");
  builder.Switch({kBegin + 100, 0}, 0, 11);
  builder.Sample({kBegin + 150, 0}, 11, 0x400100);
  builder.Stack({kBegin + 151, 0}, kBegin + 150, 11, {0x400100, 0x400200});
  builder.Switch({kBegin + 200, 0}, 11, 0);
  builder.Ready({kBegin + 300, 1}, 11);
  builder.Switch({kBegin + 310, 0}, 0, 11);
  builder.DiskInit({kBegin + 320, 0}, import_::kEtlDiskReadInit, 0x99, 11);
  builder.DiskEnd({kBegin + 340, 0}, import_::kEtlDiskRead, 0x99, 4096, 15, 11);
}

inline Seeds EtlSeeds() {
  Seeds seeds;
  for (const size_t pointer_bytes : {size_t{4}, size_t{8}}) {
    for (const bool packed : {false, true}) {
      import_::EtlBuilder builder({.pointer_bytes = pointer_bytes, .packed = packed});
      FillEtl(builder);
      seeds.push_back(builder.Bytes());
    }
  }
  return seeds;
}

inline Seeds XperfCsvSeeds() {
  return {
      "BeginHeader\r\n"
      "  P-DCStart,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID, UniqueKey\r\n"
      "  CSwitch,  TimeStamp, New Process Name ( PID), New TID, NPri, NQnt, TmSinceLast, WaitTime,"
      " Old Process Name ( PID), Old TID, OPri, OQnt, OldState, Wait Reason, Swapable,"
      " InSwitchTime, CPU, IdealProc\r\n"
      "  ReadyThread,  TimeStamp, Process Name ( PID), ThreadID, Rdy Process Name ( PID), Rdy TID,"
      " AdjustReason, AdjustIncrement, InDPC\r\n"
      "EndHeader\r\n"
      "OS Version: 10.0.19043, Trace Size: 1KB, Events Lost: 0, PointerSize: 8\r\n"
      "P-DCStart, 0, app.exe (100), 1, 1, 0xffff\r\n"
      "CSwitch, 1000, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
      " NonSwap, 5, 0, 0\r\n"
      "CSwitch, 2000, Idle (   0), 0, 0, 0, 0, 0, app.exe (100), 11, 9, 0, Waiting, UserRequest,"
      " Swapable, 5, 0, 0\r\n"
      "ReadyThread, 2500, app.exe (100), 12, app.exe (100), 11, 0, 0, 0\r\n"
      "CSwitch, 3000, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
      " NonSwap, 5, 0, 0\r\n"};
}

struct ForeignSample {
  std::string_view format;                   // name of its importer
  std::map<std::string, std::string> files;  // by path; of a single file it is empty
};

inline std::vector<ForeignSample> ForeignSamples() {
  std::vector<ForeignSample> samples;
  const auto add = [&](std::string_view format, const Seeds& seeds) {
    for (const std::string& seed : seeds) samples.push_back({format, {{"", seed}}});
  };
  add("perf.data", PerfDataSeeds());
  add("trace.dat", TraceDatSeeds());
  add("perfetto", PerfettoSeeds());
  add("etl", EtlSeeds());
  add("pprof", PprofSeeds());
  add("perf-script", PerfScriptSeeds());
  add("ftrace-text", FtraceTextSeeds());
  add("strace", StraceSeeds());
  add("scap", ScapSeeds());
  add("jfr", JfrSeeds());
  add("xperf-csv", XperfCsvSeeds());
  add("folded", FoldedSeeds());
  for (const auto format :
       {import_::CtfTestTrace::Format::kLittle, import_::CtfTestTrace::Format::kBig,
        import_::CtfTestTrace::Format::kJson}) {
    samples.push_back({"ctf", import_::CtfTestTrace(format).files});
  }
  samples.push_back({"uftrace", import_::SmallUftrace().files});
  for (const std::string& pages : RingBufferSeeds()) {
    samples.push_back({"ring-buffer",
                       {{"formats/header_page", import_::RingSample().HeaderPage()},
                        {"formats/sched/sched_switch/format", import_::RingSample::SwitchFormat()},
                        {"formats/sched/sched_waking/format", import_::RingSample::WakingFormat()},
                        {"traces/cpu0", pages}}});
  }
  return samples;
}

}  // namespace culprit
