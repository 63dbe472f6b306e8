// SPDX-License-Identifier: Apache-2.0
//
// PerfDataBuilder: a perf.data written down record by record, for tests: in
// either byte order, as a file or as a pipe's stream, plain or compressed. All
// attrs have the same sample fields: identifier, ip, tid, time, cpu, period,
// call chain and raw data.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/perf_data_layout.h"

namespace culprit::import_ {

class PerfDataBuilder {
 public:
  enum class Layout { kFile, kPipe, kDied };
  static constexpr uint64_t kSwitchId = 300;
  static constexpr uint64_t kWakingId = 301;
  static constexpr uint64_t kEnterId = 302;
  static constexpr uint64_t kExitId = 303;
  static constexpr uint64_t kClockId = 304;
  static constexpr uint64_t kProbeId = 305;
  static constexpr uint64_t kReturnId = 306;
  static constexpr uint64_t kSampleType = kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime |
                                          kSampleCpu | kSamplePeriod | kSampleCallchain |
                                          kSampleRaw;

  explicit PerfDataBuilder(bool big = false) : big_(big) {}

  struct Who {
    uint64_t time = 0;
    uint32_t cpu = 0;
    int32_t pid = 0;
    int32_t tid = 0;
  };

  // From here on samples also have user registers, one value for each bit of
  // `mask`, and a copy of the user's stack.
  struct UserState {
    uint64_t mask = 0;
    std::vector<uint64_t> registers;
    std::string stack;
  };
  void UseUserState(UserState state) { user_ = std::move(state); }
  void UseArch(std::string_view arch) { arch_ = arch; }

  void Switch(const Who& who, int32_t prev, int32_t next, uint64_t state,
              const std::vector<uint64_t>& chain = {}) {
    std::string raw = Common(314, 0, prev);
    raw += Comm(prev) + Int<uint32_t>(static_cast<uint32_t>(prev)) + Int<uint32_t>(120) +
           Int<uint64_t>(state) + Comm(next) + Int<uint32_t>(static_cast<uint32_t>(next)) +
           Int<uint32_t>(120);
    Sample(kSwitchId, who, chain, raw);
  }
  void Waking(const Who& who, int32_t wakee, uint8_t flags = 0,
              const std::vector<uint64_t>& chain = {}) {
    std::string raw = Common(315, flags, who.tid);
    raw += Comm(wakee) + Int<uint32_t>(static_cast<uint32_t>(wakee)) + Int<uint32_t>(120) +
           Int<uint32_t>(0);
    Sample(kWakingId, who, chain, raw);
  }
  void Enter(const Who& who, uint64_t number) {
    Sample(kEnterId, who, {}, Common(316, 0, who.tid) + Int<uint64_t>(number));
  }
  void Exit(const Who& who, uint64_t number, uint64_t result) {
    Sample(kExitId, who, {},
           Common(317, 0, who.tid) + Int<uint64_t>(number) + Int<uint64_t>(result));
  }
  // probe_server:handle and probe_server:handle__return.
  void Probe(const Who& who, uint64_t address) {
    Sample(kProbeId, who, {}, Common(318, 0, who.tid) + Int(address));
  }
  void Return(const Who& who, uint64_t address) {
    Sample(kReturnId, who, {}, Common(319, 0, who.tid) + Int(address) + Int<uint64_t>(0x400800));
  }
  void Clock(const Who& who, const std::vector<uint64_t>& chain) {
    Sample(kClockId, who, chain, {});
  }
  void Sample(uint64_t id, const Who& who, const std::vector<uint64_t>& chain,
              const std::string& raw) {
    std::string body = Int<uint64_t>(id) + Int<uint64_t>(chain.size() > 1 ? chain[1] : 0);
    body += Int<uint32_t>(static_cast<uint32_t>(who.pid)) +
            Int<uint32_t>(static_cast<uint32_t>(who.tid));
    body += Int<uint64_t>(who.time) + Int<uint32_t>(who.cpu) + Int<uint32_t>(0) +
            Int<uint64_t>(1'000'000) + Int<uint64_t>(chain.size());
    for (const uint64_t address : chain) body += Int(address);
    // The raw field pads itself to eight bytes, its length included.
    std::string padded = raw;
    padded.resize((raw.size() + 4 + 7) / 8 * 8 - 4);
    body += Int<uint32_t>(static_cast<uint32_t>(padded.size())) + padded;
    if (user_.mask != 0) {
      body += Int<uint64_t>(2);
      for (const uint64_t value : user_.registers) body += Int(value);
      body += Int<uint64_t>(user_.stack.size()) + user_.stack;
      if (!user_.stack.empty()) body += Int<uint64_t>(user_.stack.size());
    }
    Record(kRecordSample, 2, body);
  }
  void CommRecord(const Who& who, std::string_view name) {
    std::string body = Int<uint32_t>(static_cast<uint32_t>(who.pid)) +
                       Int<uint32_t>(static_cast<uint32_t>(who.tid));
    body += Padded(name);
    Record(kRecordComm, 0, body + SampleId(who));
  }
  // `identity`: device, inode and its generation, or the build-id.
  void Mmap2(const Who& who, uint16_t misc, uint64_t start, uint64_t size, uint64_t offset,
             std::string_view path, std::string identity = {}) {
    identity.resize(24);
    std::string body = Int<uint32_t>(static_cast<uint32_t>(who.pid)) +
                       Int<uint32_t>(static_cast<uint32_t>(who.tid));
    body += Int(start) + Int(size) + Int(offset) + identity + Int<uint32_t>(5) + Int<uint32_t>(2) +
            Padded(path);
    Record(kRecordMmap2, misc, body + SampleId(who));
  }
  void ForkOrExit(uint32_t type, const Who& who, int32_t parent) {
    std::string body = Int<uint32_t>(static_cast<uint32_t>(who.pid)) +
                       Int<uint32_t>(static_cast<uint32_t>(parent)) +
                       Int<uint32_t>(static_cast<uint32_t>(who.tid)) +
                       Int<uint32_t>(static_cast<uint32_t>(parent)) + Int(who.time);
    Record(type, 0, body + SampleId(who));
  }
  void DeferredChain(const Who& who, uint64_t cookie, const std::vector<uint64_t>& chain) {
    std::string body = Int(cookie) + Int<uint64_t>(chain.size());
    for (const uint64_t address : chain) body += Int(address);
    Record(kRecordCallchainDeferred, 2, body + SampleId(who));
  }
  void FinishedRound() { Record(kRecordFinishedRound, 0, {}); }
  void Record(uint32_t type, uint16_t misc, const std::string& body) {
    data_ += Head(type, misc, body);
  }
  // Replaces the records so far by compressed ones, each of a few bytes of one
  // continuous stream.
  void Compress(uint32_t type, size_t piece) {
    std::string packed(ZSTD_compressBound(data_.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), data_.data(), data_.size(), 1));
    data_.clear();
    for (size_t at = 0; at < packed.size(); at += piece) {
      const std::string part = packed.substr(at, piece);
      const bool sized = type == kRecordCompressed2;
      Record(type, 0, (sized ? Int<uint64_t>(part.size()) : "") + part);
    }
  }

