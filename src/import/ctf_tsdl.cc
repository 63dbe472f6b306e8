// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_tsdl.h"

#include <string>

#include "import/ctf_tsdl_types.h"

namespace culprit::import_ {
namespace {

void IgnoreValue(const std::string&, const CtfAssigned&) {}
void IgnoreType(const std::string&, uint32_t) {}

class BlockParser {
 public:
  BlockParser(std::string_view text, CtfSchema& schema) : types_(text, schema), schema_(schema) {}

  void ParseAll(Diagnostics& diagnostics) {
    while (!types_.AtEnd()) {
      TopLevel();
      if (!types_.failed()) continue;
      diagnostics.Count("metadata declaration that makes no sense: " + types_.problem(), 1,
                        types_.problem_offset());
      types_.Recover();
    }
  }

 private:
  void TopLevel() {
    if (types_.Accept(";")) return;
    if (types_.Accept("trace")) return Trace();
    if (types_.Accept("stream")) return Stream();
    if (types_.Accept("event")) return Event();
    if (types_.Accept("clock")) return Clock();
    if (types_.Accept("env")) return Environment();
    if (types_.Accept("callsite")) return Block(IgnoreValue, IgnoreType);
    if (!types_.Declaration()) types_.Fail("a declaration expected");
  }

  // The assignments of a block: `on_value(key, value)`, `on_type(key, field)`.
  template <class OnValue, class OnType>
  void Block(OnValue on_value, OnType on_type) {
    types_.Expect("{");
    types_.PushNames();
    while (!types_.failed() && !types_.At("}")) {
      if (types_.Accept(";") || types_.Declaration()) continue;
      const std::string key = types_.Path();
      if (types_.Accept("=")) {
        const CtfAssigned value = types_.Value();
        if (!types_.failed()) on_value(key, value);
      } else {
        types_.Expect(":=");
        const uint32_t field = types_.Type();
        if (!types_.failed()) on_type(key, field);
      }
      types_.Expect(";");
    }
    if (!types_.failed()) types_.PopNames();
    types_.Expect("}");
    types_.Expect(";");
  }

  void Trace() {
    Block(
        [&](const std::string& key, const CtfAssigned& value) {
          if (key == "byte_order")
            schema_.big_endian = value.text == "be" || value.text == "network";
        },
        [&](const std::string& key, uint32_t field) {
          if (key == "packet.header") schema_.packet_header = field;
        });
  }

  void Stream() {
    CtfStreamClass stream;
    Block(
        [&](const std::string& key, const CtfAssigned& value) {
          if (key == "id") stream.id = value.number;
        },
        [&](const std::string& key, uint32_t field) {
          if (key == "packet.context") stream.packet_context = field;
          if (key == "event.header") stream.event_header = field;
          if (key == "event.context") stream.event_context = field;
        });
    if (!types_.failed()) schema_.streams.push_back(std::move(stream));
  }

  void Event() {
    CtfEventClass event;
    Block(
        [&](const std::string& key, const CtfAssigned& value) {
          if (key == "id") event.id = value.number;
          if (key == "stream_id") event.stream_id = value.number;
          if (key == "name") event.name = value.text;
        },
        [&](const std::string& key, uint32_t field) {
          if (key == "context") event.context = field;
          if (key == "fields") event.payload = field;
        });
    if (!types_.failed()) schema_.events.push_back(std::move(event));
  }

  void Clock() {
    CtfClock clock;
    Block(
        [&](const std::string& key, const CtfAssigned& value) {
          if (key == "name") clock.name = value.text;
          if (key == "freq") clock.frequency = value.number;
          if (key == "offset") clock.offset_cycles = static_cast<int64_t>(value.number);
          if (key == "offset_s") clock.offset_s = static_cast<int64_t>(value.number);
        },
        IgnoreType);
    if (!types_.failed()) schema_.clocks.push_back(std::move(clock));
  }

  void Environment() {
    Block([&](const std::string& key,
              const CtfAssigned& value) { schema_.environment[key] = value.text; },
          IgnoreType);
  }

  CtfTypeParser types_;
  CtfSchema& schema_;
};

}  // namespace

CtfSchema ParseCtfTsdl(std::string_view text, Diagnostics& diagnostics) {
  CtfSchema schema;
  BlockParser(text, schema).ParseAll(diagnostics);
  return schema;
}

}  // namespace culprit::import_
