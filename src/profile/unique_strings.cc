// Finds for each string the first equal one, and replaces the indexes in all tables.
#include "src/profile/unique_strings.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace perfkit::profile {

void MakeStringsUnique(Profile& profile) {
  std::unordered_map<std::string_view, uint32_t> index;
  std::vector<uint32_t> first;  // by string
  bool any = false;
  for (const std::string& text : profile.strings) {
    const auto own = static_cast<uint32_t>(first.size());
    first.push_back(index.try_emplace(text, own).first->second);
    any = any || first.back() != own;
  }
  if (!any) return;
  const auto replace = [&](auto&... strings) { ((strings = first[strings]), ...); };
  for (ProfileThread& thread : profile.threads) replace(thread.name);
  for (ProfileModule& module : profile.modules) replace(module.path, module.build_id);
  for (ProfileCall& call : profile.calls) replace(call.function, call.file);
  for (ProfileWait& wait : profile.waits) replace(wait.detail, wait.waker, wait.preempter.command);
  for (ProfileMemory& memory : profile.memory) replace(memory.name);
  for (ProfileSample& sample : profile.samples) replace(sample.label, sample.task);
  for (ProfileZone& zone : profile.zones) replace(zone.name, zone.cause, zone.reason, zone.state, zone.worst_by);
  for (ProfileTaskPart& part : profile.task_parts) replace(part.name, part.task);
  for (ProfileCounter& counter : profile.counters) replace(counter.name);
}

}  // namespace perfkit::profile
