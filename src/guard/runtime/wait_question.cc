// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/wait_question.h"

#include <sys/socket.h>

#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {
namespace {

bool FdBlocks(WaitShape shape, const CallArguments& arguments) {
  if (AsksNotToBlock(shape, arguments)) return false;
  const int status = RawFcntl(static_cast<int>(arguments.value[0]), F_GETFL);
  return status >= 0 && (status & O_NONBLOCK) == 0;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t hash = a * 0x9e3779b97f4a7c15 ^ b;
  hash ^= hash >> 31;
  return hash * 0xbf58476d1ce4e5b9;
}

bool IsLocalSocket(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, Word(&domain), Word(&size)) == 0 &&
         domain == AF_UNIX;
}

}  // namespace

uint64_t ObjectOfFd(int fd, bool& on_disk, bool& wakes) {
  struct stat status = {};
  on_disk = false;
  wakes = false;
  if (RawFstat(fd, &status) != 0) return wire::kObjectFd;
  const unsigned type = status.st_mode & S_IFMT;
  on_disk = type == S_IFREG || type == S_IFDIR || type == S_IFBLK;
  wakes = type == S_IFIFO || type == 0 || (type == S_IFSOCK && IsLocalSocket(fd));
  uint64_t hash = Mix(status.st_dev, status.st_ino);
  if (type == 0) hash = Mix(hash, static_cast<uint64_t>(fd) + 1);
  return wire::kObjectFd | hash >> 1;
}

bool MayBlock(const WaitSpec& spec, const CallArguments& arguments) {
  if (IsFdShape(spec.shape)) return FdBlocks(spec.shape, arguments);
  return TimeoutOf(spec.shape, arguments) != Timeout::kZero;
}

WaitQuestion AskAll(const WaitSpec& spec, const CallArguments& arguments) {
  WaitQuestion question;
  question.blocks = MayBlock(spec, arguments);
  question.has_timeout = TimeoutOf(spec.shape, arguments) == Timeout::kFinite;
  bool wakes = false;
  if (IsFdShape(spec.shape)) {
    bool on_disk = false;
    question.object = ObjectOfFd(static_cast<int>(arguments.value[0]), on_disk, wakes);
    question.of_interest = !on_disk;
    question.is_read = spec.shape != WaitShape::kAccept;
  } else if (spec.call == wire::WaitCall::kEpoll) {
    bool on_disk = false;
    question.object = ObjectOfFd(static_cast<int>(arguments.value[0]), on_disk, wakes);
  } else if (spec.call == wire::WaitCall::kCondition || spec.call == wire::WaitCall::kSemaphore) {
    question.object = static_cast<uint64_t>(arguments.value[0]);
  }
  return question;
}

uint64_t BytesRead(const WaitSpec& spec, const CallArguments& arguments, long result) {
  if (result <= 0) return 0;
  if (spec.shape == WaitShape::kReceiveMany) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the same
    const auto* messages = reinterpret_cast<const mmsghdr*>(arguments.value[1]);
    uint64_t bytes = 0;
    for (int i = 0; i < static_cast<int>(result); ++i) bytes += messages[i].msg_len;
    return bytes;
  }
  const bool reads = IsFdShape(spec.shape) && spec.shape != WaitShape::kAccept;
  return reads ? static_cast<uint64_t>(result) : 0;
}

}  // namespace culprit::guard::runtime
