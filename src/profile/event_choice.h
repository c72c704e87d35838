// Which event a format with one value shows.
#pragma once

#include "absl/status/statusor.h"
#include "perfkit/profile_writer.h"

namespace perfkit::profile {

// The index of WriteOptions::event. InvalidArgument, with the names that there are, if there is no such event.
absl::StatusOr<size_t> ChooseEvent(const Profile& profile, std::string_view name);

}  // namespace perfkit::profile
