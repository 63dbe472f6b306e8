// SPDX-License-Identifier: Apache-2.0
//
// What the bytes of an ETW log file (.etl) mean: the numbers of its structures,
// kernel event groups and types, and the providers that matter here. A file is
//
//   file    = buffer*                       ; the first begins with the log file's header
//   buffer  = header[72] record* filler     ; records packed if the header says so
//   record  = marker ... data               ; padded to 8 bytes
//
// A record's marker tells by its third byte which of a dozen headers follows.
// Kernel events are known by group and type, others by GUID and opcode or id.
// Pointers in an event are as wide as its header says. All little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace culprit::import_ {

inline constexpr size_t kEtlBufferHeaderBytes = 72;
inline constexpr uint32_t kEtlNoId = UINT32_MAX;  // a header without thread or process

// Bits of a buffer's flags.
inline constexpr uint16_t kEtlWideCpu = 0x20;  // its CPU's number has 16 bits, else 8
inline constexpr uint16_t kEtlPacked = 0x40;
// Types of buffers.
inline constexpr uint16_t kEtlCompactSwitchBuffer = 2;
// Bits of the log file's mode.
inline constexpr uint32_t kEtlCompressedMode = 0x04000000;

enum class EtlCompression : uint16_t { kNone = 0, kXpress = 3, kXpressHuffman = 4 };

enum class EtlClockType : uint32_t { kPerformanceCounter = 1, kSystemTime = 2, kCpuCycles = 3 };

// The kinds of record headers, as in the marker's third byte.
enum EtlHeaderType : uint8_t {
  kEtlSystem32 = 1,
  kEtlSystem64 = 2,
  kEtlCompact32 = 3,
  kEtlCompact64 = 4,
  kEtlFull32 = 10,
  kEtlInstance32 = 11,
  kEtlPerfInfo32 = 16,
  kEtlPerfInfo64 = 17,
  kEtlEvent32 = 18,
  kEtlEvent64 = 19,
  kEtlFull64 = 20,
  kEtlInstance64 = 21,
};
inline constexpr uint8_t kEtlIsHeader = 0x80;  // the marker's fourth byte
inline constexpr uint8_t kEtlIsEvent = 0x40;   // the same; else a message

enum EtlGroup : uint8_t {
  kEtlGroupHeader = 0,
  kEtlGroupIo = 1,
  kEtlGroupProcess = 3,
  kEtlGroupThread = 5,
  kEtlGroupConfig = 11,
  kEtlGroupPerfInfo = 15,
  kEtlGroupImage = 20,
  kEtlGroupStackWalk = 24,
};

// group << 8 | type
enum EtlKernelCode : uint16_t {
  kEtlDiskRead = 0x010a,
  kEtlDiskWrite = 0x010b,
  kEtlDiskReadInit = 0x010c,
  kEtlDiskWriteInit = 0x010d,
  kEtlDiskFlush = 0x010e,
  kEtlDiskFlushInit = 0x010f,
  kEtlProcessStart = 0x0301,
  kEtlProcessEnd = 0x0302,
  kEtlProcessRundownStart = 0x0303,
  kEtlProcessRundownEnd = 0x0304,
  kEtlProcessDefunct = 0x0327,
  kEtlThreadStart = 0x0501,
  kEtlThreadEnd = 0x0502,
  kEtlThreadRundownStart = 0x0503,
  kEtlThreadRundownEnd = 0x0504,
  kEtlSwitch = 0x0524,
  kEtlCompactSwitch = 0x0525,
  kEtlReadyThread = 0x0532,
  kEtlThreadName = 0x0548,
  kEtlConfigCpu = 0x0b0a,
  kEtlSample = 0x0f2e,
  kEtlCounterSample = 0x0f2f,
  kEtlIntervalSet = 0x0f48,
  kEtlIntervalStart = 0x0f49,
  kEtlIntervalEnd = 0x0f4a,
  kEtlImageUnload = 0x1402,
  kEtlImageRundownStart = 0x1403,
  kEtlImageRundownEnd = 0x1404,
  kEtlImageLoad = 0x140a,
  kEtlImageLoadAsProcess = 0x030a,  // how the kernel itself writes it
  kEtlStack = 0x1820,
  kEtlStackKeyCreate = 0x1822,
  kEtlStackKeyDelete = 0x1823,
  kEtlStackKeyRundown = 0x1824,
  kEtlStackRefKernel = 0x1825,
  kEtlStackRefUser = 0x1826,
};

// Opcodes and ids of the events of other providers.
inline constexpr uint16_t kEtlDebugIdRsds = 36;     // EtlProvider::kImageId
inline constexpr uint16_t kEtlBuildInfo = 32;       // EtlProvider::kSystemId
inline constexpr uint16_t kEtlMethodLoad = 143;     // kRuntime and kRuntimeRundown
inline constexpr uint16_t kEtlMethodUnload = 144;   // the same
inline constexpr uint16_t kEtlModuleLoad = 152;     // kRuntime
inline constexpr uint16_t kEtlModuleUnload = 153;   // both
inline constexpr uint16_t kEtlModuleRundown = 154;  // kRuntimeRundown

enum class EtlProvider : uint8_t {
  kKernel,
  kImageId,         // what merging adds: debug ids of images
  kSystemId,        // the same: names of the build
  kRuntime,         // .NET: methods as they are compiled
  kRuntimeRundown,  // .NET: those compiled before
  kOther,
  kMessage,  // trace messages without a description
};

}  // namespace culprit::import_
