// SPDX-License-Identifier: Apache-2.0
#include "symbol/debug_server.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "symbol/debug_files.h"

namespace culprit::symbol {
namespace {

using Clock = std::chrono::steady_clock;

// libdebuginfod brings an HTTP client with many libraries; most runs of this
// program never need it, so it is no part of what is linked.
struct Library {
  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_executable) find_executable = nullptr;
  decltype(&debuginfod_find_debuginfo) find_debuginfo = nullptr;
  decltype(&debuginfod_set_progressfn) set_progressfn = nullptr;
  decltype(&debuginfod_set_user_data) set_user_data = nullptr;
  decltype(&debuginfod_get_user_data) get_user_data = nullptr;
};

template <class Function>
bool Resolve(void* handle, const char* name, Function& function) {
  void* symbol = dlsym(handle, name);
  std::memcpy(&function, &symbol, sizeof function);
  return symbol != nullptr;
}

// Opened once and never closed: it has threads and state of its own.
const Library* OpenLibrary() {
  static const Library* const library = []() -> const Library* {
    void* handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return nullptr;
    static Library opened;
    const bool all = Resolve(handle, "debuginfod_begin", opened.begin) &&
                     Resolve(handle, "debuginfod_end", opened.end) &&
                     Resolve(handle, "debuginfod_find_executable", opened.find_executable) &&
                     Resolve(handle, "debuginfod_find_debuginfo", opened.find_debuginfo) &&
                     Resolve(handle, "debuginfod_set_progressfn", opened.set_progressfn) &&
                     Resolve(handle, "debuginfod_set_user_data", opened.set_user_data) &&
                     Resolve(handle, "debuginfod_get_user_data", opened.get_user_data);
    return all ? &opened : nullptr;
  }();
  return library;
}

}  // namespace

struct DebugServer::State {
  const Library* library = nullptr;
  std::string cache;
  uint64_t max_bytes = 0;
  Clock::time_point deadline;
  std::atomic<bool> stop{false};
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> bytes{0};  // transferred, and promised to transfers under way
  std::vector<Download> downloads;

  std::mutex mutex;
  std::condition_variable changed;
  size_t done = 0;
  std::vector<std::thread> threads;

  bool TimeIsOver() const { return stop.load() || Clock::now() >= deadline; }
  void Run();
  bool IsInCache(const Download& download) const;
  void Fetch(debuginfod_client* client, Download& download);
};

namespace {

// What one transfer tells the library's callback, and hears from it.
struct Transfer {
  const Library* library = nullptr;
  const std::atomic<bool>* stop = nullptr;
  Clock::time_point deadline;
  std::atomic<uint64_t>* bytes = nullptr;
  uint64_t max_bytes = 0;
  uint64_t claimed = 0;
  bool too_late = false;
  bool too_large = false;
};

// Called by the library's loop at least once a second. Before a server has
// answered, `a` counts rounds and `b` is 0; then they are bytes, `b` still 0
// where the server does not tell the size.
int OnProgress(const Library& library, debuginfod_client* client, long a, long b) {
  auto& transfer = *static_cast<Transfer*>(library.get_user_data(client));
  if (transfer.stop->load() || Clock::now() >= transfer.deadline) {
    transfer.too_late = true;
    return 1;
  }
  const auto size = static_cast<uint64_t>(std::max({a, b, 0L}));
  if (size > transfer.claimed) {
    const uint64_t more = size - transfer.claimed;
    if (transfer.bytes->fetch_add(more) + more > transfer.max_bytes) {
      transfer.bytes->fetch_sub(more);
      transfer.too_large = true;
      return 1;
    }
    transfer.claimed = size;
  }
  return 0;
}

int ProgressCallback(debuginfod_client* client, long a, long b) {
  return OnProgress(*OpenLibrary(), client, a, b);
}

}  // namespace

// An empty file in the cache says that no server had it.
bool DebugServer::State::IsInCache(const Download& download) const {
  std::error_code error;
  const auto size = std::filesystem::file_size(
      cache + "/" + download.build_id + (download.debug ? "/debuginfo" : "/executable"), error);
  return !error && size > 0;
}

