// SPDX-License-Identifier: Apache-2.0
//
// JfrPools: the constant pools of one chunk, as far as threads, stacks and texts
// need them. Events name their threads and stacks by entry numbers that hold
// only inside their chunk.
//
// A frame's module is the package, its function "Class.method": one module a
// component, as for native code. What a virtual machine makes up at run time (a
// hidden class's address) is left out of names, so that one method has one name
// in every recording.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/jfr_chunk.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

struct JfrThread {
  int64_t os_id = 0;    // 0: none, a virtual thread
  int64_t java_id = 0;  // 0: not a Java thread
  std::string name;
};

// "java/util/concurrent/Worker$1" as module "java.util.concurrent" and "Worker$1".
struct JfrClassName {
  std::string package;
  std::string name;
};
JfrClassName SplitJfrClassName(std::string_view text);

class JfrPools {
 public:
  // Both outlive this object.
  JfrPools(const JfrSchema& schema, trace::Dictionary& dictionary);

  // Adds the entries of a pool event. False: it is damaged; what came before
  // stays.
  bool Add(std::string_view fields, bool compressed);

  // nullptr: no such entry.
  const JfrThread* Thread(int64_t entry) const;
  // none: no such entry, or an empty stack.
  trace::StackId Stack(int64_t entry);
  std::string Text(const JfrString& string) const;

 private:
  enum class Kind : uint8_t { kOther, kThread, kStack, kMethod, kClass, kSymbol, kString };
  struct Pool {
    Kind kind = Kind::kOther;
    JfrLayout layout;
  };
  struct StackRow {
    bool truncated = false;
    std::vector<int64_t> methods;  // leaf first
  };
  struct MethodRow {
    int64_t of_class = 0;
    int64_t name = 0;
  };

  const Pool& PoolOf(int64_t class_id);
  bool Entry(JfrReader& reader, int64_t class_id, const Pool& pool);
  trace::FrameId Frame(int64_t method);
  std::string Symbol(int64_t entry) const;

  const JfrSchema& schema_;
  trace::Dictionary& dictionary_;
  std::unordered_map<int64_t, Pool> pools_;
  JfrRow row_;
  std::unordered_map<int64_t, JfrThread> threads_;
  std::unordered_map<int64_t, StackRow> stacks_;
  std::unordered_map<int64_t, MethodRow> methods_;
  std::unordered_map<int64_t, int64_t> class_names_;
  std::unordered_map<int64_t, std::string> symbols_;
  std::unordered_map<int64_t, std::string> strings_;
  std::unordered_map<int64_t, trace::FrameId> frames_;
  std::unordered_map<int64_t, trace::StackId> made_;
};

}  // namespace culprit::import_
