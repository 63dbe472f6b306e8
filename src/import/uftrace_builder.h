// SPDX-License-Identifier: Apache-2.0
//
// UftraceBuilder: the files of a uftrace data folder, written down record by
// record, for tests and as seeds of the fuzz target. The program is /bin/app of
// process 10, mapped at kBase, with the functions main, work and leaf.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/perf_data_layout.h"
#include "import/source.h"
#include "import/stored_bytes.h"
#include "import/uftrace_records.h"

namespace culprit::import_ {

class UftraceBuilder {
 public:
  static constexpr uint64_t kBase = 0xaaaa00000000;
  static constexpr uint64_t kMain = kBase + 0x1008;
  static constexpr uint64_t kWork = kBase + 0x1108;
  static constexpr uint64_t kLeaf = kBase + 0x1208;

  UftraceBuilder() {
    std::string info("Ftrace!\0\4\0\0\0\x28\0\1\2", 16);
    info.resize(40);
    files["info"] = info +
                    "exename:/bin/app\nosinfo:lines=2\nosinfo:kernel=Linux 6.1.0\n"
                    "osinfo:hostname=host-a\nuftrace_version:v0.13 ( aarch64 dwarf )\n";
    files["task.txt"] =
        "SESS timestamp=0.000000100 pid=10 sid=abcd exename=\"/bin/app\"\n"
        "TASK timestamp=0.000000150 tid=10 pid=10\n"
        "TASK timestamp=0.000001500 tid=11 pid=10\n";
    files["sid-abcd.map"] =
        "aaaa00000000-aaaa00010000 r-xp 00000000 00:00 0    /bin/app build-id:ff00\n"
        "ffff00000000-ffff00010000 r-xp 00000000 00:00 0    /lib/x.so\n";
    files["app.sym"] =
        "# symbols: 5\n# path name: /bin/app\n# build-id: ff00\n"
        "0000000000001000 00000100 T main\n"
        "0000000000001100 00000100 t work\n"
        "0000000000001200 T leaf\n"
        "0000000000001300 P usleep\n"
        "0000000000001400 ? __sym_end\n";
  }

  void Add(int64_t tid, UftraceType type, uint64_t time, uint64_t depth, uint64_t address,
           std::string_view arguments = {}) {
    std::string& file = files[std::to_string(tid) + ".dat"];
    const uint64_t more = arguments.empty() ? 0 : 1;
    file += U64(time) +
            U64(static_cast<uint64_t>(type) | more << 2 | 5 << 3 | depth << 6 | address << 16);
    file += arguments;
    while (file.size() % 8 != 0) file += '\0';
  }
  void Entry(int64_t tid, uint64_t time, uint64_t depth, uint64_t address) {
    Add(tid, UftraceType::kEntry, time, depth, address);
  }
  void Exit(int64_t tid, uint64_t time, uint64_t depth, uint64_t address) {
    Add(tid, UftraceType::kExit, time, depth, address);
  }
  void Perf(int cpu, uint32_t type, uint16_t misc, int32_t tid, uint64_t time,
            std::string_view body = {}) {
    const size_t size = 8 + body.size() + 16;
    files["perf-cpu" + std::to_string(cpu) + ".dat"] +=
        Number(type, 4) + Number(misc, 2) + Number(size, 2) + std::string(body) + Number(10, 4) +
        Number(static_cast<uint32_t>(tid), 4) + U64(time);
  }

  Source Build() const {
    std::vector<SourceFile> list;
    for (const auto& [path, bytes] : files) {
      list.push_back({path, std::make_shared<MemoryBytes>(bytes)});
    }
    return Source("uftrace.data", std::move(list));
  }

  static std::string U64(uint64_t value) { return Number(value, 8); }
  static std::string Number(uint64_t value, size_t size) {
    std::string out;
    for (size_t i = 0; i < size; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
    return out;
  }

  std::map<std::string, std::string> files;  // by path
};

// Two tasks; main calls work calls leaf, with arguments; a wait, a preemption,
// lost records, an end.
inline UftraceBuilder SmallUftrace() {
  UftraceBuilder data;
  data.Entry(10, 1000, 0, UftraceBuilder::kMain);
  data.Add(10, UftraceType::kEntry, 1100, 1, UftraceBuilder::kWork, "arg");
  data.Entry(10, 1200, 2, UftraceBuilder::kLeaf);
  data.Exit(10, 1900, 2, UftraceBuilder::kLeaf);
  data.Add(10, UftraceType::kExit, 2000, 1, UftraceBuilder::kWork, std::string(12, '\x2a'));
  data.Add(10, UftraceType::kLost, 2100, 0, 7);
  data.Entry(11, 1600, 1, UftraceBuilder::kWork);
  data.Exit(11, 1700, 1, UftraceBuilder::kWork);
  data.Exit(11, 1800, 0, UftraceBuilder::kMain);
  data.Perf(0, kRecordComm, 0, 10, 900,
            UftraceBuilder::Number(10, 4) + UftraceBuilder::Number(10, 4) +
                std::string("main task\0\0\0\0\0\0\0", 16));
  data.Perf(0, kRecordSwitch, 0, 10, 950);
  data.Perf(0, kRecordSwitch, kMiscSwitchOut, 10, 1300);
  data.Perf(0, kRecordSwitch, 0, 11, 1400);
  data.Perf(0, kRecordSwitch, kMiscSwitchOut | kMiscSwitchOutPreempt, 11, 1650);
  data.Perf(0, kRecordSwitch, 0, 11, 1680);
  data.Perf(0, kRecordExit, 0, 11, 1820, std::string(24, '\0'));
  data.Perf(0, kRecordSwitch, kMiscSwitchOut, 11, 1830);
  data.Perf(1, kRecordSwitch, 0, 10, 1850);
  return data;
}

}  // namespace culprit::import_
