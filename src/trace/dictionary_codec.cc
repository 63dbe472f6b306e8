// SPDX-License-Identifier: Apache-2.0
#include "trace/dictionary_codec.h"

#include <algorithm>

#include "base/bytes.h"

namespace culprit::trace {
namespace {

// Ids are written plus one, so that none() is a zero.
template <class Tag>
void PutId(Id<Tag> id, ByteWriter& out) {
  out.Varint(id.valid() ? uint64_t{id.value} + 1 : 0);
}

// Reads an id and translates it by `map`; sets `ok` to false if it has no entry.
template <class IdType>
IdType GetId(ByteReader& in, const std::vector<IdType>& map, bool& ok) {
  const uint64_t code = in.Varint();
  if (code == 0) return {};
  if (code > map.size()) {
    ok = false;
    return {};
  }
  return map[code - 1];
}

// The same for tables that are never translated: below `limit` or none.
template <class IdType>
IdType GetIdBelow(ByteReader& in, size_t limit, bool& ok) {
  const uint64_t code = in.Varint();
  ok &= code <= limit;
  return code == 0 || code > limit ? IdType() : IdType(code - 1);
}

void PutTime(int64_t time_ns, ByteWriter& out) {
  out.U8(time_ns == kNoTime ? 0 : 1);
  if (time_ns != kNoTime) out.SignedVarint(time_ns);
}

int64_t GetTime(ByteReader& in) { return in.U8() == 0 ? kNoTime : in.SignedVarint(); }

void PutProcess(const Process& process, ByteWriter& out) {
  out.SignedVarint(process.pid);
  PutId(process.name, out);
  PutId(process.command_line, out);
  PutId(process.cgroup, out);
  PutTime(process.start_ns, out);
  PutTime(process.end_ns, out);
}

void PutThread(const Thread& thread, ByteWriter& out) {
  out.SignedVarint(thread.tid);
  PutId(thread.process, out);
  PutId(thread.name, out);
  out.U8(static_cast<uint8_t>(thread.kind));
  PutTime(thread.start_ns, out);
  PutTime(thread.end_ns, out);
}

// New and changed rows of a table whose rows may change: index, then the row.
template <class Row, class Put>
void PutRows(const std::vector<Row>& rows, std::vector<Row>& written, Put put, ByteWriter& out) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= written.size() || !(rows[i] == written[i])) changed.push_back(i);
  }
  out.Varint(changed.size());
  for (size_t i : changed) {
    out.Varint(i);
    put(rows[i], out);
  }
  written = rows;
}

class PieceReader {
 public:
  PieceReader(std::string_view piece, bool may_fill, Dictionary& dictionary, DictionaryMap& map,
              Diagnostics& diagnostics)
      : in_(piece), may_fill_(may_fill), d_(dictionary), map_(map), diagnostics_(diagnostics) {}

  bool Read() {
    return Strings() && Modules() && Frames() && Stacks() && Processes() && Threads() && Good() &&
           in_.remaining() == 0;
  }

 private:
  // Holes larger than this are not believed.
  static constexpr uint64_t kMaxFill = 1 << 22;

  bool Good() const { return ok_ && !in_.failed(); }

  // Reads "from, count" of a table and fills the hole before it, if any.
  template <class IdType, class Lost>
  bool Begin(std::vector<IdType>& map, Lost lost) {
    const uint64_t from = in_.Varint();
    count_ = in_.Varint();
    if (in_.failed() || from < map.size() || count_ > in_.remaining()) return false;
    const uint64_t missing = from - map.size();
    if (missing == 0) return true;
    if (!may_fill_ || missing > kMaxFill) return false;
    diagnostics_.Count("dictionary rows lost with a damaged section", missing);
    map.resize(from, lost());
    map_.identity = false;
    return true;
  }

  template <class IdType>
  void Append(std::vector<IdType>& map, IdType id) {
    map_.identity &= id.value == map.size();
    map.push_back(id);
  }

  bool Strings() {
    if (!Begin(map_.strings, [&] { return d_.Intern("[lost]"); })) return false;
    for (uint64_t i = 0; i < count_ && Good(); ++i) Append(map_.strings, d_.Intern(in_.String()));
    return Good();
  }

