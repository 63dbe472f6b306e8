// SPDX-License-Identifier: Apache-2.0
#include "guard/profile_codec.h"

#include "base/bytes.h"

namespace culprit::guard {
namespace {

// One function a table for both directions: a Coder either writes what it is
// shown or fills it.
class ProfileWriter {
 public:
  static constexpr bool kReads = false;

  template <class T>
  void Number(const T& value) {
    out_.Varint(static_cast<uint64_t>(value));
  }
  void Signed(const int32_t& value) { out_.SignedVarint(value); }
  void Text(const std::string& text) { out_.String(text); }
  void Wide(const WideSum& value) {
    out_.Varint(static_cast<uint64_t>(value));
    out_.Varint(static_cast<uint64_t>(value >> 64));
  }
  // Ascending numbers as differences.
  void Ascending(const std::vector<uint32_t>& numbers) {
    out_.Varint(numbers.size());
    uint32_t before = 0;
    for (const uint32_t number : numbers) {
      out_.Varint(number - before);
      before = number;
    }
  }
  void Stats(const LatencyStats& stats) {
    Wide(stats.sum());
    Wide(stats.squares());
    out_.Varint(stats.max_ns());
    out_.Varint(stats.histogram().size());
    uint32_t before = 0;
    for (const auto& [bucket, count] : stats.histogram()) {
      out_.Varint(bucket - before);
      out_.Varint(count);
      before = bucket;
    }
  }
  template <class Row, class Body>
  void Table(const std::vector<Row>& rows, Body body) {
    out_.Varint(rows.size());
    for (const Row& row : rows) body(row);
  }
  bool failed() const { return false; }
  std::string Take() { return out_.Take(); }

 private:
  ByteWriter out_;
};

class ProfileReader {
 public:
  static constexpr bool kReads = true;

  explicit ProfileReader(std::string_view bytes) : in_(bytes) {}

  template <class T>
  void Number(T& value) {
    const uint64_t number = in_.Varint();
    value = static_cast<T>(number);
    if (static_cast<uint64_t>(value) != number) failed_ = true;
  }
  void Signed(int32_t& value) {
    const int64_t number = in_.SignedVarint();
    if (number < INT32_MIN || number > INT32_MAX) failed_ = true;
    value = static_cast<int32_t>(number);
  }
  void Text(std::string& text) { text = in_.String(); }
  void Wide(WideSum& value) {
    const uint64_t low = in_.Varint();
    value = WideSum{in_.Varint()} << 64 | low;
  }
  void Ascending(std::vector<uint32_t>& numbers) {
    uint64_t before = 0;
    for (size_t count = Count(); count > 0 && !failed(); --count) {
      before += in_.Varint();
      if (before > UINT32_MAX) failed_ = true;
      numbers.push_back(static_cast<uint32_t>(before));
    }
  }
  void Stats(LatencyStats& stats) {
    WideSum sum = 0;
    WideSum squares = 0;
    Wide(sum);
    Wide(squares);
    const uint64_t max_ns = in_.Varint();
    std::vector<LatencyStats::Bucket> histogram;
    uint64_t bucket = 0;
    for (size_t count = Count(); count > 0 && !failed(); --count) {
      bucket += in_.Varint();
      if (bucket > UINT32_MAX) failed_ = true;
      histogram.emplace_back(static_cast<uint32_t>(bucket), in_.Varint());
    }
    if (!LatencyStats::FromParts(sum, squares, max_ns, std::move(histogram), stats)) failed_ = true;
  }
  template <class Row, class Body>
  void Table(std::vector<Row>& rows, Body body) {
    for (size_t count = Count(); count > 0 && !failed(); --count) body(rows.emplace_back());
  }
  bool failed() const { return failed_ || in_.failed(); }
  bool finished() const { return !failed() && in_.remaining() == 0; }

 private:
  size_t Count() {
    const uint64_t count = in_.Varint();
    if (count > in_.remaining()) failed_ = true;
    return failed() ? 0 : static_cast<size_t>(count);
  }

