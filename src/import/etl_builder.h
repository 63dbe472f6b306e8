// SPDX-License-Identifier: Apache-2.0
//
// EtlBuilder: an ETW log file written down event by event, for tests: of 32- or
// 64-bit Windows, plain or with compressed buffers, by any of the clocks. A tick
// is 100 ns and the recording starts at kStart. Each CPU has buffers of its own,
// and the last CPU's come first in the file, so that nothing is in order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "import/etl_layout.h"

namespace culprit::import_ {

class EtlBuilder {
 public:
  static constexpr uint64_t kStart = 1000;
  static constexpr uint32_t kBufferBytes = 4096;

  struct When {
    uint64_t time = 0;
    uint16_t cpu = 0;
  };
  struct Options {
    size_t pointer_bytes = 8;
    bool packed = false;
    uint32_t clock = 1;
  };

  EtlBuilder() = default;
  explicit EtlBuilder(const Options& options) : options_(options) {}

  // Fields of an event; Pointer() is as wide as the file's.
  class Data {
   public:
    explicit Data(size_t pointer_bytes) : pointer_bytes_(pointer_bytes) {}
    Data& U8(uint8_t value) { return writer_.U8(value), *this; }
    Data& U16(uint16_t value) { return writer_.U16(value), *this; }
    Data& U32(uint32_t value) { return writer_.U32(value), *this; }
    Data& U64(uint64_t value) { return writer_.U64(value), *this; }
    Data& Pointer(uint64_t value) {
      return pointer_bytes_ == 4 ? U32(static_cast<uint32_t>(value)) : U64(value);
    }
    Data& Zeros(size_t count) { return writer_.Bytes(std::string(count, '\0')), *this; }
    Data& Wide(std::string_view text) {
      for (const char c : text) U16(static_cast<uint8_t>(c));
      return U16(0);
    }
    Data& Narrow(std::string_view text) {
      writer_.Bytes(text);
      return U8(0);
    }
    const std::string& bytes() const { return writer_.bytes(); }

   private:
    size_t pointer_bytes_;
    ByteWriter writer_;
  };
  Data Fields() const { return Data(options_.pointer_bytes); }

