// The zones and tasks of a session, which label its samples by their times, and what its frames lack: what the machine took, and pauses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "src/session/pauses.h"
#include "src/session/stolen_times.h"
#include "src/session/task_timeline.h"
#include "src/session/zone_timeline.h"

namespace perfkit::session {

// Each method calls those of the timelines that the session has. Not thread-safe.
struct Timelines {
  std::optional<ZoneTimeline> zones;
  std::optional<TaskTimeline> tasks;
  StolenTimes stolen;    // of threads that mark frames
  Pauses pauses;
  uint64_t from_ns = 0;  // AddTo adds nothing that is earlier

  void Read(uint64_t known_ns) {
    if (zones) zones->Read(known_ns);
    if (tasks) tasks->Read(known_ns);
  }
  void Stop(uint64_t now_ns) {
    if (zones) zones->Stop(now_ns);
    if (tasks) tasks->Stop(now_ns);
  }
  // A profile up to `to_ns` was made. The next one begins at `from_ns`.
  void Restart(uint64_t from_ns, uint64_t to_ns) {
    if (zones) zones->Restart(from_ns, to_ns);
    if (tasks) tasks->ForgetUntil(from_ns);
  }
  void Label(std::span<ProfileSample> samples) {
    if (zones) zones->Label(samples);
    if (tasks) tasks->Label(samples);
  }
  void Retire(std::span<const uint32_t> renamed) {
    if (zones) zones->Retire(renamed);
    if (tasks) tasks->Retire(renamed);
    stolen.Retire(renamed);
  }
  void AddTo(Profile& profile, uint64_t start_ns, uint64_t to_ns, const KeptTimes& times) const {
    const uint64_t first_ns = std::max(start_ns, from_ns);
    if (zones) zones->AddTo(profile, first_ns, to_ns, times);
    if (tasks) tasks->AddTo(profile, first_ns, to_ns, times);
    stolen.AddTo(profile, first_ns, to_ns, times);
    pauses.Mark(profile);
  }
  KeptTimes Times() const {
    if (zones) return zones->Times();
    KeptTimes all;
    all.Add(0, UINT64_MAX);
    all.Join();
    return all;
  }

  // Sets the labels that a sample has until Label sets them.
  void SetUnknown(ProfileSample& sample) {
    if (zones) sample.label = zones->unknown_label();
    if (tasks) sample.task = tasks->unknown_label();
  }
  // Returns true if only slow frames are kept.
  bool keeps_frames() { return zones && zones->keeper() != nullptr; }
};

}  // namespace perfkit::session
