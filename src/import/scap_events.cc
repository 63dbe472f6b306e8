// SPDX-License-Identifier: Apache-2.0
#include "import/scap_events.h"

#include <iterator>
#include <utility>

namespace culprit::import_ {
namespace {

constexpr ScapEventRow ScapCall(std::string_view name) { return {ScapMeaning::kSyscall, name}; }

// In the recorder's order. Names are the kernel's where the recorder's differ.
constexpr ScapEventRow kScapRows[] = {
    {ScapMeaning::kGeneric, ""},
    ScapCall("open"),
    ScapCall("close"),
    ScapCall("read"),
    ScapCall("write"),
    ScapCall("brk"),
    {ScapMeaning::kExec, "execve"},
    {ScapMeaning::kFork, "clone"},
    {ScapMeaning::kExit, ""},
    ScapCall("socket"),
    ScapCall("bind"),
    ScapCall("connect"),
    ScapCall("listen"),
    ScapCall("accept"),
    ScapCall("send"),
    ScapCall("sendto"),
    ScapCall("recv"),
    ScapCall("recvfrom"),
    ScapCall("shutdown"),
    ScapCall("getsockname"),
    ScapCall("getpeername"),
    ScapCall("socketpair"),
    ScapCall("setsockopt"),
    ScapCall("getsockopt"),
    ScapCall("sendmsg"),
    ScapCall("sendmmsg"),
    ScapCall("recvmsg"),
    ScapCall("recvmmsg"),
    ScapCall("accept4"),
    ScapCall("creat"),
    ScapCall("pipe"),
    ScapCall("eventfd"),
    ScapCall("futex"),
    ScapCall("stat"),
    ScapCall("lstat"),
    ScapCall("fstat"),
    ScapCall("stat64"),
    ScapCall("lstat64"),
    ScapCall("fstat64"),
    ScapCall("epoll_wait"),
    ScapCall("poll"),
    ScapCall("select"),
    ScapCall("select"),
    ScapCall("lseek"),
    ScapCall("llseek"),
    ScapCall("ioctl"),
    ScapCall("getcwd"),
    ScapCall("chdir"),
    ScapCall("fchdir"),
    ScapCall("mkdir"),
    ScapCall("rmdir"),
    ScapCall("openat"),
    ScapCall("link"),
    ScapCall("linkat"),
    ScapCall("unlink"),
    ScapCall("unlinkat"),
    ScapCall("pread64"),
    ScapCall("pwrite64"),
    ScapCall("readv"),
    ScapCall("writev"),
    ScapCall("preadv"),
    ScapCall("pwritev"),
    ScapCall("dup"),
    ScapCall("signalfd"),
    ScapCall("kill"),
    ScapCall("tkill"),
    ScapCall("tgkill"),
    ScapCall("nanosleep"),
    ScapCall("timerfd_create"),
    ScapCall("inotify_init"),
    ScapCall("getrlimit"),
    ScapCall("setrlimit"),
    ScapCall("prlimit64"),
    {ScapMeaning::kSwitch, ""},
    {ScapMeaning::kDrop, ""},
    ScapCall("fcntl"),
    {ScapMeaning::kSwitch, ""},
    {ScapMeaning::kExec, "execve"},
    {ScapMeaning::kFork, "clone"},
    ScapCall("brk"),
    ScapCall("mmap"),
    ScapCall("mmap2"),
    ScapCall("munmap"),
    ScapCall("splice"),
    ScapCall("ptrace"),
    ScapCall("ioctl"),
    {ScapMeaning::kExec, "execve"},
    ScapCall("rename"),
    ScapCall("renameat"),
    ScapCall("symlink"),
    ScapCall("symlinkat"),
    {ScapMeaning::kFork, "fork"},
    {ScapMeaning::kFork, "vfork"},
    {ScapMeaning::kExit, ""},
    ScapCall("sendfile"),
    ScapCall("quotactl"),
    ScapCall("setresuid"),
    ScapCall("setresgid"),
    {ScapMeaning::kUnused, ""},
    ScapCall("setuid"),
    ScapCall("setgid"),
    ScapCall("getuid"),
    ScapCall("geteuid"),
    ScapCall("getgid"),
    ScapCall("getegid"),
    ScapCall("getresuid"),
    ScapCall("getresgid"),
    {ScapMeaning::kExec, "execve"},
    {ScapMeaning::kFork, "clone"},
    {ScapMeaning::kFork, "fork"},
    {ScapMeaning::kFork, "vfork"},
    {ScapMeaning::kFork, "clone"},
    {ScapMeaning::kFork, "fork"},
    {ScapMeaning::kFork, "vfork"},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kExec, "execve"},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kUnused, ""},
    ScapCall("getdents"),
    ScapCall("getdents64"),
    ScapCall("setns"),
    ScapCall("flock"),
    {ScapMeaning::kUnused, ""},
    ScapCall("accept"),
    ScapCall("accept4"),
    ScapCall("semop"),
    ScapCall("semctl"),
    ScapCall("ppoll"),
    ScapCall("mount"),
    ScapCall("umount2"),
    {ScapMeaning::kUnused, ""},
    ScapCall("semget"),
    ScapCall("access"),
    ScapCall("chroot"),
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kContainer, ""},
    ScapCall("setsid"),
    ScapCall("mkdir"),
    ScapCall("rmdir"),
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kExec, "execve"},
    ScapCall("unshare"),
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kExec, "execve"},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kExec, "execve"},
    ScapCall("setpgid"),
    ScapCall("bpf"),
    ScapCall("seccomp"),
    ScapCall("unlink"),
    ScapCall("unlinkat"),
    ScapCall("mkdirat"),
    ScapCall("openat"),
    ScapCall("link"),
    ScapCall("linkat"),
    ScapCall("fchmodat"),
    ScapCall("chmod"),
    ScapCall("fchmod"),
    ScapCall("renameat2"),
    ScapCall("userfaultfd"),
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kContainer, ""},
    ScapCall("openat2"),
    ScapCall("mprotect"),
    {ScapMeaning::kExec, "execveat"},
    ScapCall("copy_file_range"),
    {ScapMeaning::kFork, "clone3"},
    ScapCall("open_by_handle_at"),
    ScapCall("io_uring_setup"),
    ScapCall("io_uring_enter"),
    ScapCall("io_uring_register"),
    ScapCall("mlock"),
    ScapCall("munlock"),
    ScapCall("mlockall"),
    ScapCall("munlockall"),
    ScapCall("capset"),
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kUnused, ""},
    {ScapMeaning::kUnused, ""},
    ScapCall("dup2"),
    ScapCall("dup3"),
    ScapCall("dup"),
    ScapCall("bpf"),
    ScapCall("mlock2"),
    ScapCall("fsconfig"),
    ScapCall("epoll_create"),
    ScapCall("epoll_create1"),
    ScapCall("chown"),
    ScapCall("lchown"),
    ScapCall("fchown"),
    ScapCall("fchownat"),
    ScapCall("umount2"),
    ScapCall("accept4"),
    ScapCall("umount2"),
    ScapCall("pipe2"),
    ScapCall("inotify_init1"),
    ScapCall("eventfd2"),
    ScapCall("signalfd4"),
    ScapCall("prctl"),
    {ScapMeaning::kUnused, ""},
    ScapCall("memfd_create"),
    ScapCall("pidfd_getfd"),
    ScapCall("pidfd_open"),
    ScapCall("init_module"),
    ScapCall("finit_module"),
    ScapCall("mknod"),
    ScapCall("mknodat"),
    ScapCall("newfstatat"),
    ScapCall("process_vm_readv"),
    ScapCall("process_vm_writev"),
    ScapCall("delete_module"),
};

