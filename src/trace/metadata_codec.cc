// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <functional>

#include "base/bytes.h"
#include "trace/dictionary_codec.h"

namespace culprit::trace {
namespace {

constexpr std::string_view kLabelPrefix = "label.";
constexpr std::string_view kPropertyPrefix = "property.";

struct TextField {
  std::string_view key;
  std::string Metadata::*field;
};
constexpr TextField kTextFields[] = {
    {"machine", &Metadata::machine}, {"os", &Metadata::os},
    {"kernel", &Metadata::kernel},   {"arch", &Metadata::arch},
    {"app", &Metadata::app},         {"app_version", &Metadata::app_version},
    {"source", &Metadata::source},   {"clock", &Metadata::clock}};

struct NumberField {
  std::string_view key;
  int64_t Metadata::*field;
};
constexpr NumberField kNumberFields[] = {{"wall_start_ns", &Metadata::wall_start_ns},
                                         {"begin_ns", &Metadata::begin_ns},
                                         {"end_ns", &Metadata::end_ns},
                                         {"sample_period_ns", &Metadata::sample_period_ns}};

int64_t ToNumber(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void Set(std::string_view key, std::string_view value, Metadata& metadata) {
  for (const TextField& text : kTextFields) {
    if (key == text.key) metadata.*text.field = value;
  }
  for (const NumberField& number : kNumberFields) {
    if (key == number.key) metadata.*number.field = ToNumber(value);
  }
  if (key == "cpus") metadata.cpus = static_cast<uint32_t>(ToNumber(value));
  if (key == "has_switches") metadata.has_switches = value == "1";
  if (key == "has_wakers") metadata.has_wakers = value == "1";
  if (key.starts_with(kLabelPrefix)) {
    metadata.labels[std::string(key.substr(kLabelPrefix.size()))] = value;
  }
  if (key.starts_with(kPropertyPrefix)) {
    metadata.properties[std::string(key.substr(kPropertyPrefix.size()))] = value;
  }
}

}  // namespace

// Keys and values as text: a field that a later version adds is ignored by an
// earlier one, and a hex dump of the file can be read.
std::string EncodeMetadata(const Metadata& metadata) {
  ByteWriter out;
  const auto put = [&](std::string_view key, std::string_view value) {
    out.String(key);
    out.String(value);
  };
  for (const TextField& text : kTextFields) put(text.key, metadata.*text.field);
  for (const NumberField& number : kNumberFields) {
    put(number.key, std::to_string(metadata.*number.field));
  }
  put("cpus", std::to_string(metadata.cpus));
  put("has_switches", metadata.has_switches ? "1" : "0");
  put("has_wakers", metadata.has_wakers ? "1" : "0");
  for (const auto& [key, value] : metadata.labels) put(std::string(kLabelPrefix) + key, value);
  for (const auto& [key, value] : metadata.properties) {
    put(std::string(kPropertyPrefix) + key, value);
  }
  return out.Take();
}

bool DecodeMetadata(std::string_view payload, Metadata& metadata) {
  Metadata read;
  ByteReader in(payload);
  while (in.remaining() > 0) {
    const std::string_view key = in.String();
    const std::string_view value = in.String();
    if (in.failed()) return false;
    Set(key, value, read);
  }
  metadata = std::move(read);
  return true;
}

}  // namespace culprit::trace
