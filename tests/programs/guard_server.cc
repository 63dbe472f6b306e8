// SPDX-License-Identifier: Apache-2.0
//
// A server with three kinds of work and a planted fault in each, for the guards to
// find: guard_server MODE SOCKET [USER], which goes on as that user (a number), MODE being
//
//   loop      one thread, an epoll loop over its clients
//   workers   the loop hands requests to four threads by a condition variable
//   fork      two forked processes, each with a loop
//   threads   one for each client; who has none left waits to be given another
//
// A request is a line: a letter and how many milliseconds too long it is to take:
// "A 0" sorts, "B 0" hashes, "C 0" searches text; "A 50" and "B 50" burn the CPU in
// PlantedSpin, "C 50" sleeps in PlantedSleep. The answer is a line. "Q" ends it; in the
// mode workers "P 500" is five hundred of "A 0" at once, of which the last is answered.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#define PLANTED extern "C" [[gnu::noinline]]

namespace {

int64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Request {
  int fd = -1;
  char kind = 0;
  int late_ms = 0;
};

volatile uint64_t g_sink = 0;
bool g_quit = false;

}  // namespace

PLANTED void PlantedSpin(int ms) {
  const int64_t until_ns = NowNs() + int64_t{ms} * 1'000'000;
  while (NowNs() < until_ns) g_sink = g_sink + 1;
}

PLANTED void PlantedSleep(int ms) {
  const timespec time = {.tv_sec = ms / 1000, .tv_nsec = long{ms % 1000} * 1'000'000};
  nanosleep(&time, nullptr);
}

PLANTED void FillNumbers(std::vector<uint32_t>& numbers) {
  uint32_t value = 12345;
  for (uint32_t& number : numbers) number = value = value * 1664525 + 1013904223;
}
PLANTED void SortNumbers(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
}
PLANTED uint64_t DoSort(int late_ms) {
  std::vector<uint32_t> numbers(200);
  FillNumbers(numbers);
  if (late_ms > 0) PlantedSpin(late_ms);
  SortNumbers(numbers);
  return numbers.front();
}

PLANTED uint64_t HashStep(uint64_t hash, uint64_t byte) { return (hash ^ byte) * 1099511628211u; }
PLANTED uint64_t DoHash(int late_ms) {
  uint64_t hash = 14695981039346656037u;
  for (uint64_t i = 0; i < 300; ++i) hash = HashStep(hash, i & 255);
  if (late_ms > 0) PlantedSpin(late_ms);
  return hash;
}

PLANTED void BuildText(std::string& text) {
  for (int i = 0; i < 400; ++i) text.push_back(static_cast<char>('a' + i * 7 % 26));
}
PLANTED uint64_t FindWord(const std::string& text) { return text.find("zgnub"); }
PLANTED uint64_t DoSearch(int late_ms) {
  std::string text;
  BuildText(text);
  if (late_ms > 0) PlantedSleep(late_ms);
  return FindWord(text);
}

PLANTED void Answer(int fd, uint64_t value) {
  char line[32];
  const int bytes = snprintf(line, sizeof(line), "%llu\n", static_cast<unsigned long long>(value));
  if (write(fd, line, static_cast<size_t>(bytes)) < 0) g_sink = g_sink + 1;
}

PLANTED void Handle(const Request& request) {
  uint64_t value = 0;
  switch (request.kind) {
    case 'A':
      value = DoSort(request.late_ms);
      break;
    case 'B':
      value = DoHash(request.late_ms);
      break;
    case 'C':
      value = DoSearch(request.late_ms);
      break;
    default:
      g_quit = true;
  }
  Answer(request.fd, value);
}

