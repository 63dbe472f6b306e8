// SPDX-License-Identifier: Apache-2.0
//
// JfrBuilder: a chunk of a flight recording written down event by event, for
// tests and as seeds of the fuzz target: with compressed integers or without.
// Its clock ticks in nanoseconds, and tick 1,000 is kStartNs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::import_ {

class JfrBuilder {
 public:
  static constexpr int64_t kStartNs = 1'700'000'000'000'000'000;
  static constexpr int64_t kStartTicks = 1000;
  enum ClassId : int64_t {
    kBoolean = 10,
    kInt,
    kLong,
    kString,
    kFloat,
    kThread = 20,
    kStackTrace,
    kStackFrame,
    kMethod,
    kClass,
    kSymbol,
    kMonitorEnter = 100,
    kMonitorWait,
    kPark,
    kSleep,
    kSample,
    kSetting,
    kMachine,
    kOther,
  };

  explicit JfrBuilder(bool compressed = true) : compressed_(compressed) {}

  void Event(int64_t class_id, const std::string& fields) { events_ += Framed(class_id, fields); }

  std::string Long(int64_t value) const {
    return compressed_ ? Leb(static_cast<uint64_t>(value)) : Big(static_cast<uint64_t>(value), 8);
  }
  std::string Int(int64_t value) const {
    return compressed_ ? Leb(static_cast<uint32_t>(value)) : Big(static_cast<uint64_t>(value), 4);
  }
  std::string Bool(bool value) const { return std::string(1, value ? '\1' : '\0'); }
  std::string Utf8(std::string_view text) const {
    return "\3" + Int(std::ssize(text)) + std::string(text);
  }
  std::string Latin1(std::string_view text) const {
    return "\5" + Int(std::ssize(text)) + std::string(text);
  }
  std::string Characters(std::string_view ascii) const {
    std::string out = "\4" + Int(std::ssize(ascii));
    for (const char c : ascii) {
      out += compressed_ ? Leb(static_cast<uint8_t>(c)) : Big(static_cast<uint8_t>(c), 2);
    }
    return out;
  }
  std::string InPool(int64_t entry) const { return "\2" + Long(entry); }

  // Threads 1 (Java name, of UTF-16) and 2 (system name only), stacks 1 (main;
  // Queue.take; Lock.lock) and 2 (the same, truncated), string 5.
  void Pools() {
    const auto entry = [&](int64_t number, const std::string& value) {
      return Long(number) + value;
    };
    std::string body = Long(kStartTicks) + Long(0) + Long(0) + std::string(1, '\1') + Int(6);
    body += Long(kThread) + Int(2);
    body += entry(1, Utf8("Thread-1") + Long(71) + Characters("worker") + Long(9));
    body += entry(2, Latin1("VM Thread") + Long(72) + std::string(1, '\0') + Long(0));
    body += Long(kStackTrace) + Int(2);
    const auto frame = [&](int64_t method) { return Long(method) + Int(17); };
    body += entry(1, Bool(false) + Int(3) + frame(33) + frame(32) + frame(31));
    body += entry(2, Bool(true) + Int(1) + frame(32));
    body += Long(kMethod) + Int(3);
    body += entry(31, Long(41) + Long(51)) + entry(32, Long(42) + Long(52));
    body += entry(33, Long(43) + Long(53));
    body += Long(kClass) + Int(3);
    body += entry(41, Long(54)) + entry(42, Long(55)) + entry(43, Long(56));
    body += Long(kSymbol) + Int(6);
    body += entry(51, Utf8("main")) + entry(52, Utf8("take")) + entry(53, Utf8("lock"));
    body += entry(54, Utf8("Main")) + entry(55, Utf8("org/app/Queue"));
    body += entry(56, Utf8("org/app/Lock$$Lambda$7/0x0000abcd"));
    body += Long(kString) + Int(1) + entry(5, Utf8("period"));
    Event(1, body);
  }

