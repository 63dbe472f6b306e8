// SPDX-License-Identifier: Apache-2.0
// What a just-in-time compiler does: writes machine code into memory, names it in
// /tmp/perf-PID.map, and runs it. The file stays behind, as compilers leave it.
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "truth.h"

namespace {

// A loop that counts its argument down to zero, in a frame of its own as compilers
// make it.
#if defined(__aarch64__)
constexpr unsigned char kCountDown[] = {0xfd, 0x7b, 0xbf, 0xa9,   // stp x29, x30, [sp, #-16]!
                                        0xfd, 0x03, 0x00, 0x91,   // mov x29, sp
                                        0x00, 0x04, 0x00, 0xf1,   // subs x0, x0, #1
                                        0xe1, 0xff, 0xff, 0x54,   // b.ne -4
                                        0xfd, 0x7b, 0xc1, 0xa8,   // ldp x29, x30, [sp], #16
                                        0xc0, 0x03, 0x5f, 0xd6};  // ret
#elif defined(__x86_64__)
constexpr unsigned char kCountDown[] = {0x55,              // push rbp
                                        0x48, 0x89, 0xe5,  // mov rbp, rsp
                                        0x48, 0xff, 0xcf,  // dec rdi
                                        0x75, 0xfb,        // jne -5
                                        0x5d,              // pop rbp
                                        0xc3};             // ret
#else
#error "machine code for this processor is missing"
#endif

using Code = void (*)(uint64_t);

Code Compile() {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) _exit(1);
  std::memcpy(memory, kCountDown, sizeof(kCountDown));
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + 4096);
  if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0) _exit(1);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  FILE* map = std::fopen(path.c_str(), "we");
  if (map == nullptr) _exit(1);
  std::fprintf(map, "%lx %zx CountDownJit\n", reinterpret_cast<unsigned long>(memory),
               sizeof(kCountDown));
  std::fclose(map);
  programs::Tell(R"({"map":"%s"})", path.c_str());
  return reinterpret_cast<Code>(memory);
}

PLANTED void RunCompiledCode(Code code) {
  const int64_t begin_ns = programs::ThreadCpuNs();
  while (programs::ThreadCpuNs() < begin_ns + 80'000'000) code(200'000);
  programs::TellRun("jit", programs::ThreadCpuNs() - begin_ns, "RunCompiledCode");
}

}  // namespace

int main() {
  RunCompiledCode(Compile());
  return 0;
}
