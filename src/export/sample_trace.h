// SPDX-License-Identifier: Apache-2.0
//
// SampleTrace: a trace made by hand for the tests of exporters. It has every
// kind of event, events with and without stacks, hostile names, an instance,
// and, encoded with blocks of four events, several blocks. No part of the
// product uses it.
#pragma once

#include <string>

#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::export_ {

inline constexpr std::string_view kHostileFunction = "operator()(int; char)\n\xff";

inline trace::Trace SampleTrace() {
  using namespace trace;
  Trace t;
  t.metadata.machine = "m1";
  t.metadata.source = "hand";
  t.metadata.begin_ns = 1000;
  t.metadata.end_ns = 2000;
  t.metadata.cpus = 2;
  t.metadata.has_switches = true;
  t.metadata.has_wakers = true;
  t.metadata.labels["release"] = "\"7\"";
  t.metadata.properties["drops.cpu0"] = "3";
  Dictionary& d = t.dictionary;
  Process browser;
  browser.pid = 10;
  browser.name = d.Intern("my browser");
  browser.command_line = d.Intern("browser --tab=\"a;b\"");
  Thread ui{.tid = 11, .process = d.AddProcess(browser), .name = d.Intern("UI"), .start_ns = 1000};
  Thread worker{.tid = 12, .process = ui.process, .name = d.Intern("W0")};
  Thread disk{.name = d.Intern("disk"), .kind = ThreadKind::kDevice};
  const ThreadId a = d.AddThread(ui), b = d.AddThread(worker), dev = d.AddThread(disk);
  const FrameId main = d.InternFrame("app", "main");
  const FrameId lock = d.InternFrame("fs.sys", "AcquireMDU");
  const FrameId odd = d.InternFrame("app", kHostileFunction);
  Frame unnamed;
  unnamed.module = d.frames()[main.value].module;
  unnamed.offset = 0x1a2b;
  const StackId in_main = d.InternStack({main});
  const StackId waiting = d.InternStack({main, lock});
  const StackId strange = d.InternStack({main, odd, d.InternFrame(unnamed)});
  const int64_t scenario = d.Intern("TabCreate").value;
  t.instances.push_back(
      {.scenario = d.Intern("TabCreate"), .thread = a, .t0_ns = 1000, .t1_ns = 1900});
  const auto add = [&](Event event) { t.events.push_back(event); };
  add({.time_ns = 1000,
       .thread = a,
       .kind = EventKind::kMarker,
       .flags = kBegin,
       .arg0 = scenario,
       .arg1 = 5});
  add({.time_ns = 1000,
       .dur_ns = 100,
       .thread = a,
       .stack = in_main,
       .cpu = 0,
       .kind = EventKind::kRunning});
  add({.time_ns = 1100,
       .dur_ns = 300,
       .thread = a,
       .peer = b,
       .stack = waiting,
       .kind = EventKind::kWait});
  add({.time_ns = 1400,
       .dur_ns = 50,
       .thread = a,
       .peer = b,
       .stack = waiting,
       .cpu = 0,
       .kind = EventKind::kReady,
       .flags = kPreempted | kInferred});
  add({.time_ns = 1450,
       .dur_ns = 350,
       .thread = a,
       .cpu = 0,
       .kind = EventKind::kRunning,
       .flags = kNotSampled});
  add({.time_ns = 1000,
       .dur_ns = 200,
       .thread = b,
       .peer = dev,
       .stack = strange,
       .kind = EventKind::kWait});
  add({.time_ns = 1200,
       .dur_ns = 700,
       .thread = b,
       .stack = strange,
       .cpu = 1,
       .kind = EventKind::kRunning});
  add({.time_ns = 1900,
       .dur_ns = 100,
       .thread = b,
       .kind = EventKind::kWait,
       .flags = kWakerUnknown});
  add({.time_ns = 1400,
       .thread = b,
       .peer = a,
       .stack = strange,
       .cpu = 1,
       .kind = EventKind::kUnwait});
  add({.time_ns = 1050,
       .dur_ns = 150,
       .thread = dev,
       .peer = b,
       .stack = waiting,
       .kind = EventKind::kHardware,
       .arg0 = 4096,
       .arg1 = 1});
  add({.time_ns = 1100,
       .dur_ns = 300,
       .thread = a,
       .stack = in_main,
       .kind = EventKind::kSyscall,
       .arg0 = 98,
       .arg1 = -11});
  add({.time_ns = 1460, .dur_ns = 10, .thread = a, .stack = waiting, .kind = EventKind::kCall});
  add({.time_ns = 1900,
       .thread = a,
       .kind = EventKind::kMarker,
       .flags = kEnd,
       .arg0 = scenario,
       .arg1 = 5});
  return t;
}

inline std::string SampleBytes() {
  return trace::EncodeTrace(SampleTrace(), {.block_events = 4, .zstd_level = 1});
}

inline trace::TraceReader SampleReader() {
  return std::move(trace::TraceReader::FromBytes(SampleBytes(), "sample")).value();
}

// The sample with the event block number `index` damaged.
inline std::string DamagedBytes(size_t index) {
  std::string bytes = SampleBytes();
  const trace::BlockInfo block = SampleReader().blocks()[index];
  char& last = bytes[block.offset + block.length - 1];
  last = static_cast<char>(last ^ 0x55);
  return bytes;
}

}  // namespace culprit::export_
