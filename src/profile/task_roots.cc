// Tasks as the outermost calls of stacks.
//
// The tables only grow: copies of the stacks, below the calls of their tasks, are appended, and samples get them.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfkit/profile.h"
#include "src/profile/pair_index.h"

namespace perfkit {
namespace {

using profile::PairIndex;

constexpr std::string_view kAwaits = " > ";

// The texts of the calls for a task: of "level/load > file" these are "level", "level/load", "file".
std::vector<std::string_view> CallsOf(std::string_view task) {
  std::vector<std::string_view> calls;
  for (size_t begin = 0; begin <= task.size();) {
    const size_t end = std::min(task.find(kAwaits, begin), task.size());
    for (size_t slash = begin; slash < end;) {
      slash = std::min(task.find('/', slash + 1), end);
      calls.push_back(task.substr(begin, slash - begin));
    }
    begin = end + kAwaits.size();
  }
  return calls;
}

class TaskRoots {
 public:
  explicit TaskRoots(Profile& profile) : profile_(profile), roots_(profile.strings.size(), ProfileStack::kRoot) {
    for (uint32_t i = 0; i < profile.strings.size(); ++i) strings_.try_emplace(profile.strings[i], i);
  }

  // Returns the stack of a task's calls. `task` is not "".
  uint32_t RootOf(uint32_t task) {
    if (roots_[task] != ProfileStack::kRoot) return roots_[task];
    uint32_t stack = ProfileStack::kRoot;
    const std::string text = profile_.strings[task];
    for (const std::string_view call : CallsOf(text)) stack = Child(stack, LocationOf(call));
    return roots_[task] = stack;
  }

  // Returns the copy of a stack below `root`.
  uint32_t Below(uint32_t root, uint32_t stack) {
    path_.clear();
    uint32_t copy = root;
    for (uint32_t at = stack; at != ProfileStack::kRoot; at = profile_.stacks[at].parent) {
      if (const std::optional<uint32_t> known = copies_.Find({root, at}); known) {
        copy = *known;
        break;
      }
      path_.push_back(at);
    }
    for (size_t i = path_.size(); i-- > 0;) {
      ProfileStack frame = profile_.stacks[path_[i]];
      frame.parent = copy;
      copy = Append(frame);
      copies_.try_emplace({root, path_[i]}, copy);
    }
    return copy;
  }

 private:
  uint32_t Append(const ProfileStack& stack) {
    profile_.stacks.push_back(stack);
    return static_cast<uint32_t>(profile_.stacks.size() - 1);
  }
  uint32_t Child(uint32_t parent, uint32_t location) {
    const auto [entry, is_new] = children_.try_emplace({parent, location}, profile_.stacks.size());
    return is_new ? Append({.parent = parent, .location = location}) : entry->second;
  }
  // Equal strings are one, so that two profiles that are merged have the same calls.
  uint32_t String(std::string_view text) {
    const auto [known, is_new] = strings_.try_emplace(std::string(text), profile_.strings.size());
    if (is_new) profile_.strings.emplace_back(text);
    return known->second;
  }
  uint32_t LocationOf(std::string_view call) {
    const auto [known, is_new] = locations_.try_emplace(std::string(call), profile_.locations.size());
    if (!is_new) return known->second;
    if (module_ == ProfileLocation::kNoModule) {
      module_ = static_cast<uint32_t>(profile_.modules.size());
      profile_.modules.push_back({.path = String("[task]")});
    }
    profile_.locations.push_back({.module = module_,
                                  .address = locations_.size(),  // Tells them apart.
                                  .first_call = static_cast<uint32_t>(profile_.calls.size()),
                                  .calls = 1});
    profile_.calls.push_back({.function = String(call)});
    return known->second;
  }

  Profile& profile_;
  std::vector<uint32_t> roots_;  // By task.
  uint32_t module_ = ProfileLocation::kNoModule;
  std::unordered_map<std::string, uint32_t> strings_;
  std::map<std::string, uint32_t> locations_;
  PairIndex children_;  // By parent and location: calls of tasks.
  PairIndex copies_;    // By root and stack.
  std::vector<uint32_t> path_;
};

}  // namespace

Profile RootedAtTasks(const Profile& profile) {
  Profile result = profile;
  TaskRoots roots(result);
  for (ProfileSample& sample : result.samples) {
    if (sample.task == 0 || sample.stack == ProfileStack::kRoot) continue;
    sample.stack = roots.Below(roots.RootOf(sample.task), sample.stack);
  }
  return result;
}

}  // namespace perfkit
