// SPDX-License-Identifier: Apache-2.0
//
// CtfTestTrace: a tiny CTF trace written byte by byte, for tests: two CPUs, an
// LTTng-like compact event header (5 bits of id, 27 of time), events of odd
// shapes in between. In either byte order, described as version 1.8 or 2. On
// CPU 0 thread 10 reads, blocks, is woken by thread 20 of CPU 1, and is
// preempted by thread 11.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "import/source.h"
#include "import/stored_bytes.h"

namespace culprit::import_ {

class CtfTestTrace {
 public:
  enum class Format { kLittle, kBig, kJson };
  // Just before the 27 bits of an event's time run over.
  static constexpr uint64_t kBegin = (uint64_t{1} << 32) - 1500;
  static constexpr uint64_t kOffset = 1'600'000'000'000'000'000;

  explicit CtfTestTrace(Format format) : big_(format == Format::kBig) {
    files["metadata"] = format == Format::kJson ? Json() : Tsdl();
    Cpu0();
    Cpu1();
  }

  Source source() const {
    std::vector<SourceFile> all;
    for (const auto& [path, bytes] : files) {
      all.push_back({path, std::make_shared<MemoryBytes>(bytes)});
    }
    return Source("test", std::move(all));
  }

  std::map<std::string, std::string> files;

 private:
  void U(std::string& out, uint64_t value, size_t bytes) const {
    for (size_t i = 0; i < bytes; ++i) {
      out.push_back(static_cast<char>(value >> (8 * (big_ ? bytes - 1 - i : i))));
    }
  }
  void Header(std::string& out, uint64_t id, uint64_t at) const {
    const uint64_t low = (kBegin + at) & ((1 << 27) - 1);
    U(out, big_ ? id << 27 | low : id | low << 5, 4);
  }
  void Name(std::string& out, std::string name) const {
    name.resize(16);
    out += name;
  }
  void Switch(std::string& out, uint64_t at, uint64_t prev, uint64_t state, uint64_t next) const {
    Header(out, 0, at);
    Name(out, "t" + std::to_string(prev));
    U(out, prev, 4);
    U(out, state, 8);
    Name(out, "t" + std::to_string(next));
    U(out, next, 4);
  }
  // An event of every shape; its bits, tag and variant differ with `round`.
  void Noise(std::string& out, uint64_t at, uint64_t round) const {
    Header(out, 5, at);
    out += std::string("noise\0", 6);
    U(out, round, 1);  // 3-bit integers, this many
    out.append((3 * round + 7) / 8, '\xff');
    U(out, round % 2, 1);
    if (round % 2 == 0) {
      U(out, 0x1234, 2);
    } else {
      out += std::string("other\0", 6);
    }
    U(out, 2, 1);
    for (int i = 0; i < 2; ++i) {
      out += std::string("x\0", 2);
      U(out, 7, 2);
    }
  }
  std::string Packet(const std::string& events, uint64_t cpu, uint64_t discarded, uint64_t begin,
                     uint64_t end) const {
    std::string out;
    U(out, 0xC1FC1FC1, 4);
    U(out, 0, 4);
    U(out, kBegin + begin, 8);
    U(out, kBegin + end, 8);
    const uint64_t content = 8 * (52 + events.size());
    U(out, content, 8);
    U(out, content + 8 * 16, 8);
    U(out, discarded, 8);
    U(out, cpu, 4);
    return out + events + std::string(16, '\0');
  }

  void Cpu0() {
    std::string out;
    Header(out, 2, 1000);  // read
    U(out, 3, 4);
    Noise(out, 1010, 3);
    Switch(out, 1100, 10, 1, 0);
    Switch(out, 1700, 0, 0, 10);
    out.push_back(big_ ? '\xf8' : '\x1f');  // the extended header
    U(out, 300, 4);
    U(out, kBegin + 1800, 8);
    U(out, 5, 8);
    files["chan_0"] = Packet(out, 0, 0, 0, 1850);
    out.clear();
    Noise(out, 1900, 4);
    Switch(out, 2000, 10, 0, 11);
    files["chan_0"] += Packet(out, 0, 7, 1850, 3000);  // seven were lost
  }
  void Cpu1() {
    std::string out;
    Header(out, 1, 1500);
    Name(out, "t10");
    U(out, 10, 4);
    Noise(out, 1600, 0);
    Switch(out, 2500, 20, 2, 0);
    files["chan_1"] = Packet(out, 1, 0, 0, 3000);
  }