  // States: 1 ready, 4 terminated, 5 waiting.
  void Switch(When when, uint32_t old_tid, uint32_t new_tid, uint8_t state = 5,
              uint8_t reason = 0) {
    Kernel(when, kEtlSwitch, 2,
           Fields().U32(new_tid).U32(old_tid).Zeros(4).U8(reason).U8(0).U8(state).Zeros(9).bytes());
  }
  void Ready(When when, uint32_t wakee, uint8_t flags = 0) {
    Kernel(when, kEtlReadyThread, 2, Fields().U32(wakee).U16(0).U8(flags).U8(0).bytes());
  }
  void Sample(When when, uint32_t tid, uint64_t address) {
    Kernel(when, kEtlSample, 2, Fields().Pointer(address).U32(tid).U16(1).U16(0).bytes());
  }
  void Stack(When when, uint64_t event_time, uint32_t tid,
             const std::vector<uint64_t>& leaf_first) {
    Data data = Fields().U64(event_time).U32(0).U32(tid);
    for (const uint64_t address : leaf_first) data.Pointer(address);
    Kernel(when, kEtlStack, 2, data.bytes());
  }
  void StackRef(When when, bool user, uint64_t event_time, uint32_t tid, uint64_t key) {
    Kernel(when, user ? kEtlStackRefUser : kEtlStackRefKernel, 2,
           Fields().U64(event_time).U32(0).U32(tid).Pointer(key).bytes());
  }
  void StackKey(When when, uint64_t key, const std::vector<uint64_t>& leaf_first) {
    Data data = Fields().Pointer(key);
    for (const uint64_t address : leaf_first) data.Pointer(address);
    Kernel(when, kEtlStackKeyDelete, 2, data.bytes());
  }
  void Process(When when, EtlKernelCode code, uint32_t pid, std::string_view name,
               uint16_t version = 4) {
    Data data = Fields();
    if (version == 0) {
      data.Pointer(pid).Pointer(1);
    } else {
      data.Pointer(0xabc).U32(pid).U32(1).U32(0).U32(0);
      if (version >= 3) data.Pointer(0);
      if (version >= 4) data.U32(0);
    }
    // A security identifier with two parts.
    data.Pointer(0x7777).Pointer(0).U8(1).U8(2).Zeros(6 + 8).Narrow(name);
    if (version >= 2) data.Wide(std::string(name) + " -x");
    if (version >= 4) data.Wide("").Wide("");
    System(when, code, version, data.bytes());
  }
  void Thread(When when, EtlKernelCode code, uint32_t pid, uint32_t tid, std::string_view name = {},
              uint16_t version = 3) {
    Data data = Fields();
    data.U32(version == 0 ? tid : pid).U32(version == 0 ? pid : tid);
    for (int i = 0; i < (version == 0 ? 0 : 7); ++i) data.Pointer(0x1000);
    if (version >= 2) data.U32(0);
    if (version >= 3) data.U32(0).Wide(name);
    System(when, code, version, data.bytes());
  }
  void Image(When when, EtlKernelCode code, uint32_t pid, uint64_t base, uint64_t size,
             std::string_view path, uint16_t version = 3) {
    Data data = Fields().Pointer(base);
    if (version == 0) {
      data.U32(static_cast<uint32_t>(size));
    } else {
      data.Pointer(size).U32(pid);
    }
    if (version >= 2) data.Zeros(12).Pointer(base).Zeros(16);
    Kernel(when, code, version, data.Wide(path).bytes());
  }
  void DiskInit(When when, EtlKernelCode code, uint64_t packet, uint32_t tid) {
    System(when, code, 3, Fields().Pointer(packet).U32(tid).bytes());
  }
  void DiskEnd(When when, EtlKernelCode code, uint64_t packet, uint32_t bytes, uint64_t ticks,
               uint32_t tid) {
    Kernel(when, code, 3,
           Fields()
               .U32(0)
               .U32(0)
               .U32(bytes)
               .U32(0)
               .U64(0)
               .Pointer(0)
               .Pointer(packet)
               .U64(ticks)
               .U32(tid)
               .bytes());
  }
  // PERFINFO header: neither thread nor process.
  void Kernel(When when, uint16_t code, uint16_t version, const std::string& data) {
    ByteWriter record;
    record.U16(version);
    record.U8(wide() ? kEtlPerfInfo64 : kEtlPerfInfo32);
    record.U8(0xc0);
    record.U16(static_cast<uint16_t>(16 + data.size()));
    record.U16(code);
    record.U64(when.time);
    Record(when.cpu, record.bytes() + data);
  }
  void System(When when, uint16_t code, uint16_t version, const std::string& data, uint32_t tid = 0,
              uint32_t pid = 0) {
    ByteWriter record;
    record.U16(version);
    record.U8(wide() ? kEtlSystem64 : kEtlSystem32);
    record.U8(0xc0);
    record.U16(static_cast<uint16_t>(32 + data.size()));
    record.U16(code);
    record.U32(tid);
    record.U32(pid);
    record.U64(when.time);
    record.U64(0);
    Record(when.cpu, record.bytes() + data);
  }
  // EVENT_TRACE_HEADER: a class by GUID, as its bytes stand in the file.
  void Classic(When when, const std::array<uint8_t, 16>& guid, uint8_t opcode, uint16_t version,
               const std::string& data) {
    ByteWriter record;
    record.U16(static_cast<uint16_t>(48 + data.size()));
    record.U8(wide() ? kEtlFull64 : kEtlFull32);
    record.U8(0xc0);
    record.U8(opcode);
    record.U8(0);
    record.U16(version);
    record.U64(0);
    record.U64(when.time);
    for (const uint8_t byte : guid) record.U8(byte);
    record.U64(0);
    Record(when.cpu, record.bytes() + data);
  }
  // EVENT_HEADER: an event of a provider, by id.
  void Provider(When when, const std::array<uint8_t, 16>& guid, uint16_t id, uint32_t pid,
                const std::string& data) {
    ByteWriter record;
    record.U16(static_cast<uint16_t>(80 + data.size()));
    record.U8(wide() ? kEtlEvent64 : kEtlEvent32);
    record.U8(0xc0);
    record.U32(0);
    record.U32(0);
    record.U32(pid);
    record.U64(when.time);
    for (const uint8_t byte : guid) record.U8(byte);
    record.U16(id);
    record.Bytes(std::string(38, '\0'));
    Record(when.cpu, record.bytes() + data);
  }
  // Any bytes as a record.
  void Record(uint16_t cpu, std::string record) {
    record.resize((record.size() + 7) / 8 * 8);
    std::vector<std::string>& buffers = buffers_[cpu];
    if (buffers.empty() || buffers.back().size() + record.size() > kBufferBytes - 72) {
      buffers.emplace_back();
    }
    buffers.back() += record;
  }

