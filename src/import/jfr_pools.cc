// SPDX-License-Identifier: Apache-2.0
#include "import/jfr_pools.h"

#include <algorithm>

#include "import/importer.h"

namespace culprit::import_ {
namespace {

constexpr JfrWant kJfrThreadWants[] = {
    {"osName", 0}, {"osThreadId", 1}, {"javaName", 2}, {"javaThreadId", 3}};
constexpr JfrWant kJfrStackWants[] = {{"truncated", 0}, {"frames", 1, "method"}};
constexpr JfrWant kJfrMethodWants[] = {{"type", 0}, {"name", 1}};
constexpr JfrWant kJfrClassWants[] = {{"name", 0}};
constexpr JfrWant kJfrSymbolWants[] = {{"string", 0}};

}  // namespace

JfrClassName SplitJfrClassName(std::string_view text) {
  // "Main$$Lambda$14/0x0000000800c1", or with '+': a hidden class and where it is.
  for (const std::string_view mark : {"/0x", "+0x"}) text = text.substr(0, text.find(mark));
  const size_t last = text.find_last_of("/.");
  JfrClassName name;
  name.name = text.substr(last + 1);
  if (last != std::string_view::npos) name.package = text.substr(0, last);
  std::replace(name.package.begin(), name.package.end(), '/', '.');
  return name;
}

JfrPools::JfrPools(const JfrSchema& schema, trace::Dictionary& dictionary)
    : schema_(schema), dictionary_(dictionary) {}

const JfrPools::Pool& JfrPools::PoolOf(int64_t class_id) {
  const auto [it, is_new] = pools_.try_emplace(class_id);
  Pool& pool = it->second;
  const JfrClass* found = schema_.Find(class_id);
  if (!is_new || found == nullptr) return pool;
  const auto make = [&](Kind kind, std::span<const JfrWant> wants) {
    pool = {kind, JfrLayout(schema_, class_id, wants)};
  };
  if (found->name == "java.lang.Thread") make(Kind::kThread, kJfrThreadWants);
  if (found->name == "jdk.types.StackTrace") make(Kind::kStack, kJfrStackWants);
  if (found->name == "jdk.types.Method") make(Kind::kMethod, kJfrMethodWants);
  if (found->name == "java.lang.Class") make(Kind::kClass, kJfrClassWants);
  if (found->name == "jdk.types.Symbol") make(Kind::kSymbol, kJfrSymbolWants);
  if (found->name == "java.lang.String") pool.kind = Kind::kString;
  return pool;
}

bool JfrPools::Entry(JfrReader& reader, int64_t class_id, const Pool& pool) {
  const int64_t entry = reader.Long();
  if (pool.kind == Kind::kOther) return schema_.SkipOne(reader, class_id, 0);
  if (pool.kind == Kind::kString) {
    strings_[entry] = reader.String().text;
    return !reader.failed();
  }
  if (!pool.layout.Read(reader, row_)) return false;
  switch (pool.kind) {
    case Kind::kThread: {
      const std::string java_name = Text(row_.strings[2]);
      threads_[entry] = {.os_id = row_.numbers[1],
                         .java_id = row_.numbers[3],
                         .name = java_name.empty() ? Text(row_.strings[0]) : java_name};
      break;
    }
    case Kind::kStack:
      stacks_[entry] = {.truncated = row_.numbers[0] != 0, .methods = row_.items};
      break;
    case Kind::kMethod:
      methods_[entry] = {.of_class = row_.numbers[0], .name = row_.numbers[1]};
      break;
    case Kind::kClass:
      class_names_[entry] = row_.numbers[0];
      break;
    case Kind::kSymbol:
      symbols_[entry] = row_.strings[0].text;
      break;
    case Kind::kString:
    case Kind::kOther:
      break;
  }
  return true;
}

bool JfrPools::Add(std::string_view fields, bool compressed) {
  JfrReader reader(fields, compressed);
  for (int i = 0; i < 3; ++i) (void)reader.Long();  // time, duration, the one before
  (void)reader.Byte();                              // why it was written
  const size_t pools = reader.Count();
  for (size_t i = 0; i < pools && !reader.failed(); ++i) {
    const int64_t class_id = reader.Long();
    const Pool& pool = PoolOf(class_id);
    const size_t entries = reader.Count();
    for (size_t j = 0; j < entries; ++j) {
      if (!Entry(reader, class_id, pool)) return false;
    }
  }
  return !reader.failed();
}

const JfrThread* JfrPools::Thread(int64_t entry) const {
  const auto it = threads_.find(entry);
  return it == threads_.end() ? nullptr : &it->second;
}

std::string JfrPools::Text(const JfrString& string) const {
  if (string.pool_entry < 0) return string.text;
  const auto it = strings_.find(string.pool_entry);
  return it == strings_.end() ? std::string() : it->second;
}

std::string JfrPools::Symbol(int64_t entry) const {
  const auto it = symbols_.find(entry);
  return it == symbols_.end() ? std::string() : it->second;
}

trace::FrameId JfrPools::Frame(int64_t method) {
  const auto [it, is_new] = frames_.try_emplace(method);
  if (!is_new) return it->second;
  const auto row = methods_.find(method);
  if (row == methods_.end()) return it->second = dictionary_.InternFrame("", "[unknown]");
  const auto name = class_names_.find(row->second.of_class);
  const JfrClassName of =
      SplitJfrClassName(name == class_names_.end() ? std::string() : Symbol(name->second));
  const std::string function = Symbol(row->second.name);
  return it->second =
             dictionary_.InternFrame(of.package, of.name + (of.name.empty() ? "" : ".") + function);
}

trace::StackId JfrPools::Stack(int64_t entry) {
  const auto [it, is_new] = made_.try_emplace(entry);
  const auto row = stacks_.find(entry);
  if (!is_new || row == stacks_.end()) return it->second;
  const std::vector<int64_t>& methods = row->second.methods;
  const size_t count = std::min(methods.size(), kMaxStackFrames);
  trace::StackId stack;
  if (row->second.truncated || count < methods.size()) {
    stack = dictionary_.InternStack({}, dictionary_.InternFrame("", trace::kTruncatedFunction));
  }
  for (size_t i = count; i > 0; --i) {
    stack = dictionary_.InternStack(stack, Frame(methods[i - 1]));
  }
  return it->second = stack;
}

}  // namespace culprit::import_
