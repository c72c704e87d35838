// Profiles of sessions with tasks.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perfkit/task_counter.h"
#include "src/session/task_timeline.h"
#include "tests/session/support.h"

namespace perfkit::session {

inline const std::string kUnknown(TaskTimeline::kUnknownTask);

inline absl::StatusOr<Session> StartWith(const TaskCounter& tasks, SessionOptions options = {}) {
  options.stacks = SessionStacks::kNone;
  options.tasks = &tasks;
  return Session::Start(std::move(options));
}

inline SessionOptions EachFault() {
  return {.events = {{.event = "page-faults", .rate = Period{1}}}, .user_only = true};
}

inline Profile ProfileOf(absl::StatusOr<Session>& session) {
  absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  return *std::move(profile);
}

// Sums of an event's weights by task.
inline std::map<std::string, uint64_t> WeightsByTask(const Profile& profile, size_t event = 0) {
  std::map<std::string, uint64_t> weights;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == event) weights[profile.strings[sample.task]] += sample.weight;
  }
  return weights;
}

inline uint64_t Sum(const std::map<std::string, uint64_t>& weights) {
  uint64_t sum = 0;
  for (const auto& [task, weight] : weights) sum += weight;
  return sum;
}

inline std::vector<ProfileTaskPart> PartsOf(const Profile& profile, uint64_t number) {
  std::vector<ProfileTaskPart> parts;
  for (const ProfileTaskPart& part : profile.task_parts) {
    if (part.number == number) parts.push_back(part);
  }
  return parts;
}

}  // namespace perfkit::session
