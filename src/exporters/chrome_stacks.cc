// Writes the samples of a thread in chunks. The nodes of a chunk have to come before its samples, so the samples are
// looked at twice: which new stacks they have, then which nodes these are. nodes_ is shared by all threads: an entry
// counts only if it names the thread that is being written, which spares clearing the table for each of them.
#include "src/exporters/chrome_stacks.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"

namespace perfkit::exporters {

JsonWriter& BeginChromeEvent(JsonWriter& json, const char* phase, const ProfileThread& thread, uint64_t time_ns) {
  json.BeginObject().Member("ph", phase).Member("pid", thread.pid).Member("tid", thread.tid);
  return json.Member("ts", ChromeTime(time_ns));
}

ChromeStacks::ChromeStacks(const Profile& profile, std::span<const ProfileThread> threads, JsonWriter& json)
    : profile_(profile), threads_(threads), json_(json), nodes_(profile.stacks.size()) {}

void ChromeStacks::Write(uint32_t thread, std::span<const uint32_t> samples) {
  if (samples.empty()) return;
  uint64_t last_ns = profile_.samples[samples[0]].time_ns;
  BeginChromeEvent(json_, "P", threads_[thread], last_ns).Member("name", "Profile");
  json_.Member("cat", "disabled-by-default-v8.cpu_profiler").Member("id", absl::StrFormat("0x%x", thread + 1));
  json_.Key("args").BeginObject().Key("data").BeginObject().Member("startTime", ChromeTime(last_ns));
  json_.EndObject().EndObject().EndObject();
  root_ = none_ = 0;
  constexpr size_t kChunk = 1000;
  for (size_t at = 0; at < samples.size() && !json_.failed(); at += kChunk) {
    WriteChunk(thread, samples.subspan(at, std::min(kChunk, samples.size() - at)), last_ns);
  }
}

void ChromeStacks::WriteChunk(uint32_t thread, std::span<const uint32_t> samples, uint64_t& last_ns) {
  BeginChromeEvent(json_, "P", threads_[thread], profile_.samples[samples[0]].time_ns);
  json_.Member("name", "ProfileChunk").Member("cat", "disabled-by-default-v8.cpu_profiler");
  json_.Member("id", absl::StrFormat("0x%x", thread + 1));
  json_.Key("args").BeginObject().Key("data").BeginObject().Key("cpuProfile").BeginObject().Key("nodes").BeginArray();
  if (root_ == 0) root_ = AddNode(0, "(root)", "", 0);
  for (const uint32_t i : samples) {
    const uint32_t stack = profile_.samples[i].stack;
    if (stack != ProfileStack::kRoot) {
      AddNodes(thread, stack);
    } else if (none_ == 0) {
      none_ = AddNode(root_, "[no stack]", "", 0);
    }
  }
  json_.EndArray().Key("samples").BeginArray();
  for (const uint32_t i : samples) json_.Value(NodeOf(profile_.samples[i]));
  json_.EndArray().EndObject().Key("timeDeltas").BeginArray();
  for (const uint32_t i : samples) {
    json_.Value(ChromeTime(profile_.samples[i].time_ns - last_ns));
    last_ns = profile_.samples[i].time_ns;
  }
  json_.EndArray().EndObject().EndObject().EndObject();
}

// Adds the nodes of a stack and of those that called it, as far as this thread has none of them yet.
void ChromeStacks::AddNodes(uint32_t thread, uint32_t stack) {
  path_.clear();
  uint32_t at = stack;
  for (; at != ProfileStack::kRoot && nodes_[at].thread != thread; at = profile_.stacks[at].parent) path_.push_back(at);
  uint32_t parent = at == ProfileStack::kRoot ? root_ : nodes_[at].id;
  for (auto next = path_.rbegin(); next != path_.rend(); ++next) {
    const uint32_t location = profile_.stacks[*next].location;
    const std::span<const ProfileCall> calls = profile_.CallsAt(location);
    if (calls.empty()) parent = AddNode(parent, profile_.UnnamedCode(location), "", 0);
    for (size_t i = calls.size(); i-- > 0;) {
      parent = AddNode(parent, profile_.CallName(location, calls[i]), profile_.strings[calls[i].file], calls[i].line);
    }
    nodes_[*next] = {.thread = thread, .id = parent};
  }
}

// Lines count from 0 there, and -1 is none.
uint32_t ChromeStacks::AddNode(uint32_t parent, std::string_view name, std::string_view file, uint32_t line) {
  json_.BeginObject().Member("id", ++last_id_);
  if (parent != 0) json_.Member("parent", parent);
  json_.Key("callFrame").BeginObject().Member("functionName", name).Member("scriptId", 0).Member("url", file);
  json_.Member("lineNumber", int64_t{line} - 1).Member("columnNumber", -1).EndObject().EndObject();
  return last_id_;
}

// Requires that AddNodes has seen the sample's stack, or that none_ was made.
uint32_t ChromeStacks::NodeOf(const ProfileSample& sample) const {
  return sample.stack == ProfileStack::kRoot ? none_ : nodes_[sample.stack].id;
}

}  // namespace perfkit::exporters
