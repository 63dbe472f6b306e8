// SPDX-License-Identifier: Apache-2.0
//
// What the tests of automatic instances share: the stacks of a small server, its
// requests as a LoopTrace, and the questions asked of what was found in it.
#pragma once

#include <algorithm>
#include <string>

#include "waitgraph/auto_instances.h"
#include "waitgraph/auto_instances_trace.h"

namespace culprit::waitgraph {

inline const std::string kServer = "server/main";
inline const std::string kPoll =
    "server!main;server!loop;server!next;libc.so.6!poll;[kernel]!do_sys_poll";
inline const std::string kWorkStack = "server!main;server!loop;server!handle;server!parse";
inline const std::string kMutex =
    "server!main;server!loop;server!handle;libc.so.6!pthread_mutex_lock;[kernel]!futex_wait";
inline const std::string kDisk =
    "server!main;server!loop;server!handle;server!log;[kernel]!io_schedule";
inline const std::string kReply = "server!main;server!loop;server!handle;libc.so.6!send";

inline AutoInstances Find(LoopTrace& loop, const AutoInstanceOptions& options = {}) {
  const Timelines timelines(loop.Done());
  return FindInstances(timelines, options);
}

inline const Role* RoleOf(const AutoInstances& found, const std::string& scenario) {
  const auto it = std::find_if(found.roles.begin(), found.roles.end(),
                               [&](const Role& role) { return role.scenario == scenario; });
  return it == found.roles.end() ? nullptr : &*it;
}

inline std::string Roles(const AutoInstances& found) {
  std::string text;
  for (const Role& role : found.roles) {
    text += role.scenario + " [" + role.loop_frame + " > " + role.idle_frame + "]\n";
  }
  return text;
}

// `count` requests: poll 100, run 5, lock 20, run 10, reply, run 1.
inline void Serve(LoopTrace& loop, const std::string& thread, int count) {
  for (int i = 0; i < count; ++i) {
    loop.Wait(thread, 100, kPoll);
    loop.Run(thread, 5);
    loop.Wait(thread, 20, kMutex, "server/other");
    loop.Run(thread, 10, kWorkStack);
    loop.Wake(thread, "client/main", kReply);
    loop.Run(thread, 1);
  }
}

}  // namespace culprit::waitgraph