  ByteReader in_;
  bool failed_ = false;
};

// kNoIndex is the common case where there is one: it becomes 0.
template <class Coder, class T>
void OptionalIndex(Coder& coder, T& index) {
  uint32_t shifted = index + 1;
  coder.Number(shifted);
  if constexpr (Coder::kReads) index = shifted - 1;
}

template <class Coder, class T>
void Flag(Coder& coder, T& flag) {
  uint32_t number = flag ? 1 : 0;
  coder.Number(number);
  if constexpr (Coder::kReads) flag = number != 0;
}

template <class Coder, class T>
void Contexts(Coder& coder, T& contexts) {
  coder.Table(contexts, [&](auto& context) {
    coder.Number(context.function);
    coder.Signed(context.depth);
  });
}

template <class Coder, class P>
void CodeTables(Coder& coder, P& profile) {
  coder.Text(profile.program);
  coder.Table(profile.modules, [&](auto& module) {
    coder.Text(module.build_id);
    coder.Text(module.path);
  });
  coder.Table(profile.functions, [&](auto& function) {
    coder.Number(function.module);
    coder.Number(function.offset);
    coder.Text(function.name);
  });
  coder.Table(profile.paths, [&](auto& path) {
    OptionalIndex(coder, path.parent);
    coder.Number(path.function);
  });
  coder.Table(profile.callers, [&](auto& caller) {
    coder.Number(caller.module);
    coder.Number(caller.return_offset);
  });
  coder.Table(profile.places, [&](auto& place) {
    coder.Number(place.path);
    coder.Signed(place.depth);
    OptionalIndex(coder, place.caller);
  });
}

template <class Coder, class P>
void CodeLoops(Coder& coder, P& profile) {
  coder.Table(profile.loops, [&](auto& loop) {
    OptionalIndex(coder, loop.holder);
    coder.Table(loop.sites, [&](auto& site) {
      coder.Number(site.module);
      coder.Number(site.return_offset);
      coder.Number(site.call);
      coder.Signed(site.base_offset);
    });
    Flag(coder, loop.external);
    Flag(coder, loop.hand_over);
    Flag(coder, loop.parks);
    Flag(coder, loop.holder_unwound);
    coder.Ascending(loop.woken_by);
    coder.Number(loop.iterations);
    coder.Number(loop.ready_events);
    coder.Number(loop.train_ns);
    Contexts(coder, loop.handlers);
    Contexts(coder, loop.commands);
    Contexts(coder, loop.tails);
    Contexts(coder, loop.turns);
  });
}

template <class Coder, class P>
void CodeUnits(Coder& coder, P& profile) {
  coder.Table(profile.shapes, [&](auto& shape) {
    coder.Number(shape.kind);
    coder.Number(shape.loop);
    coder.Number(shape.type);
    coder.Number(shape.units[0]);
    coder.Number(shape.units[1]);
    coder.Ascending(shape.places);
    if constexpr (Coder::kReads) shape.hits.resize(shape.places.size());
    for (auto& hits : shape.hits) coder.Number(hits);
  });
  coder.Table(profile.types, [&](auto& type) {
    coder.Number(type.kind);
    coder.Number(type.loop);
    coder.Text(type.name);
    coder.Number(type.units);
    coder.Number(type.shapes);
    coder.Stats(type.stats);
    coder.Number(type.threshold_ns);
  });
  coder.Table(profile.guards, [&](auto& guard) {
    coder.Number(guard.function);
    coder.Table(guard.contexts, [&](auto& context) {
      coder.Signed(context.depth);
      OptionalIndex(coder, context.caller);
    });
    Flag(coder, guard.boundary);
    coder.Number(guard.hits_per_mega_unit);
    coder.Number(guard.gain_microbits);
  });
}

template <class Coder, class P>
void CodeFacts(Coder& coder, P& profile) {
  auto& quality = profile.quality;
  for (auto* number :
       {&quality.units, &quality.right, &quality.held_out_units, &quality.held_out_right,
        &quality.hits, &quality.ambiguous_hits, &quality.dropped_hits}) {
    coder.Number(*number);
  }
  auto& training = profile.training;
  for (auto* number :
       {&training.runs, &training.threads, &training.entries, &training.units,
        &training.unit_train_ns, &training.unit_entries, &training.dropped_shapes,
        &training.dropped_units, &training.measured_units, &training.measured_cpu_ns,
        &profile.unknown_threshold_ns, &profile.iteration_threshold_ns, &profile.floor_ns}) {
    coder.Number(*number);
  }
  coder.Stats(profile.unknown);
  coder.Stats(profile.iteration);
}

template <class Coder, class P>
void CodeProfile(Coder& coder, P& profile) {
  CodeTables(coder, profile);
  CodeLoops(coder, profile);
  CodeUnits(coder, profile);
  CodeFacts(coder, profile);
}

}  // namespace

std::string EncodeProfile(const Profile& profile) {
  ProfileWriter writer;
  CodeProfile(writer, profile);
  return writer.Take();
}

bool DecodeProfile(std::string_view bytes, Profile& profile) {
  ProfileReader reader(bytes);
  CodeProfile(reader, profile);
  return reader.finished();
}

}  // namespace culprit::guard