  std::string Tsdl() const {
    return std::string("/* CTF 1.8 */\n") +
           "trace { major = 1; minor = 8; byte_order = " + (big_ ? "be" : "le") + R"(;
  packet.header := struct {
    integer { size = 32; align = 8; } magic; integer { size = 32; align = 8; } stream_id;
  };
};
)" + std::string(kTypes);
  }
  std::string Json() const;

  bool big_;

  static constexpr const char* kTypes = R"(
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typedef integer { size = 32; align = 8; signed = true; base = 10; } pid_t;
clock { name = "mono"; freq = 1000000000; offset_s = 1600000000; offset = 0; };
env { hostname = "box"; kernel_release = "6.1.0"; tracer_name = "test"; tracer_major = 1; };
typealias integer { size = 27; align = 1; map = clock.mono.value; } := stamp;
typealias integer { size = 64; align = 8; map = clock.mono.value; } := long_stamp;
struct header {
  enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
  variant <id> {
    struct { stamp timestamp; } compact;
    struct { u32 id; long_stamp timestamp; } extended;
  } v;
} align(8);
stream {
  id = 0;
  event.header := struct header;
  packet.context := struct {
    long_stamp timestamp_begin; long_stamp timestamp_end;
    unsigned long content_size; unsigned long packet_size;
    unsigned long events_discarded; u32 cpu_id;
  };
};
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
  integer { size = 8; align = 8; encoding = UTF8; } _prev_comm[16]; pid_t _prev_tid;
  integer { size = 64; align = 8; signed = true; } _prev_state;
  integer { size = 8; align = 8; encoding = UTF8; } _next_comm[16]; pid_t _next_tid; }; };
event { name = "sched_waking"; id = 1; stream_id = 0; fields := struct {
  integer { size = 8; align = 8; encoding = UTF8; } _comm[16]; pid_t _tid; }; };
event { name = "syscall_entry_read"; id = 2; stream_id = 0; fields := struct { u32 _fd; }; };
event { name = "syscall_exit_read"; id = 300; stream_id = 0;
  fields := struct { integer { size = 64; align = 8; signed = true; } _ret; }; };
event { name = "noise"; id = 5; stream_id = 0; fields := struct {
  string _text; u8 _n; integer { size = 3; align = 1; } _bits[_n];
  enum : u8 { A = 0, B } _tag;
  variant <_tag> { struct { integer { size = 16; align = 8; } x; } A; string B; } _v;
  u8 _m; struct { string s; integer { size = 16; align = 8; } y; } _list[_m]; }; };
)";
};