namespace {

// ---- workers

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_more = PTHREAD_COND_INITIALIZER;
std::deque<Request> g_queue;

[[gnu::noinline]] Request NextRequest() {
  pthread_mutex_lock(&g_lock);
  while (g_queue.empty()) pthread_cond_wait(&g_more, &g_lock);
  const Request request = g_queue.front();
  g_queue.pop_front();
  pthread_mutex_unlock(&g_lock);
  return request;
}

void* Work(void* /*unused*/) {
  while (true) {
    Handle(NextRequest());
    if (g_quit) _exit(0);
  }
}

void HandOver(Request request) {
  int more = 0;
  if (request.kind == 'P') {
    more = request.late_ms - 1;
    request = {.fd = request.fd, .kind = 'A'};
  }
  pthread_mutex_lock(&g_lock);
  for (int i = 0; i < more; ++i) g_queue.push_back({.fd = -1, .kind = 'A'});
  g_queue.push_back(request);
  if (more > 0) pthread_cond_broadcast(&g_more);
  pthread_cond_signal(&g_more);
  pthread_mutex_unlock(&g_lock);
}

bool ReadRequest(int fd, Request& request) {
  char line[64] = {};
  const ssize_t got = read(fd, line, sizeof(line) - 1);
  if (got <= 0) return false;
  request = {.fd = fd, .kind = line[0], .late_ms = atoi(line + 1)};
  return true;
}

// ---- threads

std::deque<int> g_clients;
int g_idle = 0;

void* Serve(void* /*unused*/) {
  while (true) {
    pthread_mutex_lock(&g_lock);
    ++g_idle;
    while (g_clients.empty()) pthread_cond_wait(&g_more, &g_lock);
    --g_idle;
    const int fd = g_clients.front();
    g_clients.pop_front();
    pthread_mutex_unlock(&g_lock);
    for (Request request; ReadRequest(fd, request);) {
      Handle(request);
      if (g_quit) _exit(0);
    }
    close(fd);
  }
}

void GiveClientsToThreads(int listening) {
  fcntl(listening, F_SETFL, 0);
  while (true) {
    const int client = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    pthread_mutex_lock(&g_lock);
    g_clients.push_back(client);
    const bool enough = static_cast<int>(g_clients.size()) <= g_idle;
    pthread_cond_signal(&g_more);
    pthread_mutex_unlock(&g_lock);
    if (enough) continue;
    pthread_t thread;
    pthread_create(&thread, nullptr, &Serve, nullptr);
    pthread_detach(thread);
  }
}

// ---- the loop

void Loop(int listening, bool workers) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted = {.events = EPOLLIN, .data = {.fd = listening}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &wanted);
  while (!g_quit) {
    epoll_event events[16];
    const int count = epoll_wait(epoll, events, 16, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listening) {
        const int client = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) continue;
        wanted = {.events = EPOLLIN, .data = {.fd = client}};
        epoll_ctl(epoll, EPOLL_CTL_ADD, client, &wanted);
        continue;
      }
      Request request;
      if (!ReadRequest(fd, request)) {
        close(fd);
      } else if (workers) {
        HandOver(request);
      } else {
        Handle(request);
      }
    }
  }
}

int Listen(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  unlink(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return -1;
  return listen(fd, 64) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::string mode = argv[1];
  const int listening = Listen(argv[2]);
  if (listening < 0) return 1;
  const auto user = static_cast<uid_t>(argc == 4 ? strtoul(argv[3], nullptr, 10) : getuid());
  if (argc == 4 && setresuid(user, user, user) != 0) return 1;
  signal(SIGPIPE, SIG_IGN);
  if (mode == "fork") {
    pid_t children[2];
    for (pid_t& child : children) {
      child = fork();
      if (child != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // who is killed takes them along
      Loop(listening, false);
      return 0;
    }
    waitpid(-1, nullptr, 0);
    for (const pid_t child : children) kill(child, SIGTERM);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    return 0;
  }
  if (mode == "workers") {
    for (int i = 0; i < 4; ++i) {
      pthread_t thread;
      pthread_create(&thread, nullptr, &Work, nullptr);
      pthread_detach(thread);
    }
  }
  if (mode == "threads") GiveClientsToThreads(listening);
  Loop(listening, mode == "workers");
  return 0;
}
