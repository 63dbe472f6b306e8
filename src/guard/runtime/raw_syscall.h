// SPDX-License-Identifier: Apache-2.0
//
// System calls without the C library: no errno, no cancellation point, and no
// function of a patched module is entered, so the runtime can make them anywhere
// in the target, signal handlers included. Failure is a negative errno, as the
// kernel returns it. Any thread; costs the call alone.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace culprit::guard::runtime {

inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                       long f = 0) {
#if defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#elif defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
#error "guards know arm64 and x86-64"
#endif
}

template <class T>
long Word(T* pointer) {
  return static_cast<long>(reinterpret_cast<uintptr_t>(pointer));
}

inline int RawGetPid() { return static_cast<int>(RawSyscall(SYS_getpid)); }
inline int RawGetTid() { return static_cast<int>(RawSyscall(SYS_gettid)); }

inline int RawOpenAt(int folder, const char* path, int flags, int mode = 0) {
  return static_cast<int>(RawSyscall(SYS_openat, folder, Word(path), flags, mode));
}
inline void RawClose(int fd) { RawSyscall(SYS_close, fd); }
inline long RawWrite(int fd, const void* data, size_t bytes) {
  return RawSyscall(SYS_write, fd, Word(data), static_cast<long>(bytes));
}
inline long RawPread(int fd, void* data, size_t bytes, uint64_t offset) {
  return RawSyscall(SYS_pread64, fd, Word(data), static_cast<long>(bytes),
                    static_cast<long>(offset));
}
inline int RawFcntl(int fd, int command, long value = 0) {
  return static_cast<int>(RawSyscall(SYS_fcntl, fd, command, value));
}
inline int RawFstat(int fd, struct stat* status) {
  return static_cast<int>(RawSyscall(SYS_fstat, fd, Word(status)));
}

// nullptr: refused.
inline void* RawMap(size_t bytes, int protection, int flags, int fd = -1) {
  const long address = RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
  if (address < 0 && address > -4096) return nullptr;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): as the kernel says
}
inline void RawUnmap(void* memory, size_t bytes) {
  RawSyscall(SYS_munmap, Word(memory), static_cast<long>(bytes));
}
inline void* MapMemory(size_t bytes) {
  return RawMap(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

}  // namespace culprit::guard::runtime