  std::string Bytes() const {
    std::string out = Buffer(0, HeaderRecord(), 4, false);
    for (auto it = buffers_.rbegin(); it != buffers_.rend(); ++it) {
      for (const std::string& records : it->second) {
        out += Buffer(it->first, records, 0, options_.packed);
      }
    }
    return out;
  }

 private:
  bool wide() const { return options_.pointer_bytes == 8; }

  std::string HeaderRecord() const {
    ByteWriter data;
    data.U32(kBufferBytes);
    data.U32(0x0a);  // Windows 10.0
    data.U32(19041);
    data.U32(2);
    data.Bytes(std::string(16, '\0'));
    data.U32(options_.packed ? kEtlCompressedMode : 1);
    data.U64(0);
    data.U32(static_cast<uint32_t>(options_.pointer_bytes));
    data.U32(0);
    data.U32(10);  // MHz, so that a cycle is as long as a tick
    data.Bytes(std::string(2 * options_.pointer_bytes + 172 + 4 + 8, '\0'));
    data.U64(10'000'000);
    data.U64(132'000'000'000'000'000);
    data.U32(options_.clock);
    data.U32(0);
    data.Bytes(Fields().Wide("Test Logger").Wide("C:\\t.etl").bytes());
    ByteWriter record;
    record.U16(2);
    record.U8(wide() ? kEtlSystem64 : kEtlSystem32);
    record.U8(0xc0);
    record.U16(static_cast<uint16_t>(32 + data.size()));
    record.U16(0);
    record.U64(0);
    record.U64(kStart);
    record.U64(0);
    std::string bytes = record.bytes() + data.bytes();
    bytes.resize((bytes.size() + 7) / 8 * 8);
    return bytes;
  }

  // Plain LZ77 with literals only.
  static std::string Pack(const std::string& records) {
    std::string out;
    for (size_t at = 0; at < records.size(); at += 32) {
      out += std::string(4, '\0') + records.substr(at, 32);
    }
    return out;
  }

  std::string Buffer(uint16_t cpu, const std::string& records, uint16_t type, bool packed) const {
    std::string body = packed ? Pack(records) : records;
    if (!packed) body.resize(kBufferBytes - 72, '\xff');
    ByteWriter header;
    header.U32(static_cast<uint32_t>(72 + body.size()));
    header.U32(static_cast<uint32_t>(72 + records.size()));
    header.Bytes(std::string(32, '\0'));
    header.U16(cpu);
    header.U16(0);
    header.U32(3);  // flushed; in the first buffer also the compression: XPRESS
    header.U32(static_cast<uint32_t>(72 + records.size()));
    header.U16(static_cast<uint16_t>(kEtlWideCpu | (packed ? kEtlPacked : 0)));
    header.U16(type);
    header.Bytes(std::string(16, '\0'));
    return header.bytes() + body;
  }

  Options options_;
  std::map<uint16_t, std::vector<std::string>> buffers_;
};

}  // namespace culprit::import_
