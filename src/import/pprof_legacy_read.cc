// SPDX-License-Identifier: Apache-2.0
//
// pprof's older formats:
//
//   cpu        = word 0, 3, version, period in µs, 0 { word count, n, n * address }
//                word 0, 1, 0  text     words of 4 or 8 bytes in either byte order;
//                version 1 is Java, whose text is a list of functions
//   contention = "--- contentionz 1 ---" (or "--- mutex:", "--- contention:")
//                { "key = value" } { "delay count @ 0xADDRESS ..." }  text
//
// Heap, thread and goroutine profiles are recognized to be refused: what they
// count is not time.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include "import/pprof_legacy.h"
#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxDepth = 4096;
constexpr int64_t kMaxPeriodUs = 1'000'000'000;

constexpr std::array<std::string_view, 3> kContentionHeads = {"--- contention", "--- mutex",
                                                              "--- contentionz"};
constexpr std::array<std::string_view, 8> kTimelessHeads = {
    "heap profile:",         "--- heapz",          "--- growthz", "--- heap", "--- threadz",
    "threadcreate profile:", "goroutine profile:", "--- Thread "};

template <size_t N>
bool StartsWithAny(std::string_view text, const std::array<std::string_view, N>& heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return text.starts_with(head); });
}

struct Words {
  std::string_view bytes;
  size_t size = 8;
  bool big_endian = false;

  size_t count() const { return bytes.size() / size; }
  uint64_t At(size_t index) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = index * size + (big_endian ? i : size - 1 - i);
      value = (value << 8) | static_cast<uint8_t>(bytes[at]);
    }
    return value;
  }
};

// The word size and byte order in which the head makes sense.
std::optional<Words> CpuWords(std::string_view bytes) {
  for (const size_t size : {size_t{4}, size_t{8}}) {
    for (const bool big_endian : {false, true}) {
      const Words words{bytes, size, big_endian};
      if (words.count() >= 5 && words.At(0) == 0 && words.At(1) == 3 && words.At(2) <= 1 &&
          words.At(3) > 0 && words.At(3) <= static_cast<uint64_t>(kMaxPeriodUs) &&
          words.At(4) == 0) {
        return words;
      }
    }
  }
  return std::nullopt;
}

struct CpuSample {
  uint64_t count;
  uint64_t input_offset;
  std::vector<uint64_t> addresses;
};

// A signal handler pushes a frame of its own under the interrupted function. It
// shows as one address that practically all samples have in second place.
void DropHandlerFrame(std::vector<CpuSample>& samples) {
  std::map<uint64_t, size_t> seconds;
  for (const CpuSample& sample : samples) {
    if (sample.addresses.size() > 1) ++seconds[sample.addresses[1]];
  }
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most == seconds.end() || most->second < samples.size() - samples.size() / 32) return;
  for (CpuSample& sample : samples) {
    if (sample.addresses.size() > 1 && sample.addresses[1] == most->first) {
      sample.addresses.erase(sample.addresses.begin() + 1);
    }
  }
}

// Samples up to the trailer; `end` is where the text starts.
std::vector<CpuSample> ReadCpuSamples(const Words& words, Diagnostics& diagnostics, size_t& end) {
  std::vector<CpuSample> samples;
  size_t at = 5;
  while (at + 2 <= words.count()) {
    const uint64_t count = words.At(at);
    const uint64_t depth = words.At(at + 1);
    if (count == 0 && depth == 1 && at + 2 < words.count() && words.At(at + 2) == 0) {
      end = (at + 3) * words.size;
      return samples;
    }
    if (depth == 0 || depth > kMaxDepth || depth > words.count() - at - 2) break;
    CpuSample sample{count, at * words.size, {}};
    for (uint64_t i = 0; i < depth; ++i) sample.addresses.push_back(words.At(at + 2 + i));
    samples.push_back(std::move(sample));
    at += 2 + depth;
  }
  diagnostics.Count("profile without its end", 1, std::min(words.bytes.size(), at * words.size));
  end = words.bytes.size();
  return samples;
}

