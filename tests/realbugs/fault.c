// SPDX-License-Identifier: Apache-2.0
//
// Faults of known kind in servers that have no bug of that kind: a library to be
// preloaded. The file that CULPRIT_FAULT names is mapped, and its numbers, one a
// kind of fault, are looked at in every call, so that a healthy and a faulty time
// are two times of one process. All zero: every call goes through as it is.
//
// What the library adds are real system calls that really fail or really are
// repeated, made on the stack of the server's function that called: the same as
// if the loop were the server's own. Only sockets that the server accepted are
// disturbed, never its other files; the calls that sync are an exception.
//
// It is named libc-fault.so, so that its frames count as the C library's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The order is that of FAULTS in harness.py.
enum Fault {
  kAcceptFails,   // accept fails with EAGAIN, for ever
  kReceiveFails,  // reads of a client fail with EAGAIN, for ever
  kSendFails,     // N of N + 1 sends to a client fail with EAGAIN
  kReceiveAgain,  // a read of a client is interrupted N times before it is done
  kSendBytes,     // a send to a client takes at most N bytes
  kSyncAgain,     // a sync is done N times more
  kSyncSleeps,    // a sync takes N microseconds longer, asleep
  kSendSleeps,    // a send to a client takes N microseconds longer, asleep
  kFaults
};

enum { kMaxFd = 4096 };

static const _Atomic uint32_t kHealthy[kFaults];
static const _Atomic uint32_t* faults = kHealthy;
static atomic_bool accepted[kMaxFd];
static int dead_listener = -1;  // nobody connects to it: accept fails with EAGAIN
static int dead_socket = -1;    // nobody sends to it, and its peer reads nothing

#define REAL(name)               \
  static __typeof__(name)* real; \
  if (real == NULL) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

static uint32_t Level(enum Fault fault) {
  return atomic_load_explicit(&faults[fault], memory_order_relaxed);
}

// Above the numbers that servers with a limit of open files use, out of select's way.
static int MovedUp(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 900);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

__attribute__((constructor)) static void Prepare(void) {
  const char* path = getenv("CULPRIT_FAULT");
  if (path == NULL) return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (map == MAP_FAILED) return;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const struct sockaddr_un_nameless { sa_family_t family; } nameless = {AF_UNIX};
  bind(listener, (const struct sockaddr*)&nameless, sizeof nameless);
  listen(listener, 1);
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) return;
  while (send(pair[0], &pair, sizeof pair, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  dead_listener = MovedUp(listener);
  dead_socket = MovedUp(pair[0]);
  MovedUp(pair[1]);
  faults = map;
}

static int IsClient(int fd) {
  return fd >= 0 && fd < kMaxFd && atomic_load_explicit(&accepted[fd], memory_order_relaxed);
}

static void SleepFor(uint32_t us) {
  if (us == 0) return;
  const int before = errno;
  const struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
  nanosleep(&time, NULL);
  errno = before;
}

// True: this time it fails. N times in a row, then once not.
static int FailsNow(uint32_t times) {
  static _Thread_local uint32_t failed;
  if (times == 0 || failed >= times) {
    failed = 0;
    return 0;
  }
  ++failed;
  return 1;
}

static size_t AtMost(size_t size) {
  const uint32_t bound = Level(kSendBytes);
  return bound != 0 && size > bound ? bound : size;
}

// ---- accepting

static int Accepted(int fd) {
  if (fd >= 0 && fd < kMaxFd) accepted[fd] = 1;
  return fd;
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t* length, int flags) {
  REAL(accept4);
  if (Level(kAcceptFails) != 0) return real(dead_listener, NULL, NULL, flags);
  return Accepted(real(fd, address, length, flags));
}

int accept(int fd, __SOCKADDR_ARG address, socklen_t* length) {
  REAL(accept);
  if (Level(kAcceptFails) != 0) return real(dead_listener, NULL, NULL);
  return Accepted(real(fd, address, length));
}

int close(int fd) {
  REAL(close);
  if (fd >= 0 && fd < kMaxFd) accepted[fd] = 0;
  return real(fd);
}

// ---- reading

#define RECEIVE(fd, call, failing_call)                                     \
  if (IsClient(fd)) {                                                       \
    if (Level(kReceiveFails) != 0) return failing_call;                     \
    for (uint32_t i = Level(kReceiveAgain); i > 0; --i) (void)failing_call; \
  }                                                                         \
  return call

ssize_t read(int fd, void* buffer, size_t size) {
  REAL(read);
  RECEIVE(fd, real(fd, buffer, size), real(dead_socket, buffer, size));
}

ssize_t __read_chk(int fd, void* buffer, size_t size, size_t room);
ssize_t __read_chk(int fd, void* buffer, size_t size, size_t room) {
  (void)room;
  return read(fd, buffer, size);
}

ssize_t readv(int fd, const struct iovec* parts, int count) {
  REAL(readv);
  RECEIVE(fd, real(fd, parts, count), real(dead_socket, parts, count));
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  REAL(recv);
  RECEIVE(fd, real(fd, buffer, size, flags), real(dead_socket, buffer, size, flags));
}

ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags);
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags) {
  (void)room;
  return recv(fd, buffer, size, flags);
}

