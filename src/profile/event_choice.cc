// Looks an event up by its name.
#include "src/profile/event_choice.h"

#include <string>

#include "absl/strings/str_format.h"

namespace perfkit::profile {

absl::StatusOr<size_t> ChooseEvent(const Profile& profile, std::string_view name) {
  // An empty name means the first event, which is what the session was started with.
  if (name.empty() && !profile.events.empty()) return size_t{0};
  const size_t index = profile.EventIndex(name);
  if (index < profile.events.size()) return index;
  std::string names;
  for (const ProfileEvent& event : profile.events) names += (names.empty() ? "" : ", ") + event.name;
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("the profile has no event \"%s\". Remedy: choose one of: %s", name,
                                      names.empty() ? "none" : names));
}

}  // namespace perfkit::profile
