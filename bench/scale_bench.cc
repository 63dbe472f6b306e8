// SPDX-License-Identifier: Apache-2.0
// What stands between a corpus on disk and its evidence, stage by stage.
//
//   scale_bench CORPUS [TRACES]
//
// Over the first TRACES traces of the corpus (all, if not given), on one core, CPU
// time: the bytes from the files and the zstd frames in them (no program can do with
// less); reading and decoding the files (what any analysis must pay at least); time
// lines, which both kinds of evidence share; extraction of each; encoding, packing and
// sealing summaries, with the tables that they share in a temporary folder; opening and
// decoding them; adding up. And what the summaries and the sums take in bytes.
// Extraction as a share of the decoding rate is the time to decode over the time
// to decode and extract.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "causality/evidence_codec.h"
#include "corpus/corpus.h"
#include "corpus/sealed_bytes.h"
#include "corpus/summary_names.h"
#include "corpus/summary_stacks.h"
#include "stackmine/evidence_codec.h"
#include "trace/trace_reader.h"
#include "waitgraph/timelines.h"

namespace {

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Stopwatch {
 public:
  void Start() { begin_ = CpuSeconds(); }
  void Stop() { sum_ += CpuSeconds() - begin_; }
  double seconds() const { return sum_; }

 private:
  double begin_ = 0;
  double sum_ = 0;
};

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Kind {
  const char* name = "";
  Stopwatch extract;
  Stopwatch seal;
  Stopwatch open;
  Stopwatch add;
  uint64_t raw_bytes = 0;
  uint64_t sealed_bytes = 0;
};

// A folder for the tables that summaries share, removed at the end.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() /
              ("scale_bench-" + std::to_string(::getpid()))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

template <class Evidence, class Extract, class Decode, class Tables>
void Measure(const Extract& extract, const Decode& decode, Tables& tables, Kind& kind,
             Evidence& sum) {
  kind.extract.Start();
  const Evidence evidence = extract();
  kind.extract.Stop();
  kind.seal.Start();
  const std::string raw = EncodeEvidence(evidence);
  const std::string sealed = culprit::corpus::Seal(kind.name, "id", tables.Pack(raw));
  kind.seal.Stop();
  kind.raw_bytes += raw.size();
  kind.sealed_bytes += sealed.size();
  kind.open.Start();
  const auto opened = decode(*tables.Unpack(*culprit::corpus::Unseal(kind.name, "id", sealed)));
  kind.open.Stop();
  kind.add.Start();
  AddEvidence(*opened, sum);
  kind.add.Stop();
}

void Print(const Kind& kind, double decode_s, double lines_s, uint64_t traces) {
  std::printf("%-7s extract %7.2f s; with time lines %.0f %% of the rate of decoding alone\n",
              kind.name, kind.extract.seconds(),
              100 * decode_s / (decode_s + lines_s + kind.extract.seconds()));
  std::printf("        encode and seal %.2f s, open and decode %.2f s, add %.2f s\n",
              kind.seal.seconds(), kind.open.seconds(), kind.add.seconds());
  std::printf("        %.1f kB a trace sealed, %.1f kB raw\n",
              static_cast<double>(kind.sealed_bytes) / static_cast<double>(traces) * 1e-3,
              static_cast<double>(kind.raw_bytes) / static_cast<double>(traces) * 1e-3);
}

// What every reader of the files pays: their bytes, and the zstd frames in them.
class Floor {
 public:
  void Add(const std::string& path) {
    reading_.Start();
    const auto bytes = culprit::ReadWholeFile(path);
    reading_.Stop();
    if (!bytes.ok()) return;
    bytes_ += bytes.value().size();
    for (std::string_view rest = bytes.value(); !rest.empty();) {
      const size_t at = rest.find(kFrameMagic);
      if (at == std::string_view::npos) break;
      rest.remove_prefix(at);
      const size_t length = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
      const bool whole = ZSTD_isError(length) == 0 && Unpack(rest.substr(0, length));
      rest.remove_prefix(whole ? length : kFrameMagic.size());
    }
  }
  double seconds() const { return reading_.seconds() + unpacking_.seconds(); }

  void Print(double decode_s, double all_s) const {
    std::printf("bytes and zstd  %7.2f s: %.1f MB read %.2f s, unpacked to %.1f MB %.2f s\n",
                seconds(), static_cast<double>(bytes_) * 1e-6, reading_.seconds(),
                static_cast<double>(raw_bytes_) * 1e-6, unpacking_.seconds());
    std::printf("                %.0f %% of reading and decoding, %.0f %% of all below\n",
                100 * seconds() / decode_s, 100 * seconds() / all_s);
  }

