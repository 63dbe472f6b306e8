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
#include "causality/evidence_codec.h"
#include "episode/syscall_trace.h"
#include "foreign_samples.h"
#include "guard/learn.h"
#include "guard/plan_builder.h"
#include "guard/profile_codec.h"
#include "guard/random_profile.h"
#include "guard/simulated_server.h"
#include "import/ctf_test_trace.h"
#include "import/etl_image_builder.h"
#include "import/ring_buffer_sample.h"
#include "import/uftrace_builder.h"
#include "scale/pattern_codec.h"
#include "scale/profile_part_codec.h"
#include "stackmine/evidence_codec.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"
#include "waitgraph/timelines.h"
#include "waitgraph/timelines_random.h"

namespace {

using namespace culprit;  // the table names every maker of seeds

Seeds ProfileSeeds() {
  Seeds seeds;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    guard::Profile profile = guard::RandomProfile(seed);
    guard::ChooseTypesAndGuards(profile, {});
    seeds.push_back(guard::EncodeProfile(profile));
  }
  return seeds;
}

Seeds PlanSeeds() {
  Seeds seeds = {guard::TrainPlan()};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    guard::Profile profile = guard::RandomProfile(seed);
    guard::ChooseTypesAndGuards(profile, {});
    seeds.push_back(guard::BuildPlan(profile, guard::wire::Mode::kGuard));
  }
  return seeds;
}

Seeds TrainingLogSeeds() {
  Seeds seeds;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    guard::SimulatedProcess process(7);
    guard::SimulatedThread thread(process, 7);
    if (seed == 4) thread.LogTimes();
    guard::SimulatedServer(thread, {.seed = seed, .iterations = 10 * seed}).Run();
    seeds.push_back(thread.Words());
  }
  return seeds;
}

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

// The examples of [MS-XCA], and a table that gives all codes one length.
Seeds EtlXpressSeeds() {
  return {std::string("\x3f\0\0\0", 4) + "abcdefghijklmnopqrstuvwxyz",
          std::string("\xff\xff\xff\x1f\x61\x62\x63\x17\0\x0f\xff\x26\1", 13),
          std::string(256, '\x99') + "some bits of codes"};
}

Seeds EtlImageSeeds() { return {import_::SmallEtlImage(), import_::SmallEtlImage(0x14c)}; }

// One probe, "db:start", after the byte that says how wide addresses are.
Seeds UsdtNotesSeeds() {
  using namespace std::string_literals;
  const std::string head = "\x08\0\0\0\x21\0\0\0\x03\0\0\0stapsdt\0"s;
  return {"\x01"s + head + std::string(24, '\x01') + "db\0start\0"s + std::string(3, '\0')};
}

Seeds UsdtArgumentSeeds() {
  return {"8@x20 8@x21 -4@x0", "-4@[sp, 152] 8@[x1]", "8@%rbx 8@%r12 -4@%eax",
          "-4@-20(%rbp) 8@(%rsi)", "8@$5 8@name+8(%rip)"};
}

Seeds MineEvidenceSeeds() {
  Seeds seeds;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const trace::Trace made = waitgraph::RandomSchedule({.seed = seed, .steps = 60}).Make();
    seeds.push_back(EncodeEvidence(stackmine::ReduceTrace(waitgraph::Timelines(made), "t", {})));
  }
  return seeds;
}

Seeds CausesEvidenceSeeds() {
  Seeds seeds;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const trace::Trace made = waitgraph::RandomSchedule({.seed = seed, .steps = 60}).Make();
    seeds.push_back(EncodeEvidence(causality::ExtractTrace(waitgraph::Timelines(made), "t", {})));
  }
  return seeds;
}

Seeds PatternSeeds() {
  mine::WeightedSequences stacks;
  for (uint32_t i = 0; i < 40; ++i) {
    stacks.Add(std::vector<mine::Symbol>{1, 2, i / 10, i, i * 1000}, 1000 + i);
  }
  const mine::Subtree subtree = MineSubtree(stacks, {0, 1}, {.lambda = 5000, .jobs = 1});
  return {scale::EncodeDatabase(stacks), scale::EncodeSubtree(subtree)};
}

Seeds ProfilePartSeeds() {
  episode::SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;app!Fill");
  made.Call("t", "write", 20, 1, "app!main");
  made.Call("u", "read", 30, 1, "app!main;app!Fill");
  episode::ProfileBuilder builder({});
  builder.Add(made.small.Reader());
  return {scale::EncodeProfilePart(builder.TakePart())};
}

struct Row {
  std::string_view target;
  Seeds (*make)();
};
constexpr Row kRows[] = {
    {"archive_fuzz", ArchiveSeeds},
    {"causes_evidence_fuzz", CausesEvidenceSeeds},
    {"ctf_fuzz", CtfSeeds},
    {"elf_file_fuzz", ElfSeeds},
    {"etl_fuzz", EtlSeeds},
    {"etl_xpress_fuzz", EtlXpressSeeds},
    {"etl_image_file_fuzz", EtlImageSeeds},
    {"event_format_fuzz", EventFormatSeeds},
    {"folded_fuzz", FoldedSeeds},
    {"frame_ranges_fuzz", FrameRangesSeeds},
    {"ftrace_text_fuzz", FtraceTextSeeds},
    {"jfr_fuzz", JfrSeeds},
    {"mine_evidence_fuzz", MineEvidenceSeeds},
    {"perf_data_fuzz", PerfDataSeeds},
    {"perf_script_fuzz", PerfScriptSeeds},
    {"perfetto_fuzz", PerfettoSeeds},
    {"pattern_codec_fuzz", PatternSeeds},
    {"plan_view_fuzz", PlanSeeds},
    {"pprof_fuzz", PprofSeeds},
    {"guard_profile_file_fuzz", ProfileSeeds},
    {"profile_part_fuzz", ProfilePartSeeds},
    {"ring_buffer_fuzz", RingBufferSeeds},
    {"scap_fuzz", ScapSeeds},
    {"strace_fuzz", StraceSeeds},
    {"trace_dat_fuzz", TraceDatSeeds},
    {"trace_reader_fuzz", TraceSeeds},
    {"training_log_fuzz", TrainingLogSeeds},
    {"uftrace_fuzz", UftraceSeeds},
    {"unwind_cfi_fuzz", FrameRangesSeeds},
    {"usdt_argument_fuzz", UsdtArgumentSeeds},
    {"usdt_notes_fuzz", UsdtNotesSeeds},
    {"xperf_csv_fuzz", XperfCsvSeeds},
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