  std::string Bytes(Layout layout) const {
    return layout == Layout::kPipe ? PipeBytes() : FileBytes(layout == Layout::kDied);
  }

 private:
  template <class T>
  std::string Int(T value) const {
    std::string bytes(sizeof(T), '\0');
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes[big_ ? sizeof(T) - 1 - i : i] = static_cast<char>(value >> (8 * i));
    }
    return bytes;
  }
  std::string Head(uint32_t type, uint16_t misc, const std::string& body) const {
    return Int(type) + Int(misc) + Int(static_cast<uint16_t>(body.size() + 8)) + body;
  }
  std::string Padded(std::string_view text) const {
    std::string bytes(text);
    bytes.resize((text.size() + 8) / 8 * 8);
    return bytes;
  }
  std::string SampleId(const Who& who) const {
    return Int<uint32_t>(static_cast<uint32_t>(who.pid)) +
           Int<uint32_t>(static_cast<uint32_t>(who.tid)) + Int(who.time) + Int(who.cpu) +
           Int<uint32_t>(0) + Int<uint64_t>(kClockId);
  }
  std::string Common(uint16_t id, uint8_t flags, int32_t pid) const {
    return Int(id) + Int(flags) + Int<uint8_t>(0) + Int(static_cast<uint32_t>(pid));
  }
  std::string Comm(int32_t tid) const {
    std::string name = "t" + std::to_string(tid);
    name.resize(16);
    return name;
  }
  std::string Attr(uint32_t type, uint64_t config, uint64_t period, bool freq) const {
    uint64_t flags = uint64_t{1} << 18 | uint64_t{1} << 13 | uint64_t{freq ? 1u : 0u} << 10;
    if (big_) {
      uint64_t mirrored = 0;
      for (int bit = 0; bit < 64; ++bit) mirrored |= (flags >> bit & 1) << (63 - bit);
      flags = mirrored;
    }
    std::string attr =
        Int(type) + Int<uint32_t>(112) + Int(config) + Int(period) +
        Int(kSampleType | (user_.mask != 0 ? kSampleRegsUser | kSampleStackUser : 0)) +
        Int<uint64_t>(0) + Int(flags);
    attr.resize(80);
    attr += Int(user_.mask) + Int(static_cast<uint32_t>(user_.stack.size()));
    attr.resize(112);
    return attr;
  }
  struct AttrRow {
    std::string attr;
    uint64_t id;
  };
  std::vector<AttrRow> Attrs() const {
    return {{Attr(2, 314, 1, false), kSwitchId}, {Attr(2, 315, 1, false), kWakingId},
            {Attr(2, 316, 1, false), kEnterId},  {Attr(2, 317, 1, false), kExitId},
            {Attr(1, 0, 1000, true), kClockId},  {Attr(2, 318, 1, false), kProbeId},
            {Attr(2, 319, 1, false), kReturnId}};
  }
  static std::string Format(std::string_view name, int id, const std::string& fields) {
    return "name: " + std::string(name) + "\nID: " + std::to_string(id) +
           "\nformat:\n"
           "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
           "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
           "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
           "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
           fields + "\nprint fmt: \"\"\n";
  }
  std::string Tracing() const {
    const auto counted = [&](const std::string& text) { return Int<uint64_t>(text.size()) + text; };
    const std::string comm = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n";
    std::string out = std::string("\x17\x08\x44tracing", 10) + std::string("0.5\0", 4);
    out += Int<uint8_t>(big_ ? 1 : 0) + Int<uint8_t>(8) + Int<uint32_t>(4096);
    out += std::string("header_page\0", 12) + counted("p") + std::string("header_event\0", 13) +
           counted("e") + Int<uint32_t>(0) + Int<uint32_t>(3);
    out += std::string("sched\0", 6) + Int<uint32_t>(2);
    out += counted(Format("sched_switch", 314,
                          "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                          "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                          "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
                          "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
                          "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
                          "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"));
    out += counted(Format("sched_waking", 315,
                          comm + "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                                 "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n"));
    out += std::string("raw_syscalls\0", 13) + Int<uint32_t>(2);
    const std::string id = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n";
    out += counted(Format("sys_enter", 316, id));
    out += counted(
        Format("sys_exit", 317, id + "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n"));
    out += std::string("probe_server\0", 13) + Int<uint32_t>(2);
    out += counted(Format("handle", 318,
                          "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"));
    out +=
        counted(Format("handle__return", 319,
                       "\tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n"
                       "\tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n"));
    return out + Int<uint32_t>(0) + Int<uint32_t>(0);
  }
  std::string Magic() const { return big_ ? "2ELIFREP" : "PERFILE2"; }
  std::string PerfString(std::string_view text) const {
    const std::string padded = Padded(text);
    return Int<uint32_t>(static_cast<uint32_t>(padded.size())) + padded;
  }

  std::string PipeBytes() const {
    std::string out = Magic() + Int<uint64_t>(16);
    for (const AttrRow& row : Attrs()) out += Head(kRecordHeaderAttr, 0, row.attr + Int(row.id));
    const std::string host = PerfString("box");
    out += Head(kRecordHeaderFeature, 0, Int<uint64_t>(kFeatureHostname) + host);
    std::string tracing = Tracing();
    out += Head(kRecordTracingData, 0, Int(static_cast<uint32_t>(tracing.size())));
    tracing.resize((tracing.size() + 7) / 8 * 8);
    return out + tracing + data_;
  }

  std::string FileBytes(bool died) const {
    const uint64_t attr_size = 112 + 16;
    const uint64_t attrs_at = 104;
    const uint64_t ids_at = attrs_at + Attrs().size() * attr_size;
    const uint64_t data_at = ids_at + Attrs().size() * 8;
    const uint64_t features_at = data_at + data_.size();
    const std::string tracing = Tracing();
    const std::string host = PerfString("box");
    std::string out = Magic() + Int<uint64_t>(104) + Int(attr_size) + Int(attrs_at) +
                      Int(Attrs().size() * attr_size) + Int(data_at) +
                      Int<uint64_t>(died ? 0 : data_.size()) + Int<uint64_t>(0) + Int<uint64_t>(0);
    const uint64_t bits =
        died ? 0 : uint64_t{1} << kFeatureTracingData | 1 << kFeatureHostname | 1 << kFeatureArch;
    out += Int(bits) + std::string(24, '\0');
    std::string ids;
    for (const AttrRow& row : Attrs()) {
      out += row.attr + Int(ids_at + ids.size()) + Int<uint64_t>(8);
      ids += Int(row.id);
    }
    out += ids + data_;
    if (died) return out;
    const std::string arch = PerfString(arch_);
    const uint64_t contents_at = features_at + 48;
    out += Int(contents_at) + Int<uint64_t>(tracing.size());
    out += Int(contents_at + tracing.size()) + Int<uint64_t>(host.size());
    out += Int(contents_at + tracing.size() + host.size()) + Int<uint64_t>(arch.size());
    return out + tracing + host + arch;
  }

  bool big_;
  std::string data_;
  UserState user_;
  std::string arch_ = "aarch64";
};

}  // namespace culprit::import_
