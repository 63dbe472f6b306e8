// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of a fuzz target: make_seeds TARGET FOLDER. A target that is
// not in the table starts from nothing.
#include <archive.h>
#include <archive_entry.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "export/sample_trace.h"
#include "export/target.h"
#include "import/archive.h"
#include "import/ctf_test_trace.h"
#include "import/jfr_builder.h"
#include "import/perf_data_builder.h"
#include "import/ring_buffer_sample.h"
#include "import/scap_builder.h"
#include "import/stored_bytes.h"
#include "import/trace_dat_builder.h"
#include "import/uftrace_builder.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace {

using culprit::import_::ByteOrder;
using Seeds = std::vector<std::string>;

Seeds TraceSeeds() {
  Seeds seeds;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto trace = culprit::trace::RandomTrace({.seed = seed,
                                                    .events = seed * seed * 10,
                                                    .threads = 1 + seed % 4,
                                                    .functions = 3 + seed,
                                                    .wild = seed % 3 == 0});
    std::string bytes = culprit::trace::EncodeTrace(trace, {.block_events = 30 + seed * 40});
    if (seed % 4 == 3) bytes.resize(bytes.size() * 2 / 3);
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}

Seeds PerfScriptSeeds() {
  return {"app 12/13 [001] 1.000001: 1000 cpu-clock:\n\t  4010 main+0x10 (/bin/app)\n\n",
          "app 12 [001] 1.5: sched:sched_switch: prev_comm=app prev_pid=12 prev_prio=120 "
          "prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\n"};
}

Seeds FoldedSeeds() { return {"main;f;g 12\nmain;f 3\n", "app-12/13;main;f_[k] 7\n"}; }

Seeds FtraceTextSeeds() {
  return {
      "# tracer: nop\n app-12 (12) [001] d..2 1.000001: sched_waking: comm=b pid=13 "
      "prio=120 target_cpu=001\n app-12 (12) [001] ... 1.2: tracing_mark_write: B|12|x\n",
      "  app-12 [000] 1.000001: sched_switch: prev_comm=app prev_pid=12 prev_prio=120 "
      "prev_state=S ==> next_comm=b next_pid=13 next_prio=120\n"
      "  b-13 [000] 1.000100: kernel_stack: <stack trace>\n => schedule (ffff0010)\n"};
}

Seeds StraceSeeds() {
  return {
      "12 1700000000.000001 read(3, \"x\", 1) = 1 <0.000010>\n"
      "12 1700000000.1 futex(0x1, FUTEX_WAIT, 1 <unfinished ...>\n",
      "[pid 7] 10:00:00.5 openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No) <0.1>\n"
      " > /lib/libc.so.6(__open+0x14) [0xe1234]\n+++ exited with 0 +++\n"};
}

