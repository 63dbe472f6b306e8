// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbolizer.h"

#include <functional>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "symbol/module.h"

namespace culprit::symbol {
namespace {

struct KeyHash {
  size_t operator()(const ModuleKey& key) const {
    const std::hash<std::string_view> hash;
    return hash(key.path) * 31 + hash(key.build_id);
  }
};

struct KeyEqual {
  bool operator()(const ModuleKey& a, const ModuleKey& b) const {
    return a.path == b.path && a.build_id == b.build_id;
  }
};

}  // namespace

struct Symbolizer::State {
  SymbolizerOptions options;
  mutable std::shared_mutex mutex;  // of the map; each module has a lock of its own
  std::unordered_map<ModuleKey, std::unique_ptr<Module>, KeyHash, KeyEqual> modules;
};

Symbolizer::Symbolizer(SymbolizerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}

Symbolizer::~Symbolizer() = default;

Module& Symbolizer::Find(const ModuleKey& key) {
  {
    const std::shared_lock<std::shared_mutex> lock(state_->mutex);
    const auto it = state_->modules.find(key);
    if (it != state_->modules.end()) return *it->second;
  }
  const std::unique_lock<std::shared_mutex> lock(state_->mutex);
  std::unique_ptr<Module>& module = state_->modules[key];
  if (module == nullptr) module = std::make_unique<Module>(key, state_->options);
  return *module;
}

const std::vector<Symbol>& Symbolizer::Lookup(const ModuleKey& module, uint64_t file_offset,
                                              bool is_return_address) {
  return Lookup(Find(module), file_offset, is_return_address);
}

const std::vector<Symbol>& Symbolizer::Lookup(Module& module, uint64_t file_offset,
                                              bool is_return_address) {
  return module.Lookup(file_offset, is_return_address);
}

Diagnostics Symbolizer::diagnostics() const {
  const std::shared_lock<std::shared_mutex> lock(state_->mutex);
  Diagnostics all;
  for (const auto& [key, module] : state_->modules) all.Merge(module->diagnostics());
  return all;
}

}  // namespace culprit::symbol