Result<Profile> ReadCpu(LegacyProfile legacy, const Words& words, const std::string& name,
                        Diagnostics& diagnostics) {
  const bool java = words.At(2) == 1;
  const auto period_us = static_cast<int64_t>(words.At(3));
  size_t end = 0;
  std::vector<CpuSample> samples = ReadCpuSamples(words, diagnostics, end);
  if (samples.empty()) return Error{.message = "a CPU profile without samples", .file = name};
  for (CpuSample& sample : samples) {
    // All but the leaf are return addresses.
    for (size_t i = 1; i < sample.addresses.size() && !java; ++i) --sample.addresses[i];
    // The leaf is known from the signal and sometimes again from the stack.
    if (!java && sample.addresses.size() > 1 && sample.addresses[0] == sample.addresses[1] + 1) {
      sample.addresses.erase(sample.addresses.begin() + 1);
    }
  }
  if (!java) {
    DropHandlerFrame(samples);
    DropHandlerFrame(samples);
  }
  Profile& profile = legacy.profile();
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
  profile.period_type = {"cpu", "nanoseconds"};
  profile.period = period_us * 1000;
  for (const CpuSample& sample : samples) {
    if (sample.count > static_cast<uint64_t>(INT64_MAX / profile.period)) {
      diagnostics.Count("sample with an impossible value", 1, sample.input_offset);
      continue;
    }
    const auto count = static_cast<int64_t>(sample.count);
    legacy.AddSample(sample.addresses, count, count * profile.period, sample.input_offset);
  }
  const std::string_view rest = legacy.text().substr(end);
  if (java) {
    legacy.ReadJavaFunctions(rest, diagnostics);
  } else {
    legacy.ReadMemoryMap(rest);
  }
  return std::move(legacy.profile());
}

struct ContentionHead {
  int64_t cycles_per_second = 0;
  int64_t period = 1;
  bool java = false;
  int64_t java_unit_ns = 1;
};

// "key = value" lines; true if the line was one.
bool ReadContentionKey(std::string_view line, ContentionHead& head, Profile& profile) {
  const size_t equals = line.find('=');
  if (equals == line.npos) return false;
  const std::string_view key = Trim(line.substr(0, equals));
  const std::string_view value = Trim(line.substr(equals + 1));
  const int64_t number = ParseDecimal(value).value_or(0);
  if (key == "cycles/second" && number > 0) head.cycles_per_second = number;
  if (key == "sampling period" && number > 0) head.period = number;
  if (key == "ms since reset" && number > 0 && number < INT64_MAX / 1'000'000) {
    profile.duration_ns = number * 1'000'000;
  }
  if (key == "format") head.java = value == "java";
  if (key == "resolution" && value.starts_with("micro")) head.java_unit_ns = 1000;
  if (key == "resolution" && value.starts_with("milli")) head.java_unit_ns = 1'000'000;
  return true;
}

// "DELAY COUNT @ 0xADDRESS ...".
bool ReadContentionSample(std::string_view line, bool java, int64_t& delay, int64_t& count,
                          std::vector<uint64_t>& addresses) {
  const auto first = ParseDecimal(TakeToken(line));
  const auto second = ParseDecimal(TakeToken(line));
  if (!first || !second || *first < 0 || *second < 0 || TakeToken(line) != "@") return false;
  delay = *first;
  count = *second;
  addresses.clear();
  while (!line.empty() && addresses.size() < kMaxDepth) {
    const auto address = ParseHexadecimal(TakeToken(line));
    if (!address) return false;
    addresses.push_back(java || *address == 0 ? *address : *address - 1);
  }
  return !addresses.empty();
}

