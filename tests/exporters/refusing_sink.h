// Sinks that refuse a piece: the writer must stop there, with the sink's own status.
#pragma once

#include <catch2/catch.hpp>

#include "perfkit/profile_writer.h"

namespace perfkit::testing {

// Writes `profile` again and again, to sinks that refuse their first piece, their second, … until one takes all.
inline void CheckRefusedPieces(absl::Status (*write)(const Profile&, const WriteOptions&, ProfileSink),
                               const Profile& profile) {
  const absl::Status full = absl::DataLossError("full");
  for (int refused = 1;; ++refused) {
    int pieces = 0;
    const absl::Status status =
        write(profile, {}, [&](std::string_view) { return ++pieces == refused ? full : absl::OkStatus(); });
    CHECK(pieces <= refused);
    if (pieces < refused) {
      CHECK(status == absl::OkStatus());
      break;
    }
    CHECK(status == full);
  }
}

}  // namespace perfkit::testing
