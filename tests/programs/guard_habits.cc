// SPDX-License-Identifier: Apache-2.0
// Things that programs do and that patched code could break, each by a name: what
// it prints and its exit code must be the same with guards and without. All of
// them have a loop of waits, so that the runtime has something to do in it.
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define PLANTED __attribute__((noinline, noclone))

namespace {

int g_pipe[2];
volatile int g_sink = 0;

PLANTED int Work(int n) {
  g_sink = g_sink + n;
  return n * 3 + 1;
}

// One iteration of an event loop: a byte through a pipe, found by poll.
PLANTED int ServeOne(int n) {
  const char byte = static_cast<char>(n);
  if (write(g_pipe[1], &byte, 1) != 1) return -1;
  pollfd wanted = {g_pipe[0], POLLIN, 0};
  if (poll(&wanted, 1, 1000) != 1) return -2;
  char got = 0;
  if (read(g_pipe[0], &got, 1) != 1) return -3;
  return Work(got);
}

PLANTED int Serve(int times) {
  int sum = 0;
  for (int i = 0; i < times; ++i) sum += ServeOne(i % 100);
  return sum;
}

int Threads() {
  long sum = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::thread> threads;
    std::vector<long> sums(10);
    for (int i = 0; i < 10; ++i) {
      threads.emplace_back([&sums, i] {
        for (int n = 0; n < 20; ++n) sums[static_cast<size_t>(i)] += Work(n);
        usleep(100);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const long part : sums) sum += part;
  }
  printf("%ld\n", sum);
  return 0;
}

int Forks() {
  int good = 0;
  for (int i = 0; i < 60; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const int sum = Serve(5);
      if (i % 2 == 0) exit(sum == Serve(5) ? 0 : 1);
      _exit(sum == 0 ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ++good;
  }
  printf("%d children\n", good);
  return 0;
}

PLANTED int RunByVfork() {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/echo", "echo", "from a child", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int VforkExec() {
  for (int i = 0; i < 5; ++i) {
    fflush(stdout);
    printf("%d\n", RunByVfork());
  }
  return system("exit 3") == 3 << 8 ? 0 : 1;
}

sigjmp_buf g_way_out;
volatile int g_signals = 0;

void JumpOut(int) {
  g_signals = g_signals + 1;
  siglongjmp(g_way_out, 1);
}

void CountSignal(int) {
  g_signals = g_signals + 1;
  Work(g_signals);
}

// Handlers on a stack of their own; some leave a wait by longjmp.
int Signals() {
  stack_t stack = {};
  stack.ss_size = 64 * 1024;
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = CountSignal;
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = JumpOut;
  sigaction(SIGALRM, &action, nullptr);
  static int round = 0;  // not in a register that a jump would restore
  for (; round < 20; ++round) {
    raise(SIGUSR1);
    if (sigsetjmp(g_way_out, 1) == 0) {
      ualarm(2000, 0);
      pollfd nothing = {g_pipe[0], POLLIN, 0};
      poll(&nothing, 1, 10'000);
      return 1;
    }
    Serve(3);
  }
  printf("%d signals\n", g_signals);
  return 0;
}

PLANTED int Throw(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  const int result = Throw(depth - 1);
  return result + Work(depth);
}

int Exceptions() {
  int caught = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      Serve(1);
      Throw(i % 30);
    } catch (const std::runtime_error& error) {
      caught += error.what() == std::string("thrown") ? 1 : 0;
    }
  }
  printf("%d caught\n", caught);
  return 0;
}

jmp_buf g_back;

PLANTED void JumpBack(int depth) {
  if (depth == 0 && g_sink != -1) longjmp(g_back, 7);
  if (depth > 0) JumpBack(depth - 1);
  Work(depth);
}

int LongJumps() {
  static int jumps = 0;
  while (jumps < 100) {
    if (setjmp(g_back) == 0) {
      Serve(1);
      JumpBack(jumps % 20);
      return 1;
    }
    ++jumps;
  }
  printf("%d jumps\n", jumps);
  return 0;
}

PLANTED int Recurse(int depth) {
  if (depth == 0) return 1;
  return Recurse(depth - 1) + (Work(depth) & 1);
}

PLANTED int WithAlloca(int size) {
  auto* bytes = static_cast<char*>(alloca(static_cast<size_t>(size)));
  memset(bytes, size & 0x7f, static_cast<size_t>(size));
  return bytes[size / 2] + Work(size) + ServeOne(size % 50);
}

int Recursion() {
  Serve(3);
  printf("%d\n", Recurse(20'000));
  int sum = 0;
  for (int i = 16; i < 4000; i += 61) sum += WithAlloca(i);
  printf("%d\n", sum);
  return 0;
}

int Libraries(const char* path) {
  for (int i = 0; i < 6; ++i) {
    void* library = dlopen(path, RTLD_NOW);
    if (library == nullptr) return 1;
    usleep(60'000);  // the runtime looks for new libraries now and then
    Serve(3);
    if (dlsym(library, "SleepInTheLibrary") == nullptr) return 1;
    dlclose(library);
    usleep(60'000);
    Serve(3);
  }
  printf("opened and closed\n");
  return 0;
}

#if defined(__aarch64__)
constexpr uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#endif

bool ForbidMapping() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int Seccomp() {
  printf("%d\n", Serve(50));
  fflush(stdout);
  if (!ForbidMapping()) return 1;
  printf("%d\n", Serve(500));
  return 0;
}

int Errors() {
  errno = 77;
  Work(1);
  Recurse(10);
  const bool kept = errno == 77;
  pollfd none = {-1, 0, 0};
  errno = 5;
  poll(&none, 1, 0);
  const bool kept_by_success = errno == 5;
  char byte = 0;
  const ssize_t failed = read(-1, &byte, 1);
  printf("%d %d %zd %d\n", kept, kept_by_success, failed, errno);
  epoll_event event = {};
  const int wait_failed = epoll_wait(-1, &event, 1, 10);
  printf("%d %d\n", wait_failed, errno);
  return 0;
}

// As daemons do: every descriptor but the standard ones.
int CloseAll() {
  Serve(5);
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 3; fd < 2000; ++fd) close(fd);
  const int first = open("/dev/null", O_RDWR);
  if (pipe(g_pipe) != 0) return 1;
  std::vector<int> mine;
  for (int i = 0; i < 900; ++i) mine.push_back(dup(first));
  printf("%d %d\n", first, Serve(50));
  char name[] = "/tmp/culprit-habit-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  usleep(150'000);
  Serve(2000);
  printf("%ld\n", static_cast<long>(lseek(file, 0, SEEK_END)));
  return 0;
}

sem_t g_never;

void* WaitForEver(void*) {
  sem_wait(&g_never);
  return nullptr;
}

// Cancelling a thread unwinds its stack through the call that it waits in.
int Cancellation() {
  sem_init(&g_never, 0, 0);
  int cancelled = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, WaitForEver, nullptr);
    usleep(1000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED ? 1 : 0;
  }
  printf("%d cancelled\n", cancelled);
  return 0;
}

PLANTED int Dawdle(int ms) {
  usleep(static_cast<useconds_t>(ms) * 1000);
  int sum = 0;
  for (int i = 0; i < 20; ++i) sum += Work(ms + i);
  return sum;
}

// Two slow iterations among 200 fast ones: one in which a function is entered
// again behind the delay (twenty times: the first hit only sets its bit, and of the
// others a thread looks at the time at every sixteenth), one whose delay comes last.
int Slow() {
  for (int i = 0; i < 200; ++i) {
    int sum = ServeOne(i % 100);
    if (i == 100) sum += Dawdle(40);
    if (i == 150) usleep(60'000);
    g_sink = g_sink + sum;
  }
  printf("done\n");
  return 0;
}

// A function that is entered far more often than guarding it is worth.
int Hot() {
  for (int i = 0; i < 100; ++i) {
    ServeOne(i);
    for (int n = 0; n < 2000; ++n) Work(n);
  }
  printf("done\n");
  return 0;
}

// Begins with an instruction of five bytes in one line: such a function of x86-64 is patched also
// where other threads run, as an emulator's do.
PLANTED __attribute__((aligned(16))) int NextTurn(int wait_ms) {
  g_sink = g_sink - wait_ms;
  return wait_ms * 3 - 2;
}

// Looks for a request before it waits for one. 0: there is none.
PLANTED int TakeReady(int wait_ms) {
  pollfd wanted = {g_pipe[0], POLLIN, 0};
  if (poll(&wanted, 1, 0) != 1 && poll(&wanted, 1, wait_ms) != 1) return 0;
  char got = 0;
  if (read(g_pipe[0], &got, 1) != 1) return 0;
  return got;
}

PLANTED int ServeReady(int wait_ms) {
  int sum = 0;
  for (;;) {
    const int request = TakeReady(NextTurn(wait_ms));
    if (request == 0) return sum;
    if (request == 's') usleep(60'000);
    sum += Work(request);
  }
}

// One request is taken before there is a loop; then all are there before the loop begins, and
// it waits only when they are done. The first of them is slow.
int Ready() {
  if (write(g_pipe[1], "1sabc", 5) != 5) return 1;
  const int first = TakeReady(NextTurn(10));
  printf("%d %d\n", first, ServeReady(10));
  return 0;
}

// A loop that goes on until its input ends, for plans to change under it.
int Loop() {
  long sum = 0;
  char byte = 0;
  while (read(0, &byte, 1) == 1) sum += ServeOne(byte);
  printf("%ld\n", sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || pipe(g_pipe) != 0) return 2;
  setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
  const std::string habit = argv[1];
  if (habit == "slow") return Slow();
  if (habit == "hot") return Hot();
  if (habit == "loop") return Loop();
  if (habit == "ready") return Ready();
  Serve(20);
  if (habit == "threads") return Threads();
  if (habit == "forks") return Forks();
  if (habit == "vfork") return VforkExec();
  if (habit == "signals") return Signals();
  if (habit == "exceptions") return Exceptions();
  if (habit == "longjmp") return LongJumps();
  if (habit == "recursion") return Recursion();
  if (habit == "libraries" && argc == 3) return Libraries(argv[2]);
  if (habit == "seccomp") return Seccomp();
  if (habit == "errors") return Errors();
  if (habit == "closeall") return CloseAll();
  if (habit == "cancel") return Cancellation();
  return 2;
}
