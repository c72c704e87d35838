// The stacks of Chrome's trace events: V8's CPU profiles, one for each thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "perfkit/profile.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Microseconds, the unit of all times there, by CLOCK_MONOTONIC.
inline double ChromeTime(uint64_t time_ns) { return static_cast<double>(time_ns) / 1e3; }

// Begins an event: {"ph": …, "pid": …, "tid": …, "ts": …
JsonWriter& BeginChromeEvent(JsonWriter& json, const char* phase, const ProfileThread& thread, uint64_t time_ns);

// Writes a thread's samples as one "Profile" event and "ProfileChunk" events of 1,000 samples each, with the nodes of
// the tree of calls that a chunk is the first to need. Keeps a few bytes for each stack of the profile.
class ChromeStacks {
 public:
  // `threads`: those of the profile, with the numbers that they have in the file. Must outlive the object.
  ChromeStacks(const Profile& profile, std::span<const ProfileThread> threads, JsonWriter& json);

  // `samples`: indexes of samples that have a time, in its order.
  void Write(uint32_t thread, std::span<const uint32_t> samples);

 private:
  // The node of a stack's innermost call, in the tree of one thread.
  struct Node {
    uint32_t thread = UINT32_MAX, id = 0;
  };

  void WriteChunk(uint32_t thread, std::span<const uint32_t> samples, uint64_t& last_ns);
  void AddNodes(uint32_t thread, uint32_t stack);
  uint32_t AddNode(uint32_t parent, std::string_view name, std::string_view file, uint32_t line);
  uint32_t NodeOf(const ProfileSample& sample) const;

  const Profile& profile_;
  const std::span<const ProfileThread> threads_;
  JsonWriter& json_;
  std::vector<Node> nodes_;       // of each ProfileStack
  std::vector<uint32_t> path_;    // while nodes are added
  uint32_t last_id_ = 0;          // unique in the file: readers have one table of frames for all threads
  uint32_t root_ = 0, none_ = 0;  // of the thread that is being written: "(root)", and what has no stack
};

}  // namespace perfkit::exporters