  bool Modules() {
    const auto lost = [&] {
      return d_.InternModule({.name = d_.Intern("[lost]"), .path = {}, .build_id = {}});
    };
    if (!Begin(map_.modules, lost)) return false;
    for (uint64_t i = 0; i < count_ && Good(); ++i) {
      Module module;
      module.name = GetString();
      module.path = GetString();
      module.build_id = GetString();
      if (Good()) Append(map_.modules, d_.InternModule(module));
    }
    return Good();
  }

  bool Frames() {
    if (!Begin(map_.frames, [&] { return d_.InternFrame("", "[lost]"); })) return false;
    for (uint64_t i = 0; i < count_ && Good(); ++i) {
      Frame frame;
      frame.module = GetId(in_, map_.modules, ok_);
      frame.function = GetString();
      frame.file = GetString();
      frame.line = static_cast<uint32_t>(in_.Varint());
      frame.flags = in_.U8();
      frame.offset = in_.Varint();
      if (Good()) Append(map_.frames, d_.InternFrame(frame));
    }
    return Good();
  }

  bool Stacks() {
    const auto lost = [&] { return d_.InternStack({}, d_.InternFrame("", "[lost]")); };
    if (!Begin(map_.stacks, lost)) return false;
    for (uint64_t i = 0; i < count_ && Good(); ++i) {
      // The distance back to the caller's stack; 0: outermost.
      const uint64_t back = in_.Varint();
      const uint64_t frame = in_.Varint();
      if (!Good() || back > map_.stacks.size() || frame >= map_.frames.size()) return false;
      const StackId parent = back == 0 ? StackId() : map_.stacks[map_.stacks.size() - back];
      Append(map_.stacks, d_.InternStack(parent, map_.frames[frame]));
    }
    return Good();
  }

  bool Processes() {
    for (uint64_t n = in_.Varint(); n > 0 && Good(); --n) {
      const uint64_t index = in_.Varint();
      Process row;
      row.pid = in_.SignedVarint();
      row.name = GetString();
      row.command_line = GetString();
      row.cgroup = GetString();
      row.start_ns = GetTime(in_);
      row.end_ns = GetTime(in_);
      if (!Good() || !Room(index, d_.processes().size())) return false;
      while (d_.processes().size() <= index) d_.AddProcess({});
      d_.process(ProcessId(index)) = row;
    }
    return Good();
  }

  bool Threads() {
    for (uint64_t n = in_.Varint(); n > 0 && Good(); --n) {
      const uint64_t index = in_.Varint();
      Thread row;
      row.tid = in_.SignedVarint();
      row.process = GetIdBelow<ProcessId>(in_, d_.processes().size(), ok_);
      row.name = GetString();
      const uint8_t kind = in_.U8();
      row.start_ns = GetTime(in_);
      row.end_ns = GetTime(in_);
      if (!Good() || kind >= kThreadKinds || !Room(index, d_.threads().size())) return false;
      row.kind = static_cast<ThreadKind>(kind);
      while (d_.threads().size() <= index) d_.AddThread({});
      d_.thread(ThreadId(index)) = row;
    }
    return Good();
  }

  bool Room(uint64_t index, size_t size) const {
    return index <= size || (may_fill_ && index - size < kMaxFill);
  }

  StringId GetString() { return GetId(in_, map_.strings, ok_); }

  ByteReader in_;
  bool may_fill_;
  bool ok_ = true;
  uint64_t count_ = 0;
  Dictionary& d_;
  DictionaryMap& map_;
  Diagnostics& diagnostics_;
};

bool Full(const ByteWriter& out, size_t max_bytes) { return out.size() >= max_bytes; }

}  // namespace

