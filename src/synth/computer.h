// SPDX-License-Identifier: Apache-2.0
//
// Computer: one simulated machine set up as a preset wants it: its locks,
// queues, disk, processes, threads and their roles, and the plan of what is to
// strike during the trace. Roles refer to it for the objects they share. Lives
// as long as the simulation of one trace; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "synth/behaviour.h"
#include "synth/machine.h"
#include "synth/preset.h"
#include "synth/world.h"

namespace culprit::synth {

// Messages to workers.
enum Job : int64_t {
  kSmallJob,        // something short
  kStrikeJob,       // play the part in a planted behaviour
  kReadDecryptJob,  // System worker: read a file through the encryption driver
  kPageInJob        // System worker: page in through the file system
};

class Computer {
 public:
  Computer(const World& world, const Preset& preset, const PlantSet& plants, uint64_t trace_index,
           Machine& machine);

  const World& world() const { return world_; }
  const Preset& preset() const { return preset_; }

  uint32_t disk = 0;
  uint32_t file_table_lock = 0;
  uint32_t mdu_lock = 0;
  uint32_t device_lock = 0;
  std::array<uint32_t, 6> small_locks = {};
  uint32_t service_queue = 0;
  uint32_t system_queue = 0;
  uint32_t browser_queue_0 = 0;  // worker W0 of 003 figure 1
  uint32_t browser_queue_1 = 0;  // and W1
  uint32_t av_queue = 0;
  uint32_t cm_queue = 0;
  uint32_t compositor_queue = 0;
  uint32_t listener_queue = 0;
  uint32_t http_queue = 0;

  // The machine's number of a scenario (scenario.h; generated ones follow).
  uint32_t Scenario(Machine& machine, size_t number);
  // Whether `plant` is still to strike; if so, one strike less is left.
  bool TakeStrike(Plant plant);
  bool StrikesLeft(std::initializer_list<Plant> plants) const;
  // Which of `plants` is still to strike; kOrdinary for none.
  Plant NextStrike(std::initializer_list<Plant> plants);

  // Adds a thread with a role of its own, blocked when the trace begins.
  template <class R, class... Args>
  R& Add(Machine& machine, uint32_t process, std::string_view name, Priority priority, Kind kind,
         Args&&... args) {
    auto role = std::make_unique<R>(*this, std::forward<Args>(args)...);
    R& added = *role;
    roles_.push_back(std::move(role));
    AddRole(machine, process, name, priority, kind, added);
    return added;
  }
  void Keep(std::unique_ptr<Role> role) { roles_.push_back(std::move(role)); }

 private:
  void AddRole(Machine& machine, uint32_t process, std::string_view name, Priority priority,
               Kind kind, Role& role);
  void PlanStrikes(const PlantSet& plants, uint64_t trace_index, Random& random);
  void AddObjects(Machine& machine);
  void AddDesktop(Machine& machine);
  void AddServices(Machine& machine);
  void AddPipelines(Machine& machine);
  void AddServer(Machine& machine);

  const World& world_;
  const Preset& preset_;
  std::array<uint64_t, kPlantCount> strikes_ = {};
  std::vector<uint32_t> scenario_ids_;
  std::vector<std::unique_ptr<Role>> roles_;
};

}  // namespace culprit::synth
