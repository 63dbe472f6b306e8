// SPDX-License-Identifier: Apache-2.0
//
// TraceDatBuilder: a trace.dat of either version and byte order, plain or packed,
// for tests and as seeds of the fuzz target. It tells one small story of two
// threads on two CPUs.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "import/ring_buffer_sample.h"
#include "import/trace_dat_file.h"

namespace culprit::import_ {

inline constexpr std::string_view kTraceDatKallsyms =
    "ffff0000 T schedule\nffff0100 T do_nanosleep\nffff0200 T try_to_wake_up\n"
    "ffff0300 T hrtimer_wakeup\nffff0400 T asm_sysvec_apic_timer_interrupt\n"
    "ffff0500 T futex_wake\n";

// A and B on two CPUs: A sleeps at 1000 and is woken by B at 3000, runs on at
// 3500; B sleeps at 5000 and a timer wakes it at 6000.
struct TraceDatPages {
  std::string cpu0;
  std::string cpu1;
};

inline TraceDatPages MakeTraceDatPages(RingSample sample) {
  TraceDatPages pages;
  sample.Switch(0, "a", 10, 1, "swapper/0", 0).Stack(1, 10, {0xffff0010, 0xffff0110});
  sample.Switch(2499, "swapper/0", 0, 0, "a", 10);
  sample.Print(100, 10, "B|9|work\n").Print(400, 10, "E|9\n");
  sample.Waking(2000, 10, "b", 20, 0x08)
      .Stack(1, 10, {0xffff0210, 0xffff0310, 0xffff0410, 0xffff0010});
  pages.cpu0 = sample.Page(1000);
  sample.Waking(0, 20, "a", 10).Stack(1, 20, {0xffff0210, 0xffff0510});
  sample.Switch(1999, "b", 20, 1, "swapper/1", 0);
  sample.Switch(1100, "swapper/1", 0, 0, "b", 20);
  pages.cpu1 = sample.Page(3000);
  return pages;
}

class TraceDatBuilder {
 public:
  TraceDatBuilder(ByteOrder order, size_t long_bytes) : sample_(order, long_bytes), order_(order) {
    long_bytes_ = long_bytes;
  }

  std::string Number(uint64_t value, size_t size) const { return sample_.Number(value, size); }
  std::string Sized(std::string_view text) const {
    return Number(text.size(), 8) + std::string(text);
  }
  std::string HeaderInfo() const {
    return std::string("header_page\0", 12) + Sized(sample_.HeaderPage()) +
           std::string("header_event\0", 13) + Sized("# compressed entry header\n");
  }
  std::string FtraceFormats() const {
    return Number(2, 4) + Sized(RingSample::StackFormat()) + Sized(RingSample::PrintFormat());
  }
  std::string EventFormats() const {
    return Number(1, 4) + std::string("sched\0", 6) + Number(2, 4) +
           Sized(RingSample::SwitchFormat()) + Sized(RingSample::WakingFormat());
  }
  std::string Kallsyms() const {
    return Number(kTraceDatKallsyms.size(), 4) + std::string(kTraceDatKallsyms);
  }
  std::string Option(uint16_t id, std::string_view data) const {
    return Number(id, 2) + Number(data.size(), 4) + std::string(data);
  }
  std::string Start(char version) const {
    return std::string(kTraceDatMagic) + version + '\0' +
           (order_ == ByteOrder::kBig ? '\1' : '\0') + static_cast<char>(long_bytes_) +
           Number(RingSample::kPageBytes, 4);
  }

  std::string Version6() const {
    const TraceDatPages pages = MakeTraceDatPages(sample_);
    const std::string names = "9 main\n";
    std::string file = Start('6') + HeaderInfo() + FtraceFormats() + EventFormats() + Kallsyms() +
                       Number(0, 4) + Sized(names) + Number(2, 4) + std::string("options  \0", 10) +
                       Option(4, std::string_view("local [boot] mono\0", 18)) +
                       Option(5, std::string_view("Linux box 6.1.0 arm64\0", 22)) +
                       Option(2, std::string_view("CPU: 1\noverrun: 7\n\0", 19)) + Number(0, 2) +
                       std::string("flyrecord\0", 10);
    const size_t data = file.size() + 32;
    file += Number(data, 8) + Number(pages.cpu0.size(), 8);
    file += Number(data + pages.cpu0.size(), 8) + Number(pages.cpu1.size(), 8);
    return file + pages.cpu0 + pages.cpu1;
  }

  using Packer = std::string (*)(std::string_view);
  // `pack` nullptr: nothing is compressed.
  std::string Version7(std::string_view codec, Packer pack) const {
    std::string file = Start('7') + std::string(codec) + '\0' + std::string("1\0", 2);
    const size_t offset_at = file.size();
    file += Number(0, 8);
    std::string options;
    const auto section = [&](uint16_t id, const std::string& plain) {
      options += Option(id, Number(file.size(), 8));
      std::string data = plain;
      if (pack != nullptr) {
        const std::string packed = pack(plain);
        data = Number(packed.size(), 4) + Number(plain.size(), 4) + packed;
      }
      file += Number(id, 2) + Number(pack != nullptr ? 1 : 0, 2) + Number(0, 4) +
              Number(data.size(), 8) + data;
    };
    section(16, HeaderInfo());
    section(17, FtraceFormats());
    section(18, EventFormats());
    section(19, Kallsyms());
    section(21, Sized("9 main\n"));
    const TraceDatPages pages = MakeTraceDatPages(sample_);
    std::string buffer = Number(file.size(), 8) + '\0' + std::string("boot\0", 5) +
                         Number(RingSample::kPageBytes, 4) + Number(2, 4);
    file += Number(3, 2) + Number(pack != nullptr ? 1 : 0, 2) + Number(0, 4) + Number(0, 8);
    uint32_t cpu = 0;
    for (const std::string& page : {pages.cpu0, pages.cpu1}) {
      std::string data = page;
      if (pack != nullptr) {
        const std::string packed = pack(page);
        data = Number(1, 4) + Number(packed.size(), 4) + Number(page.size(), 4) + packed;
      }
      buffer += Number(cpu++, 4) + Number(file.size(), 8) + Number(data.size(), 8);
      file += data;
    }
    options += Option(3, buffer);
    options += Option(5, std::string_view("Linux box 6.1.0 arm64\0", 22)) + Option(0, Number(0, 8));
    file.replace(offset_at, 8, Number(file.size(), 8));
    return file + Number(0, 2) + Number(0, 2) + Number(0, 4) + Number(options.size(), 8) + options;
  }

 private:
  RingSample sample_;
  ByteOrder order_;
  size_t long_bytes_;
};

inline std::string PackZstd(std::string_view plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

// Stored, not compressed: the simplest zlib stream.
inline std::string PackZlib(std::string_view plain) {
  std::string packed = "\x78\x01";
  for (size_t at = 0; at < plain.size(); at += 30'000) {
    const std::string_view part = plain.substr(at, 30'000);
    const auto size = static_cast<uint16_t>(part.size());
    packed.push_back(at + part.size() == plain.size() ? '\1' : '\0');
    for (const uint16_t number : {size, static_cast<uint16_t>(~size)}) {
      packed.push_back(static_cast<char>(number & 0xff));
      packed.push_back(static_cast<char>(number >> 8));
    }
    packed += part;
  }
  return packed + std::string(4, '\0');
}

}  // namespace culprit::import_