void FillPerfData(culprit::import_::PerfDataBuilder& builder) {
  constexpr uint64_t kKernel = culprit::import_::kContextKernel;
  constexpr uint64_t kUser = culprit::import_::kContextUser;
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

Seeds PerfDataSeeds() {
  using culprit::import_::PerfDataBuilder;
  Seeds seeds;
  for (const bool big : {false, true}) {
    for (const auto layout : {PerfDataBuilder::Layout::kFile, PerfDataBuilder::Layout::kPipe,
                              PerfDataBuilder::Layout::kDied}) {
      PerfDataBuilder builder(big);
      FillPerfData(builder);
      seeds.push_back(builder.Bytes(layout));
    }
  }
  for (const uint32_t type :
       {culprit::import_::kRecordCompressed, culprit::import_::kRecordCompressed2}) {
    PerfDataBuilder builder;
    FillPerfData(builder);
    builder.Compress(type, 100);
    seeds.push_back(builder.Bytes(PerfDataBuilder::Layout::kFile));
  }
  return seeds;
}

Seeds TraceDatSeeds() {
  using culprit::import_::TraceDatBuilder;
  return {TraceDatBuilder(ByteOrder::kLittle, 8).Version6(),
          TraceDatBuilder(ByteOrder::kBig, 4).Version6(),
          TraceDatBuilder(ByteOrder::kLittle, 8).Version7("none", nullptr),
          TraceDatBuilder(ByteOrder::kLittle, 8).Version7("zstd", culprit::import_::PackZstd)};
}

Seeds RingBufferSeeds() {
  using culprit::import_::MakeTraceDatPages;
  using culprit::import_::RingSample;
  const auto pages = MakeTraceDatPages(RingSample());
  return {pages.cpu0, pages.cpu1, pages.cpu0 + pages.cpu1};
}

// As the target wants it: two bytes for the length of the metadata.
Seeds CtfSeeds() {
  using culprit::import_::CtfTestTrace;
  Seeds seeds;
  for (const auto format :
       {CtfTestTrace::Format::kLittle, CtfTestTrace::Format::kBig, CtfTestTrace::Format::kJson}) {
    const CtfTestTrace trace(format);
    const std::string& metadata = trace.files.at("metadata");
    for (const auto& [path, bytes] : trace.files) {
      if (path == "metadata") continue;
      std::string seed = {static_cast<char>(metadata.size() & 0xff),
                          static_cast<char>(metadata.size() >> 8)};
      seeds.push_back(seed + metadata + bytes);
    }
  }
  return seeds;
}

// What culprit itself writes in a format it also reads.
Seeds ExportedSeeds(std::string_view target, bool unpack) {
  Seeds seeds;
  for (const std::string& trace :
       {culprit::export_::SampleBytes(),
        culprit::trace::EncodeTrace(culprit::trace::RandomTrace({.seed = 3, .events = 200}))}) {
    const auto reader = culprit::trace::TraceReader::FromBytes(trace, "seed");
    std::string bytes;
    const auto done = culprit::export_::FindTarget(target)->to_sink(
        reader.value(), {}, [&](std::string_view part) -> culprit::Status {
          bytes += part;
          return {};
        });
    if (!done.ok()) continue;
    if (unpack) {
      culprit::import_::UnpackBudget budget{.bytes = 1 << 24, .members = 2};
      auto unpacked =
          culprit::import_::Unpack(culprit::import_::MemoryBytes(bytes), "seed", budget);
      if (unpacked.files.empty()) continue;
      (void)unpacked.files.front().bytes->ReadAt(0, 1 << 24, bytes);
    }
    seeds.push_back(bytes);
  }
  return seeds;
}

Seeds PerfettoSeeds() { return ExportedSeeds("perfetto", false); }

Seeds PprofSeeds() {
  Seeds seeds = ExportedSeeds("pprof", true);
  seeds.emplace_back("--- contention:\ncycles/second = 1000\n10 2 @ 0x10 0x20\n");
  return seeds;
}

Seeds ScapSeeds() {
  Seeds seeds;
  for (const bool big : {false, true}) {
    for (const uint32_t block : {culprit::import_::kScapEvent, culprit::import_::kScapEventFlagsV2,
                                 culprit::import_::kScapEventLarge}) {
      seeds.push_back(culprit::import_::SmallScap(big, block));
    }
  }
  return seeds;
}

Seeds JfrSeeds() {
  return {culprit::import_::SmallJfr(true), culprit::import_::SmallJfr(false),
          culprit::import_::SmallJfr(true, false)};
}

// As the target wants it: two bytes for the length of each file but the last.
Seeds UftraceSeeds() {
  const culprit::import_::UftraceBuilder data = culprit::import_::SmallUftrace();
  std::string seed;
  for (const char* path : {"app.sym", "info", "perf-cpu0.dat", "sid-abcd.map", "task.txt"}) {
    const std::string& bytes = data.files.at(path);
    seed.push_back(static_cast<char>(bytes.size() & 0xff));
    seed.push_back(static_cast<char>(bytes.size() >> 8));
    seed += bytes;
  }
  return {seed + data.files.at("10.dat")};
}

Seeds EventFormatSeeds() {
  using culprit::import_::RingSample;
  return {RingSample::SwitchFormat(), RingSample::WakingFormat(), RingSample::StackFormat(),
          RingSample().HeaderPage()};
}

std::string Packed(int (*format)(archive*), int (*filter)(archive*)) {
  std::string bytes(1 << 16, '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  format(writer);
  filter(writer);
  archive_write_open_memory(writer, bytes.data(), bytes.size(), &used);
  for (const char* path : {"run/metadata", "run/stream_0"}) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, path);
    archive_entry_set_size(entry, 5);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, "bytes", 5);
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

Seeds ArchiveSeeds() {
  return {Packed(archive_write_set_format_pax_restricted, archive_write_add_filter_gzip),
          Packed(archive_write_set_format_ustar, archive_write_add_filter_zstd),
          Packed(archive_write_set_format_gnutar, archive_write_add_filter_xz),
          Packed(archive_write_set_format_zip, archive_write_add_filter_none),
          Packed(archive_write_set_format_7zip, archive_write_add_filter_none)};
}

// Small object files that come with every C library.
Seeds ElfSeeds() {
  Seeds seeds;
  std::error_code code;
  for (const auto& folder : std::filesystem::directory_iterator("/usr/lib", code)) {
    for (const char* name : {"crt1.o", "crti.o", "libdl.so.2"}) {
      const std::filesystem::path path = folder.path() / name;
      if (!std::filesystem::is_regular_file(path, code)) continue;
      const auto bytes = culprit::ReadWholeFile(path.string());
      if (bytes.ok()) seeds.push_back(bytes.value());
    }
  }
  return seeds;
}

// An .eh_frame with one function, names, lists of symbols.
Seeds FrameRangesSeeds() {
  std::string frames("\x10\0\0\0\0\0\0\0\1zR\0\4\x78\x1e\1\x1b\x0c\x1f\0", 20);
  frames += std::string("\x10\0\0\0\x18\0\0\0\0\1\0\0\x40\0\0\0\0\0\0\0\0\0\0\0", 24);
  return {frames, "_ZN3app5QueueIiE4takeEv", "_RNvC3app4main",
          "ffff800080010000 T schedule\nffff800080010200 t helper [mod]\n",
          "7f0000 100 interpreted java.lang.String\n"};
}

struct Row {
  std::string_view target;
  Seeds (*make)();
};
constexpr Row kRows[] = {
    {"archive_fuzz", ArchiveSeeds},        {"ctf_fuzz", CtfSeeds},
    {"elf_file_fuzz", ElfSeeds},           {"event_format_fuzz", EventFormatSeeds},
    {"folded_fuzz", FoldedSeeds},          {"frame_ranges_fuzz", FrameRangesSeeds},
    {"ftrace_text_fuzz", FtraceTextSeeds}, {"jfr_fuzz", JfrSeeds},
    {"perf_data_fuzz", PerfDataSeeds},     {"perf_script_fuzz", PerfScriptSeeds},
    {"perfetto_fuzz", PerfettoSeeds},      {"pprof_fuzz", PprofSeeds},
    {"ring_buffer_fuzz", RingBufferSeeds}, {"scap_fuzz", ScapSeeds},
    {"strace_fuzz", StraceSeeds},          {"trace_dat_fuzz", TraceDatSeeds},
    {"trace_reader_fuzz", TraceSeeds},     {"uftrace_fuzz", UftraceSeeds},
};

int Write(const Seeds& seeds, const std::string& folder) {
  size_t number = 0;
  for (const std::string& seed : seeds) {
    const std::string path = folder + "/seed" + std::to_string(number++);
    const auto status = culprit::WriteWholeFile(path, seed, culprit::Overwrite::kAllow);
    if (!status.ok()) {
      std::fprintf(stderr, "make_seeds: %s\n", status.error().ToString().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_seeds TARGET FOLDER\n");
    return 2;
  }
  for (const Row& row : kRows) {
    if (row.target == argv[1]) return Write(row.make(), argv[2]);
  }
  return 0;
}
