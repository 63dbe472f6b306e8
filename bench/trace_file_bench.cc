// SPDX-License-Identifier: Apache-2.0
// The native trace file against gzip'd JSON lines of the same events:
//
//   trace_file_bench TRACE.ctrace...
//
// Takes traces that exist (bench/run.sh simulates some), so that the data is
// what the format is made for. Reads each into memory first; every figure is
// the best of several rounds, on one core, without the disk. Decoding ends with
// the same array of events in both cases and compares it.
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace {

using culprit::trace::Event;
using culprit::trace::TraceReader;

constexpr int kRounds = 5;

double BestSeconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

// One event a line, every field, short keys: what a careful person would write.
std::string ToJsonLines(const std::vector<Event>& events) {
  std::string out;
  char line[256];
  for (const Event& e : events) {
    const int n =
        std::snprintf(line, sizeof(line),
                      "{\"k\":%d,\"t\":%lld,\"d\":%lld,\"th\":%d,\"p\":%d,\"s\":%d,\"c\":%d,\"f\":%"
                      "d,\"a\":%lld,\"b\":%lld}\n",
                      static_cast<int>(e.kind), static_cast<long long>(e.time_ns),
                      static_cast<long long>(e.dur_ns), static_cast<int>(e.thread.value),
                      static_cast<int>(e.peer.value), static_cast<int>(e.stack.value), e.cpu,
                      e.flags, static_cast<long long>(e.arg0), static_cast<long long>(e.arg1));
    out.append(line, static_cast<size_t>(n));
  }
  return out;
}

std::string Gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream z{};
  CULPRIT_CHECK(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  CULPRIT_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string Gunzip(const std::string& bytes, size_t size) {
  std::string out(size, '\0');
  z_stream z{};
  CULPRIT_CHECK(inflateInit2(&z, 15 + 16) == Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  CULPRIT_CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END);
  inflateEnd(&z);
  return out;
}

// The fastest parser that still reads the numbers: it knows the field order.
std::vector<Event> FromJsonLines(const std::string& text) {
  std::vector<Event> events;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t values[10];
    for (int64_t& value : values) {
      at = static_cast<const char*>(std::memchr(at, ':', static_cast<size_t>(end - at))) + 1;
      at = std::from_chars(at, end, value).ptr;
    }
    Event e;
    e.kind = static_cast<culprit::trace::EventKind>(values[0]);
    e.time_ns = values[1];
    e.dur_ns = values[2];
    e.thread.value = static_cast<uint32_t>(values[3]);
    e.peer.value = static_cast<uint32_t>(values[4]);
    e.stack.value = static_cast<uint32_t>(values[5]);
    e.cpu = static_cast<uint16_t>(values[6]);
    e.flags = static_cast<uint8_t>(values[7]);
    e.arg0 = values[8];
    e.arg1 = values[9];
    events.push_back(e);
    at += 2;
  }
  return events;
}

struct Sums {
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t dictionary_bytes = 0;
  uint64_t gzip_bytes = 0;
  double encode = 0;
  double decode = 0;
  double open = 0;
  double gzip_encode = 0;
  double gzip_decode = 0;
};

void DecodeAll(const TraceReader& reader, std::vector<Event>& events, std::vector<Event>& all) {
  all.clear();
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    CULPRIT_CHECK(reader.ReadBlock(i, events).ok());
    all.insert(all.end(), events.begin(), events.end());
  }
}

void Measure(const std::string& path, Sums& sums) {
  const std::string bytes = culprit::ReadWholeFile(path).value();
  const auto reader = TraceReader::FromBytes(bytes, path);
  CULPRIT_CHECK(reader.ok());
  std::vector<Event> block;
  std::vector<Event> events;
  DecodeAll(reader.value(), block, events);
  sums.events += events.size();
  sums.bytes += bytes.size();
  uint64_t block_bytes = 0;
  for (const auto& info : reader.value().blocks()) block_bytes += info.length;
  sums.dictionary_bytes += bytes.size() - block_bytes;

  sums.open += BestSeconds([&] { CULPRIT_CHECK(TraceReader::FromBytes(bytes, path).ok()); });
  sums.decode += BestSeconds([&] {
    for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
      CULPRIT_CHECK(reader.value().ReadBlock(i, block).ok());
    }
  });
  const culprit::trace::Trace trace = std::move(culprit::trace::ReadTrace(path)).value();
  sums.encode += BestSeconds([&] { (void)EncodeTrace(trace); });

  std::string text;
  std::string packed;
  sums.gzip_encode += BestSeconds([&] {
    text = ToJsonLines(events);
    packed = Gzip(text);
  });
  sums.gzip_bytes += packed.size();
  std::vector<Event> parsed;
  sums.gzip_decode += BestSeconds([&] { parsed = FromJsonLines(Gunzip(packed, text.size())); });
  CULPRIT_CHECK(parsed == events);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: trace_file_bench TRACE.ctrace...\n");
    return 2;
  }
  Sums sums;
  for (int i = 1; i < argc; ++i) Measure(argv[i], sums);
  const auto n = static_cast<double>(sums.events);
  std::printf("%d traces, %.2f M events\n", argc - 1, n / 1e6);
  std::printf("%-28s %12s %14s %14s\n", "", "bytes/event", "encode M ev/s", "decode M ev/s");
  std::printf("%-28s %12.2f %14.1f %14.1f\n", "ctrace", static_cast<double>(sums.bytes) / n,
              n / sums.encode / 1e6, n / sums.decode / 1e6);
  std::printf("%-28s %12.2f %14s %14.1f\n", "  of that, dictionary, index",
              static_cast<double>(sums.dictionary_bytes) / n, "",
              n / (sums.decode + sums.open) / 1e6);
  std::printf("%-28s %12.2f %14.1f %14.1f\n", "gzip -6 of JSON lines",
              static_cast<double>(sums.gzip_bytes) / n, n / sums.gzip_encode / 1e6,
              n / sums.gzip_decode / 1e6);
  std::printf("%-28s %11.1fx %13.1fx %13.1fx\n", "ratio",
              static_cast<double>(sums.gzip_bytes) / static_cast<double>(sums.bytes),
              sums.gzip_encode / sums.encode, sums.gzip_decode / sums.decode);
  return 0;
}