 private:
  static constexpr std::string_view kFrameMagic = "\x28\xb5\x2f\xfd";
  static constexpr unsigned long long kMostRaw = 1ULL << 30;

  bool Unpack(std::string_view frame) {
    const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (size > kMostRaw) return false;  // the two values for errors too
    raw_.resize(size);
    unpacking_.Start();
    const size_t got = ZSTD_decompress(raw_.data(), raw_.size(), frame.data(), frame.size());
    unpacking_.Stop();
    if (ZSTD_isError(got) != 0) return false;
    raw_bytes_ += got;
    return true;
  }

  Stopwatch reading_;
  Stopwatch unpacking_;
  std::string raw_;
  uint64_t bytes_ = 0;
  uint64_t raw_bytes_ = 0;
};

int Run(const std::string& folder, uint64_t most) {
  auto corpus = culprit::corpus::Corpus::Open(folder);
  if (!corpus.ok()) {
    std::fprintf(stderr, "%s\n", corpus.error().ToString().c_str());
    return 1;
  }
  auto listed = corpus.value().List();
  if (!listed.ok()) return 1;
  std::vector<culprit::corpus::TraceRow> rows = std::move(listed).value();
  rows.resize(std::min<size_t>(rows.size(), most));
  Floor floor;
  for (const culprit::corpus::TraceRow& row : rows) floor.Add(corpus.value().TracePath(row));
  const Scratch scratch;
  culprit::corpus::SummaryNames names(scratch.path());
  culprit::corpus::SummaryStacks stacks(scratch.path(), names);
  Stopwatch reading;
  Stopwatch lines;
  Kind mine{.name = "mine"};
  Kind causes{.name = "causes"};
  culprit::stackmine::Evidence mined;
  culprit::causality::Evidence caused;
  uint64_t events = 0;
  uint64_t bytes = 0;
  const size_t heap_before = HeapBytes();
  for (const culprit::corpus::TraceRow& row : rows) {
    reading.Start();
    auto trace = culprit::trace::ReadTrace(corpus.value().TracePath(row),
                                           culprit::trace::EventOrder::kByThread);
    reading.Stop();
    if (!trace.ok()) continue;
    events += trace.value().events.size();
    bytes += row.bytes;
    lines.Start();
    const culprit::waitgraph::Timelines timelines(trace.value());
    lines.Stop();
    Measure([&] { return culprit::stackmine::ReduceTrace(timelines, row.name, {}); },
            [](std::string_view raw) { return culprit::stackmine::DecodeEvidence(raw); }, stacks,
            mine, mined);
    Measure([&] { return culprit::causality::ExtractTrace(timelines, row.name, {}); },
            [](std::string_view raw) { return culprit::causality::DecodeEvidence(raw); }, names,
            causes, caused);
  }
  const auto m_events = static_cast<double>(events);
  std::printf("%zu traces, %.2f M events, %.1f MB\n", rows.size(), m_events * 1e-6,
              static_cast<double>(bytes) * 1e-6);
  std::printf("read and decode %7.2f s (%.1f M events/s)\n", reading.seconds(),
              m_events / reading.seconds() * 1e-6);
  std::printf("time lines      %7.2f s\n", lines.seconds());
  Print(mine, reading.seconds(), lines.seconds(), rows.size());
  Print(causes, reading.seconds(), lines.seconds(), rows.size());
  std::printf("tables that summaries share: %.1f kB of names, %.1f kB of stacks\n",
              static_cast<double>(names.bytes_written()) * 1e-3,
              static_cast<double>(stacks.bytes_written()) * 1e-3);
  const double both =
      reading.seconds() + lines.seconds() + mine.extract.seconds() + causes.extract.seconds();
  floor.Print(reading.seconds(), both);
  std::printf("both at once: %.1f M events/s, %.0f %% of decoding alone\n", m_events / both * 1e-6,
              100 * reading.seconds() / both);
  std::printf(
      "sums in memory %.1f MB: mine %zu frames, %zu stacks, %zu nodes, %zu rows, %zu "
      "instances; causes %zu nodes, %zu rows, %zu cells\n",
      static_cast<double>(HeapBytes() - heap_before) * 1e-6, mined.stacks.frames(),
      mined.stacks.stacks(), mined.forest.nodes().size(), mined.rows.size(), mined.instances.size(),
      caused.forest.nodes().size(), caused.rows.size(),
      caused.cells.size() + caused.trace_cells.size());
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory %ld MB\n", usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: scale_bench CORPUS [TRACES]\n");
    return 2;
  }
  return Run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : UINT64_MAX);
}
