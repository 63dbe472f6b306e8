// SPDX-License-Identifier: Apache-2.0
//
// Target: where traces are sent. A parcel is a native trace known by the hash of
// its bytes: what a target has already is not sent again, what was cut off goes
// on where it stopped, and what arrives is checked against the hash before it
// counts. One thread at a time.
//
//   FOLDER              a corpus on this machine, made if it is not there
//   HOST:FOLDER         a corpus on another machine, by rsync and ssh; culprit
//                       must be there to take the files in
//   http[s]://HOST:PORT a `culprit serve --uploads`
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/progress.h"
#include "base/result.h"

namespace culprit::push {

struct Parcel {
  std::string path;
  std::string name;    // the trace's
  std::string sha256;  // of the file
  uint64_t bytes = 0;
};

enum class Sent { kSent, kAlreadyThere };

struct TargetOptions {
  std::string token;     // of a server
  uint32_t retries = 5;  // after a cut connection, each with a longer pause
  std::string ssh = "ssh";
  std::string rsync = "rsync";
};

class Target {
 public:
  virtual ~Target() = default;
  // Returns when the parcel is safe at the target. The progress is in bytes.
  virtual Result<Sent> Send(const Parcel& parcel, Progress& progress) = 0;
  // After the last parcel: what is left to be done there.
  virtual Status Finish() { return {}; }
};

Result<std::unique_ptr<Target>> OpenTarget(const std::string& where, const TargetOptions& options);

Result<std::unique_ptr<Target>> OpenFolderTarget(const std::string& folder);
Result<std::unique_ptr<Target>> OpenRemoteTarget(const std::string& host, const std::string& folder,
                                                 const TargetOptions& options);
Result<std::unique_ptr<Target>> OpenServerTarget(const std::string& url,
                                                 const TargetOptions& options);

}  // namespace culprit::push
