// SPDX-License-Identifier: Apache-2.0
// Opens a shared library in mid-life, computes and sleeps in it, and closes it
// again: its frames belong to a module that is there neither at the start of the
// recording nor at its end. The operand is the library.
#include <dlfcn.h>

#include "truth.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  programs::SleepMs(20);
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return 1;
  const auto compute = reinterpret_cast<void (*)()>(dlsym(library, "ComputeInTheLibrary"));
  const auto sleep = reinterpret_cast<void (*)()>(dlsym(library, "SleepInTheLibrary"));
  if (compute == nullptr || sleep == nullptr) return 1;
  compute();
  sleep();
  dlclose(library);
  programs::SleepMs(20);
  return 0;
}