std::string EncodeDictionaryPiece(const Dictionary& d, DictionaryMark& mark, size_t max_bytes) {
  const bool nothing = mark.strings == d.strings().size() && mark.modules == d.modules().size() &&
                       mark.frames == d.frames().size() && mark.stacks == d.stacks().size() &&
                       mark.processes == d.processes() && mark.threads == d.threads();
  if (nothing) return {};
  // Each table is cut when the piece is full. Strings come first and stacks
  // last, so a cut piece never refers to a row that a later one brings.
  ByteWriter out;
  const auto table = [&](size_t& from, size_t size, auto put) {
    ByteWriter rows;
    const size_t begin = from;
    while (from < size && !Full(out, max_bytes) && !Full(rows, max_bytes)) put(from++, rows);
    out.Varint(begin);
    out.Varint(from - begin);
    out.Bytes(rows.bytes());
    return from == size;
  };
  bool whole = table(mark.strings, d.strings().size(),
                     [&](size_t i, ByteWriter& row) { row.String(d.Text(StringId(i))); });
  whole &= table(mark.modules, whole ? d.modules().size() : mark.modules,
                 [&](size_t i, ByteWriter& row) {
                   PutId(d.modules()[i].name, row);
                   PutId(d.modules()[i].path, row);
                   PutId(d.modules()[i].build_id, row);
                 });
  whole &=
      table(mark.frames, whole ? d.frames().size() : mark.frames, [&](size_t i, ByteWriter& row) {
        const Frame& frame = d.frames()[i];
        PutId(frame.module, row);
        PutId(frame.function, row);
        PutId(frame.file, row);
        row.Varint(frame.line);
        row.U8(frame.flags);
        row.Varint(frame.offset);
      });
  whole &=
      table(mark.stacks, whole ? d.stacks().size() : mark.stacks, [&](size_t i, ByteWriter& row) {
        const StackNode& node = d.stacks()[i];
        row.Varint(node.parent.valid() ? i - node.parent.value : 0);
        row.Varint(node.frame.value);
      });
  if (whole) {
    PutRows(d.processes(), mark.processes, PutProcess, out);
    PutRows(d.threads(), mark.threads, PutThread, out);
  } else {
    out.Varint(0);
    out.Varint(0);
  }
  return out.Take();
}

bool DecodeDictionaryPiece(std::string_view piece, bool may_fill, Dictionary& dictionary,
                           DictionaryMap& map, Diagnostics& diagnostics) {
  return PieceReader(piece, may_fill, dictionary, map, diagnostics).Read();
}

std::string EncodeInstances(const Instance* begin, const Instance* end) {
  ByteWriter out;
  out.Varint(static_cast<uint64_t>(end - begin));
  uint64_t previous_t0 = 0;
  for (const Instance* instance = begin; instance != end; ++instance) {
    const auto t0 = static_cast<uint64_t>(instance->t0_ns);
    PutId(instance->scenario, out);
    PutId(instance->thread, out);
    out.SignedVarint(static_cast<int64_t>(t0 - previous_t0));
    out.Varint(static_cast<uint64_t>(instance->t1_ns) - t0);
    previous_t0 = t0;
  }
  return out.Take();
}

bool DecodeInstances(std::string_view payload, const DictionaryMap& map,
                     const Dictionary& dictionary, std::vector<Instance>& instances,
                     Diagnostics& diagnostics) {
  ByteReader in(payload);
  const uint64_t count = in.Varint();
  if (count > in.remaining()) return false;
  uint64_t t0 = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bool ok = true;
    Instance instance;
    instance.scenario = GetId(in, map.strings, ok);
    instance.thread = GetIdBelow<ThreadId>(in, dictionary.threads().size(), ok);
    t0 += static_cast<uint64_t>(in.SignedVarint());
    instance.t0_ns = static_cast<int64_t>(t0);
    instance.t1_ns = static_cast<int64_t>(t0 + in.Varint());
    if (in.failed()) return false;
    const bool sane = instance.t0_ns <= instance.t1_ns && instance.t0_ns >= -INT64_MAX / 2 &&
                      instance.t1_ns <= INT64_MAX / 2;
    if (ok && sane) {
      instances.push_back(instance);
    } else {
      diagnostics.Count("instance that refers to nothing or ends before it begins");
    }
  }
  return in.remaining() == 0;
}

}  // namespace culprit::trace