  std::string Build(bool finished = true) const {
    std::string chunk = events_;
    const size_t metadata_offset = 68 + chunk.size();
    chunk += Framed(0, Metadata());
    std::string head("FLR\0\0\2\0\1", 8);
    head += Big(finished ? 68 + chunk.size() : 0, 8) + Big(0, 8);
    head += Big(finished ? metadata_offset : 0, 8);
    head += Big(static_cast<uint64_t>(kStartNs), 8) + Big(1'000'000, 8) + Big(kStartTicks, 8);
    head += Big(1'000'000'000, 8) + Big(compressed_ ? 1 : 0, 4);
    return head + chunk;
  }

 private:
  struct Field {
    std::string_view name;
    int64_t class_id;
    bool pooled = false;
    bool array = false;
  };
  struct Class {
    int64_t id;
    std::string_view name;
    std::vector<Field> fields;
  };

  static std::vector<Class> Classes() {
    const std::vector<Field> wait = {{"startTime", kLong},
                                     {"duration", kLong},
                                     {"eventThread", kThread, true},
                                     {"stackTrace", kStackTrace, true},
                                     {"weight", kFloat}};
    std::vector<Field> enter = wait;
    enter.push_back({"previousOwner", kThread, true});
    std::vector<Field> monitor_wait = wait;
    monitor_wait.push_back({"notifier", kThread, true});
    monitor_wait.push_back({"timedOut", kBoolean});
    return {
        {kBoolean, "boolean", {}},
        {kInt, "int", {}},
        {kLong, "long", {}},
        {kFloat, "float", {}},
        {kString, "java.lang.String", {}},
        {kThread,
         "java.lang.Thread",
         {{"osName", kString},
          {"osThreadId", kLong},
          {"javaName", kString},
          {"javaThreadId", kLong}}},
        {kStackTrace,
         "jdk.types.StackTrace",
         {{"truncated", kBoolean}, {"frames", kStackFrame, false, true}}},
        {kStackFrame, "jdk.types.StackFrame", {{"method", kMethod, true}, {"lineNumber", kInt}}},
        {kMethod, "jdk.types.Method", {{"type", kClass, true}, {"name", kSymbol, true}}},
        {kClass, "java.lang.Class", {{"name", kSymbol, true}}},
        {kSymbol, "jdk.types.Symbol", {{"string", kString}}},
        {kMonitorEnter, "jdk.JavaMonitorEnter", enter},
        {kMonitorWait, "jdk.JavaMonitorWait", monitor_wait},
        {kPark, "jdk.ThreadPark", wait},
        {kSleep, "jdk.ThreadSleep", wait},
        {kSample,
         "jdk.ExecutionSample",
         {{"startTime", kLong},
          {"sampledThread", kThread, true},
          {"stackTrace", kStackTrace, true}}},
        {kSetting, "jdk.ActiveSetting", {{"id", kLong}, {"name", kString}, {"value", kString}}},
        {kMachine, "jdk.JVMInformation", {{"pid", kLong}, {"javaArguments", kString}}},
        {kOther, "jdk.Other", {{"startTime", kLong}}},
    };
  }

  class Strings {
   public:
    int64_t operator()(std::string_view text) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] == text) return static_cast<int64_t>(i);
      }
      list.emplace_back(text);
      return std::ssize(list) - 1;
    }
    std::vector<std::string> list;
  };

  std::string Element(Strings& strings, std::string_view name,
                      const std::vector<std::pair<std::string_view, std::string>>& attributes,
                      const std::vector<std::string>& children) const {
    std::string out = Int(strings(name)) + Int(std::ssize(attributes));
    for (const auto& [key, value] : attributes) out += Int(strings(key)) + Int(strings(value));
    out += Int(std::ssize(children));
    for (const std::string& child : children) out += child;
    return out;
  }

  std::string Metadata() const {
    Strings strings;
    std::vector<std::string> classes;
    for (const Class& each : Classes()) {
      std::vector<std::string> fields;
      for (const Field& field : each.fields) {
        std::vector<std::pair<std::string_view, std::string>> attributes = {
            {"name", std::string(field.name)}, {"class", std::to_string(field.class_id)}};
        if (field.pooled) attributes.emplace_back("constantPool", "true");
        if (field.array) attributes.emplace_back("dimension", "1");
        fields.push_back(Element(strings, "field", attributes, {}));
      }
      classes.push_back(Element(strings, "class",
                                {{"name", std::string(each.name)}, {"id", std::to_string(each.id)}},
                                fields));
    }
    const std::string tree =
        Element(strings, "root", {}, {Element(strings, "metadata", {}, classes)});
    std::string out = Long(kStartTicks) + Long(0) + Long(1) + Int(std::ssize(strings.list));
    for (const std::string& text : strings.list) out += Utf8(text);
    return out + tree;
  }

  // The size counts itself; four bytes are always enough for it.
  std::string Framed(int64_t class_id, const std::string& fields) const {
    const std::string rest = Long(class_id) + fields;
    const size_t size = rest.size() + 4;
    if (!compressed_) return Big(size, 4) + rest;
    std::string out;
    for (int i = 0; i < 4; ++i) {
      out.push_back(static_cast<char>((size >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0)));
    }
    return out + rest;
  }

  static std::string Leb(uint64_t value) {
    std::string out;
    for (int i = 0; i < 8 && value >= 0x80; ++i) {
      out.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out.push_back(static_cast<char>(value));
    return out;
  }
  static std::string Big(uint64_t value, size_t size) {
    std::string out;
    for (size_t i = size; i > 0; --i) out.push_back(static_cast<char>(value >> (8 * (i - 1))));
    return out;
  }

  bool compressed_;
  std::string events_;
};

// A wait of each kind, a sample, a setting, the machine, one event too many.
inline std::string SmallJfr(bool compressed, bool finished = true) {
  JfrBuilder jfr(compressed);
  const std::string weight = "\x3f\x80" + std::string(2, '\0');
  const auto wait = [&](int64_t start, int64_t dur, int64_t stack) {
    return jfr.Long(start) + jfr.Long(dur) + jfr.Long(1) + jfr.Long(stack) + weight;
  };
  jfr.Event(JfrBuilder::kMonitorEnter, wait(2000, 300, 1) + jfr.Long(2));
  jfr.Event(JfrBuilder::kMonitorWait, wait(2500, 100, 1) + jfr.Long(0) + jfr.Bool(true));
  jfr.Event(JfrBuilder::kPark, wait(1500, 200, 2));
  jfr.Event(JfrBuilder::kSleep, wait(3000, 50, 9));
  jfr.Event(JfrBuilder::kSample, jfr.Long(1200) + jfr.Long(1) + jfr.Long(1));
  jfr.Event(JfrBuilder::kOther, jfr.Long(1200));
  jfr.Event(JfrBuilder::kSetting,
            jfr.Long(JfrBuilder::kSample) + jfr.InPool(5) + jfr.Utf8("10 ms"));
  jfr.Event(JfrBuilder::kMachine, jfr.Long(70) + jfr.Latin1("Main -x"));
  jfr.Pools();
  return jfr.Build(finished);
}

}  // namespace culprit::import_