void DebugServer::State::Fetch(debuginfod_client* client, Download& download) {
  Transfer transfer{.library = library,
                    .stop = &stop,
                    .deadline = deadline,
                    .bytes = &bytes,
                    .max_bytes = max_bytes};
  library->set_user_data(client, &transfer);
  const bool was_there = IsInCache(download);
  const auto find = download.debug ? library->find_debuginfo : library->find_executable;
  char* path = nullptr;
  const int fd =
      find(client, reinterpret_cast<const unsigned char*>(download.build_id.c_str()), 0, &path);
  if (fd >= 0) {
    // What came in one go was never reported.
    const off_t size = was_there ? 0 : lseek(fd, 0, SEEK_END);
    download.bytes = static_cast<uint64_t>(std::max<off_t>(size, 0));
    bytes.fetch_add(download.bytes - transfer.claimed);
    close(fd);
    download.state = Download::State::kHere;
  } else {
    bytes.fetch_sub(transfer.claimed);
    if (transfer.too_large || fd == -EFBIG) {
      download.state = Download::State::kTooLarge;
    } else if (transfer.too_late || TimeIsOver()) {
      download.state = Download::State::kTooLate;
    } else if (fd == -ENOENT) {
      download.state = Download::State::kUnknown;
    } else {
      download.state = Download::State::kFailed;
      download.why = std::strerror(-fd);  // NOLINT(concurrency-mt-unsafe): glibc's is safe
    }
  }
  std::free(path);
}

void DebugServer::State::Run() {
  debuginfod_client* client = library->begin();
  if (client != nullptr) library->set_progressfn(client, &ProgressCallback);
  while (true) {
    const size_t i = next.fetch_add(1);
    if (i >= downloads.size()) break;
    Download& download = downloads[i];
    if (TimeIsOver()) {
      download.state = Download::State::kTooLate;
    } else if (bytes.load() >= max_bytes && !IsInCache(download)) {
      download.state = Download::State::kTooLarge;
    } else if (client == nullptr) {
      download.state = Download::State::kFailed;
      download.why = "no client";
    } else {
      Fetch(client, download);
    }
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  }
  if (client != nullptr) library->end(client);
}

DebugServer::DebugServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
DebugServer::DebugServer(DebugServer&&) noexcept = default;

DebugServer::~DebugServer() {
  if (state_ == nullptr) return;
  state_->stop = true;
  for (std::thread& thread : state_->threads) {
    if (thread.joinable()) thread.join();
  }
}

Result<DebugServer> DebugServer::Start(const DebugServerOptions& options,
                                       std::vector<Download> wanted) {
  const char* from_environment = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  std::string urls = options.urls;
  if (urls.empty() && from_environment != nullptr) urls = from_environment;
  if (urls.find_first_not_of(' ') == std::string::npos) {
    return Error{.message = "no debuginfod server is known",
                 .hint = "set DEBUGINFOD_URLS, or give --debuginfod-urls"};
  }
  const Library* library = OpenLibrary();
  if (library == nullptr) {
    return Error{.message = "libdebuginfod is not installed",
                 .hint =
                     "the package is libdebuginfod1 (Debian, Ubuntu) or "
                     "elfutils-debuginfod-client (Fedora)"};
  }
  const int64_t seconds = std::clamp<int64_t>(options.max_time_ns / 1'000'000'000, 1, 90);
  setenv(DEBUGINFOD_URLS_ENV_VAR, urls.c_str(), 1);
  setenv(DEBUGINFOD_TIMEOUT_ENV_VAR, std::to_string(seconds).c_str(), 1);
  // Servers then refuse a larger file before its first byte.
  setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, std::to_string(options.max_bytes).c_str(), 1);
  if (!options.cache.empty()) setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, options.cache.c_str(), 1);
  auto state = std::make_unique<State>();
  state->library = library;
  state->cache = options.cache.empty() ? DebuginfodCacheFolder() : options.cache;
  state->max_bytes = options.max_bytes;
  state->deadline = Clock::now() + std::chrono::nanoseconds(options.max_time_ns);
  state->downloads = std::move(wanted);
  const size_t threads =
      std::min(std::max<size_t>(options.connections, 1), state->downloads.size());
  for (size_t i = 0; i < threads; ++i) {
    state->threads.emplace_back([state = state.get()] { state->Run(); });
  }
  return DebugServer(std::move(state));
}

std::vector<Download> DebugServer::Wait(Progress& progress) {
  progress.Start("fetching debug files", "files", state_->downloads.size());
  size_t told = 0;
  {
    std::unique_lock lock(state_->mutex);
    while (told < state_->downloads.size()) {
      state_->changed.wait(lock, [&] { return state_->done > told; });
      progress.Advance(state_->done - told);
      told = state_->done;
    }
  }
  progress.Finish();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
  return state_->downloads;
}

}  // namespace culprit::symbol
