// Folded stacks: one line for each distinct stack of a thread, root first, as Brendan Gregg's stackcollapse scripts
// write them. A semicolon separates calls. In a name, a semicolon becomes a comma, a control character a space, as
// readers end lines at several of them, and a byte that is no UTF-8 becomes U+FFFD, as readers refuse files with one.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "perfkit/profile_writer.h"
#include "src/base/utf8.h"
#include "src/profile/event_choice.h"
#include "src/profile/sink_buffer.h"
#include "src/profile/text_table.h"

namespace perfkit {
namespace {

std::string CleanLine(std::string_view text) {
  std::string name = base::ValidUtf8(text);
  std::replace(name.begin(), name.end(), ';', ',');
  std::ranges::replace_if(
      name, [](char byte) { return absl::ascii_iscntrl(static_cast<unsigned char>(byte)); }, ' ');
  return name;
}

// The calls of one stack as one line, from its root on, each with a semicolon before it.
std::string Line(const Profile& profile, uint32_t stack) {
  std::vector<uint32_t> path;
  for (uint32_t at = stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) path.push_back(at);
  std::string line;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const uint32_t location = profile.stacks[*at].location;
    const std::span<const ProfileCall> calls = profile.CallsAt(location);
    if (calls.empty()) line += ";" + CleanLine(profile.UnnamedCode(location));
    // Inlined calls come first in a location, and last on a line, whose order is from the root on.
    for (size_t i = calls.size(); i-- > 0;) line += ";" + CleanLine(profile.CallName(location, calls[i]));
  }
  return line;
}

}  // namespace

absl::Status WriteFolded(const Profile& profile, const WriteOptions& options, ProfileSink sink) {
  if (profile.events.empty() && options.event.empty()) return absl::OkStatus();  // No stacks, no lines.
  const absl::StatusOr<size_t> event = profile::ChooseEvent(profile, options.event);
  if (!event.ok()) return event.status();
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> weights;  // by thread and stack
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == *event) weights[{sample.thread, sample.stack}] += sample.weight;
  }
  profile::SinkBuffer out(sink);
  for (const auto& [key, weight] : weights) {
    if (weight == 0) continue;
    out.Add(absl::StrFormat("%s%s %d\n", CleanLine(profile::ThreadText(profile, key.first)), Line(profile, key.second),
                            weight));
    if (out.failed()) break;
  }
  return out.Finish();
}

}  // namespace perfkit