// value * factor * multiplier / divisor, none negative; nothing if it does not fit.
std::optional<int64_t> Scaled(int64_t value, int64_t factor, int64_t multiplier, int64_t divisor) {
  __extension__ using Wide = unsigned __int128;
  constexpr auto kMost = static_cast<Wide>(INT64_MAX);
  const Wide scaled = static_cast<Wide>(value) * static_cast<Wide>(factor);
  if (scaled > kMost) return std::nullopt;
  const Wide result = scaled * static_cast<Wide>(multiplier) / static_cast<Wide>(divisor);
  if (result > kMost) return std::nullopt;
  return static_cast<int64_t>(result);
}

bool AddContention(LegacyProfile& legacy, const ContentionHead& head, int64_t delay, int64_t count,
                   const std::vector<uint64_t>& addresses, uint64_t offset) {
  // Without the clock's rate the delay is in nanoseconds already.
  const auto delay_ns = head.java ? Scaled(delay, head.period, head.java_unit_ns, 1)
                        : head.cycles_per_second > 0
                            ? Scaled(delay, head.period, 1'000'000'000, head.cycles_per_second)
                            : Scaled(delay, head.period, 1, 1);
  const auto contentions = Scaled(count, head.period, 1, 1);
  if (!delay_ns || !contentions) return false;
  legacy.AddSample(addresses, *contentions, *delay_ns, offset);
  return true;
}

Result<Profile> ReadContention(LegacyProfile legacy, const std::string& name,
                               Diagnostics& diagnostics) {
  Profile& profile = legacy.profile();
  profile.value_types = {{"contentions", "count"}, {"delay", "nanoseconds"}};
  profile.period_type = {"contentions", "count"};
  ContentionHead head;
  std::vector<uint64_t> addresses;
  std::string_view rest = legacy.text();
  (void)TakeLine(rest);
  while (!rest.empty()) {
    const std::string_view before = rest;
    const std::string_view line = Trim(TakeLine(rest));
    if (line.empty() || line.starts_with('#')) continue;
    int64_t delay = 0;
    int64_t count = 0;
    const auto offset = static_cast<uint64_t>(line.data() - legacy.text().data());
    // What follows the samples begins with a title, or with the first function.
    if (line.starts_with("---") || line.starts_with("MAPPED_LIBRARIES") || line.starts_with("0x")) {
      rest = before;
      break;
    }
    if (line.find('@') == line.npos && ReadContentionKey(line, head, profile)) continue;
    if (!ReadContentionSample(line, head.java, delay, count, addresses)) {
      diagnostics.Count("line of a profile that could not be read", 1, offset);
    } else if (!AddContention(legacy, head, delay, count, addresses, offset)) {
      diagnostics.Count("sample with an impossible value", 1, offset);
    }
  }
  profile.period = head.period;
  if (profile.samples.empty()) {
    return Error{.message = "a contention profile without samples", .file = name};
  }
  if (head.java) {
    legacy.ReadJavaFunctions(rest, diagnostics);
  } else {
    legacy.ReadMemoryMap(rest);
  }
  return std::move(legacy.profile());
}

}  // namespace

bool LooksLikePprofLegacy(std::string_view head) {
  return CpuWords(head).has_value() || StartsWithAny(head, kContentionHeads) ||
         StartsWithAny(head, kTimelessHeads);
}

Result<Profile> ReadPprofLegacy(std::string bytes, const std::string& name,
                                Diagnostics& diagnostics) {
  if (StartsWithAny(std::string_view(bytes), kTimelessHeads)) {
    return Error{.message = "a profile of memory or threads: it has no times in it",
                 .file = name,
                 .hint = "import a CPU, wall-clock or contention profile of the same program"};
  }
  LegacyProfile legacy(std::move(bytes));
  if (const auto words = CpuWords(legacy.text())) {
    return ReadCpu(std::move(legacy), *words, name, diagnostics);
  }
  return ReadContention(std::move(legacy), name, diagnostics);
}

}  // namespace culprit::import_
