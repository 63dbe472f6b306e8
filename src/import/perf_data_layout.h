// SPDX-License-Identifier: Apache-2.0
//
// The layout of perf.data: numbers of records, sample fields and features as
// the kernel's user interface and perf's file format fix them, and FieldReader,
// which reads their integers in the byte order of the recorded machine. The
// reader never reads past its end: the first short read sets failed() and every
// later one gives zero.
//
//   file  = magic u64, header size u64, attr size u64,
//           sections attrs, data, event types: {offset u64, size u64},
//           features: 256 bits; after the data one section per feature set
//   pipe  = magic u64, 16 u64, records; attrs and features are records too
//   data  = { type u32, misc u16, size u16, body }
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace culprit::import_ {

enum PerfRecord : uint32_t {
  kRecordMmap = 1,
  kRecordLost = 2,
  kRecordComm = 3,
  kRecordExit = 4,
  kRecordThrottle = 5,
  kRecordFork = 7,
  kRecordSample = 9,
  kRecordMmap2 = 10,
  kRecordLostSamples = 13,
  kRecordSwitch = 14,
  kRecordSwitchCpuWide = 15,
  kRecordKsymbol = 17,
  kRecordCgroup = 19,
  kRecordCallchainDeferred = 22,
  kRecordKernelEnd = 64,  // below: records of the kernel, with a sample id
  kRecordHeaderAttr = 64,
  kRecordTracingData = 66,
  kRecordBuildId = 67,
  kRecordFinishedRound = 68,
  kRecordAuxtrace = 71,
  kRecordHeaderFeature = 80,
  kRecordCompressed = 81,
  kRecordCompressed2 = 83,
};

enum PerfMisc : uint16_t {
  kMiscCpuModeMask = 7,
  kMiscKernel = 1,
  kMiscUser = 2,
  kMiscHypervisor = 3,
  kMiscGuestKernel = 4,
  kMiscGuestUser = 5,
  kMiscMmapData = 1 << 13,
  kMiscSwitchOut = 1 << 13,
  kMiscMmapBuildId = 1 << 14,
  kMiscSwitchOutPreempt = 1 << 14,
  kMiscBuildIdSize = 1 << 15,
};

enum PerfSampleField : uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCallchain = 1 << 5,
  kSampleId = 1 << 6,
  kSampleCpu = 1 << 7,
  kSamplePeriod = 1 << 8,
  kSampleStreamId = 1 << 9,
  kSampleRaw = 1 << 10,
  kSampleBranchStack = 1 << 11,
  kSampleRegsUser = 1 << 12,
  kSampleStackUser = 1 << 13,
  kSampleWeight = 1 << 14,
  kSampleDataSource = 1 << 15,
  kSampleIdentifier = 1 << 16,
  kSampleTransaction = 1 << 17,
  kSampleRegsIntr = 1 << 18,
  kSamplePhysicalAddress = 1 << 19,
  kSampleCgroup = 1 << 21,
  kSampleWeightStruct = 1 << 24,
};

enum PerfFeature : uint32_t {
  kFeatureTracingData = 1,
  kFeatureBuildId = 2,
  kFeatureHostname = 3,
  kFeatureOsRelease = 4,
  kFeatureVersion = 5,
  kFeatureArch = 6,
  kFeatureCpus = 7,
  kFeatureCommandLine = 11,
  kFeatureEventNames = 12,
  kFeatureClockData = 29,
  kFeatureSimpleperfFile = 128,
  kFeatureSimpleperfMetaInfo = 129,
  kFeatureSimpleperfFile2 = 132,
};

// Markers inside call chains.
inline constexpr uint64_t kContextMax = static_cast<uint64_t>(-4095);
inline constexpr uint64_t kContextHypervisor = static_cast<uint64_t>(-32);
inline constexpr uint64_t kContextKernel = static_cast<uint64_t>(-128);
inline constexpr uint64_t kContextUser = static_cast<uint64_t>(-512);
inline constexpr uint64_t kContextUserDeferred = static_cast<uint64_t>(-640);
inline constexpr uint64_t kContextGuest = static_cast<uint64_t>(-2048);
inline constexpr uint64_t kContextGuestKernel = static_cast<uint64_t>(-2176);
inline constexpr uint64_t kContextGuestUser = static_cast<uint64_t>(-2560);

inline constexpr size_t kRecordHeadBytes = 8;

// An integer in memory, of the byte order `big`.
template <class T>
T LoadInteger(const char* from, bool big) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  if (big == (std::endian::native == std::endian::big)) return value;
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
  return value;
}

class FieldReader {
 public:
  FieldReader(std::string_view bytes, bool big) : bytes_(bytes), big_(big) {}

  uint8_t U8() { return Integer<uint8_t>(); }
  uint16_t U16() { return Integer<uint16_t>(); }
  uint32_t U32() { return Integer<uint32_t>(); }
  int32_t I32() { return static_cast<int32_t>(Integer<uint32_t>()); }
  uint64_t U64() { return Integer<uint64_t>(); }
  std::string_view Bytes(uint64_t count) {
    if (count > remaining()) {
      Fail();
      return {};
    }
    const std::string_view view = bytes_.substr(position_, count);
    position_ += count;
    return view;
  }
  void Skip(uint64_t count) { (void)Bytes(count); }
  // Up to a NUL, or all that is left.
  std::string_view CString() {
    const std::string_view rest = bytes_.substr(position_);
    const size_t length = std::min(rest.find('\0'), rest.size());
    position_ += std::min(rest.size(), length + 1);
    return rest.substr(0, length);
  }
  // perf's strings: length u32, then that many bytes, padded with NULs.
  std::string_view PerfString() {
    const std::string_view text = Bytes(U32());
    return text.substr(0, std::min(text.find('\0'), text.size()));
  }

  bool failed() const { return failed_; }
  bool big() const { return big_; }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

 private:
  template <class T>
  T Integer() {
    if (remaining() < sizeof(T)) {
      Fail();
      return 0;
    }
    const T value = LoadInteger<T>(bytes_.data() + position_, big_);
    position_ += sizeof(T);
    return value;
  }
  void Fail() {
    failed_ = true;
    position_ = bytes_.size();
  }

  std::string_view bytes_;
  bool big_;
  size_t position_ = 0;
  bool failed_ = false;
};

// One record: its head, and the body behind it.
struct PerfRecordView {
  uint32_t type = 0;
  uint16_t misc = 0;
  std::string_view body;
  uint64_t offset = 0;  // of the head in the input; of the compressed record it was in
};

}  // namespace culprit::import_