// ---- writing

ssize_t write(int fd, const void* buffer, size_t size) {
  REAL(write);
  if (!IsClient(fd)) return real(fd, buffer, size);
  SleepFor(Level(kSendSleeps));
  if (FailsNow(Level(kSendFails))) return real(dead_socket, buffer, size);
  return real(fd, buffer, AtMost(size));
}

ssize_t send(int fd, const void* buffer, size_t size, int flags) {
  REAL(send);
  if (!IsClient(fd)) return real(fd, buffer, size, flags);
  SleepFor(Level(kSendSleeps));
  if (FailsNow(Level(kSendFails))) return real(dead_socket, buffer, size, flags | MSG_NOSIGNAL);
  return real(fd, buffer, AtMost(size), flags);
}

// The parts that fit, in `cut`, of which the last may be cut short; their number.
static size_t CutParts(const struct iovec* parts, size_t count, struct iovec* cut, size_t room) {
  size_t left = Level(kSendBytes);
  size_t kept = 0;
  for (; kept < count && kept < room && left > 0; ++kept) {
    cut[kept] = parts[kept];
    if (cut[kept].iov_len > left) cut[kept].iov_len = left;
    left -= cut[kept].iov_len;
  }
  return kept;
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(writev);
  if (!IsClient(fd) || count <= 0) return real(fd, parts, count);
  SleepFor(Level(kSendSleeps));
  if (FailsNow(Level(kSendFails))) return real(dead_socket, parts, count);
  if (Level(kSendBytes) == 0) return real(fd, parts, count);
  struct iovec cut[16];
  return real(fd, cut, (int)CutParts(parts, (size_t)count, cut, 16));
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  REAL(sendmsg);
  if (!IsClient(fd)) return real(fd, message, flags);
  SleepFor(Level(kSendSleeps));
  if (FailsNow(Level(kSendFails))) {
    struct msghdr lost = *message;
    lost.msg_name = NULL;
    lost.msg_namelen = 0;
    return real(dead_socket, &lost, flags | MSG_NOSIGNAL);
  }
  if (Level(kSendBytes) == 0) return real(fd, message, flags);
  struct iovec cut[16];
  struct msghdr part = *message;
  part.msg_iovlen = CutParts(message->msg_iov, message->msg_iovlen, cut, 16);
  part.msg_iov = cut;
  return real(fd, &part, flags);
}

static ssize_t SendFile(ssize_t (*real)(int, int, off64_t*, size_t), int to, int from,
                        off64_t* offset, size_t size) {
  if (!IsClient(to)) return real(to, from, offset, size);
  SleepFor(Level(kSendSleeps));
  if (FailsNow(Level(kSendFails))) return real(dead_socket, from, offset, size);
  return real(to, from, offset, AtMost(size));
}

ssize_t sendfile(int to, int from, off_t* offset, size_t size) {
  REAL(sendfile64);
  return SendFile(real, to, from, offset, size);
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) {
  REAL(sendfile64);
  return SendFile(real, to, from, offset, size);
}

// ---- syncing

int fsync(int fd) {
  REAL(fsync);
  SleepFor(Level(kSyncSleeps));
  for (uint32_t i = Level(kSyncAgain); i > 0; --i) (void)real(fd);
  return real(fd);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  SleepFor(Level(kSyncSleeps));
  for (uint32_t i = Level(kSyncAgain); i > 0; --i) (void)real(fd);
  return real(fd);
}