inline std::string CtfTestTrace::Json() const {
  const std::string integer =
      R"({"type":"fixed-length-unsigned-integer","byte-order":"little-endian")";
  const auto u = [&](int bits, int align, const std::string& role = {}) {
    return integer + ",\"length\":" + std::to_string(bits) +
           ",\"alignment\":" + std::to_string(align) +
           (role.empty() ? "" : ",\"roles\":[\"" + role + "\"]") + "}";
  };
  const auto field = [](const std::string& name, const std::string& type) {
    return "{\"name\":\"" + name + "\",\"field-class\":" + type + "}";
  };
  const auto structure = [](const std::string& members, int align = 1) {
    return "{\"type\":\"structure\",\"minimum-alignment\":" + std::to_string(align) +
           ",\"member-classes\":[" + members + "]}";
  };
  const auto i = [](int bits) {
    return R"({"type":"fixed-length-signed-integer","byte-order":"little-endian","alignment":8,"length":)" +
           std::to_string(bits) + "}";
  };
  const std::string text16 = R"({"type":"static-length-string","length":16})";
  const std::string text = R"({"type":"null-terminated-string"})";
  const std::string stamp = u(64, 8, "default-clock-timestamp");
  const std::string header = structure(
      field("id", u(5, 1, "event-record-class-id")) + "," +
          field("v",
                R"({"type":"variant","selector-field-location":{"path":["id"]},"options":[)"
                R"({"name":"compact","selector-field-ranges":[[0,30]],"field-class":)" +
                    structure(field("timestamp", u(27, 1, "default-clock-timestamp"))) +
                    R"(},{"name":"extended","selector-field-ranges":[[31,31]],"field-class":)" +
                    structure(field("id", "\"long-id\"") + "," + field("timestamp", stamp)) +
                    "}]}"),
      8);
  const std::string context = structure(
      field("b", stamp) + "," + field("e", u(64, 8, "packet-end-default-clock-timestamp")) + "," +
      field("c", u(64, 8, "packet-content-length")) + "," +
      field("p", u(64, 8, "packet-total-length")) + "," +
      field("d", u(64, 8, "discarded-event-record-counter-snapshot")) + "," +
      field("cpu_id", u(32, 8)));
  const std::string noise = structure(
      field("text", text) + "," + field("n", u(8, 8)) + "," +
      field("bits",
            R"({"type":"dynamic-length-array","element-field-class":)" + u(3, 1) +
                R"(,"length-field-location":{"origin":"event-record-payload","path":["n"]}})") +
      "," + field("tag", u(8, 8)) + "," +
      field("v", R"({"type":"variant","selector-field-location":{"origin":"event-record-payload",)"
                 R"("path":["tag"]},"options":[{"selector-field-ranges":[[0,0]],"field-class":)" +
                     structure(field("x", u(16, 8))) +
                     R"(},{"selector-field-ranges":[[1,1]],"field-class":)" + text + "}]}") +
      "," + field("m", u(8, 8)) + "," +
      field("list", R"({"type":"dynamic-length-array","element-field-class":)" +
                        structure(field("s", text) + "," + field("y", u(16, 8))) +
                        R"(,"length-field-location":{"path":["m"]}})"));
  const auto event = [](int id, const std::string& name, const std::string& payload) {
    return R"({"type":"event-record-class","data-stream-class-id":0,"id":)" + std::to_string(id) +
           ",\"name\":\"" + name + "\",\"payload-field-class\":" + payload + "}";
  };
  const std::string fragments[] = {
      R"({"type":"preamble","version":2})",
      R"({"type":"field-class-alias","name":"long-id","field-class":)" +
          u(32, 8, "event-record-class-id") + "}",
      R"({"type":"trace-class","environment":{"hostname":"box","kernel_release":"6.1.0",)"
      R"("tracer_name":"test","tracer_major":1},"packet-header-field-class":)" +
          structure(field("magic", u(32, 8, "packet-magic-number")) + "," +
                    field("s", u(32, 8, "data-stream-class-id"))) +
          "}",
      R"({"type":"clock-class","id":"mono","frequency":1000000000,"origin":"unix-epoch",)"
      R"("offset-from-origin":{"seconds":1600000000,"cycles":0}})",
      R"({"type":"data-stream-class","id":0,"default-clock-class-id":"mono",)"
      R"("packet-context-field-class":)" +
          context + ",\"event-record-header-field-class\":" + header + "}",
      event(0, "sched_switch",
            structure(field("prev_comm", text16) + "," + field("prev_tid", i(32)) + "," +
                      field("prev_state", i(64)) + "," + field("next_comm", text16) + "," +
                      field("next_tid", i(32)))),
      event(1, "sched_waking", structure(field("comm", text16) + "," + field("tid", i(32)))),
      event(2, "syscall_entry_read", structure(field("fd", u(32, 8)))),
      event(300, "syscall_exit_read", structure(field("ret", i(64)))),
      event(5, "noise", noise),
  };
  std::string all;
  for (const std::string& fragment : fragments) all += "\x1e" + fragment + "\n";
  return all;
}

}  // namespace culprit::import_
