// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/terminal_output.h"

namespace {

// Started with a standard stream closed, the next file opened would take its
// number, and results would be written into a trace. The stand-in for output
// is read-only, so that writing to it fails as it should.
void KeepStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", O_RDONLY) != fd) ::_exit(1);
  }
}

// Traces are worked on one after the other, each with buffers of megabytes.
// The C library would give them back to the kernel and fault them in anew every
// time (a tenth of the time of many small traces); keeping them costs at most
// what one trace needs.
void KeepFreedMemory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardStreams();
  KeepFreedMemory();
  // A reader that goes away is an ordinary write error: work that is under way
  // (a corpus being changed) is finished, only the printing stops.
  std::signal(SIGPIPE, SIG_IGN);
  culprit::cli::TerminalOutput output(STDOUT_FILENO, STDERR_FILENO);
  const int code = culprit::cli::RunCulprit({argv + std::min(argc, 1), argv + argc}, output);
  const culprit::Status written = output.Finish();
  if (written.ok()) return code;
  if (output.closed_pipe()) return 128 + SIGPIPE;
  culprit::cli::PrintError(written.error(), output);
  return code == 0 ? 1 : code;
}
