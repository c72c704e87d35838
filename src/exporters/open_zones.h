// Which zones and frames were open on a thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// Zones need not nest. Keeps two entries for each zone of the profile, and each path of names once.
class OpenZones {
 public:
  // If more zones are open together, the innermost ones are not named: "a/b/(more)".
  static constexpr size_t kMaxTogether = 256;

  // What was open together: numbers of paths, 0 if nothing was.
  struct Open {
    uint32_t zones = 0, frames = 0;
    friend constexpr auto operator<=>(Open, Open) = default;
  };

  explicit OpenZones(const Profile& profile);

  // Returns what was open on the thread. A zone is open from its from_ns until before its to_ns. O(log zones).
  Open At(uint32_t thread, uint64_t time_ns) const;

  // Returns the names of the zones, outermost first: "physics/collide". "" if none was open.
  std::string ZoneText(Open open) const { return Text(open.zones, "/"); }
  // Returns the names of the frames: "frame 12", or "frame 12, stream 3". "" if none was open.
  std::string FrameText(Open open) const { return Text(open.frames, ", "); }
  // Returns 12 for "frame 12", the frames that FrameCounter::Mark ends; nullopt if none was open.
  std::optional<uint64_t> FrameNumber(Open open) const;

 private:
  // A name within the ones of another path.
  struct Path {
    uint32_t within = 0, name = 0;
    friend constexpr auto operator<=>(Path, Path) = default;
  };
  // What is open from a time on.
  struct Change {
    uint64_t time_ns = 0;
    Open open;
  };

  std::vector<Change> ChangesOf(const std::vector<uint32_t>& zones);
  Open Together(const std::vector<uint32_t>& zones);
  // Returns the strings of a path, outermost first.
  std::vector<uint32_t> NamesOf(uint32_t path) const;
  std::string_view NameOf(uint32_t name) const;
  std::string Text(uint32_t path, const char* separator) const;

  static constexpr uint32_t kMore = UINT32_MAX;  // In place of the strings of those that are not named.

  const Profile& profile_;
  std::vector<std::vector<Change>> changes_;  // By thread, in order of time.
  std::vector<Path> paths_{{}};
  std::map<Path, uint32_t> numbers_;  // Of paths.
};

}  // namespace perfkit::exporters