struct KnownScapCall {
  int64_t recorder_number;
  std::string_view name;
};
constexpr KnownScapCall kKnownScapCalls[] = {
    {16, "getpid"},         {69, "wait4"},
    {75, "mprotect"},       {99, "sched_yield"},
    {107, "rt_sigaction"},  {108, "rt_sigprocmask"},
    {139, "madvise"},       {140, "gettid"},
    {166, "epoll_ctl"},     {169, "set_tid_address"},
    {176, "clock_gettime"}, {178, "clock_nanosleep"},
    {209, "pselect6"},      {212, "set_robust_list"},
    {218, "epoll_pwait"},   {223, "timerfd_settime"},
    {318, "getrandom"},
};

// The recorder's name, and what it may stand for besides.
constexpr std::pair<std::string_view, std::string_view> kSharedNames[] = {
    {"pipe", "pipe2"},         {"eventfd", "eventfd2"},
    {"signalfd", "signalfd4"}, {"inotify_init", "inotify_init1"},
    {"dup2", "dup3"},          {"send", "sendto"},
    {"recv", "recvfrom"},      {"mmap2", "mmap"},
    {"llseek", "lseek"},       {"stat64", "stat"},
    {"lstat64", "lstat"},      {"fstat64", "fstat"},
};

}  // namespace

ScapEventRow ScapEventOf(uint16_t type) {
  const size_t row = type / 2;
  if (row >= std::size(kScapRows)) return {};
  return kScapRows[row];
}

std::optional<trace::SyscallAbi> ScapArchOf(int64_t recorder_number, int64_t machine_number) {
  for (const KnownScapCall& call : kKnownScapCalls) {
    if (call.recorder_number != recorder_number) continue;
    for (const trace::SyscallAbi arch : {trace::SyscallAbi::kX86_64, trace::SyscallAbi::kArm64}) {
      if (trace::SyscallNumber(call.name, arch) == machine_number) return arch;
    }
  }
  return std::nullopt;
}

std::optional<trace::SyscallAbi> ScapArchOf(std::string_view name) {
  if (ScapSyscallNumber(name, trace::SyscallAbi::kArm64) != trace::kNoSyscall) return std::nullopt;
  if (trace::SyscallNumber(name, trace::SyscallAbi::kX86_64) == trace::kNoSyscall)
    return std::nullopt;
  return trace::SyscallAbi::kX86_64;
}

int64_t ScapSyscallNumber(std::string_view name, trace::SyscallAbi arch) {
  const int64_t number = trace::SyscallNumber(name, arch);
  if (number != trace::kNoSyscall) return number;
  for (const auto& [recorded, other] : kSharedNames) {
    if (recorded == name) return trace::SyscallNumber(other, arch);
  }
  return trace::kNoSyscall;
}

}  // namespace culprit::import_
