// What a thread did at each moment, in parts that do not overlap: waits, and the innermost zones between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// The kinds and names of parts, by number. Not thread-safe.
class PartNames {
 public:
  struct Name {
    FramePart::Kind kind = FramePart::Kind::kZone;
    std::string text;

    auto operator<=>(const Name&) const = default;
  };

  PartNames() = default;
  PartNames(PartNames&&) = default;  // A copy's names_ would point into the original's map.
  PartNames& operator=(PartNames&&) = default;

  // Returns the number of a part; adds it if it is new.
  uint32_t Of(FramePart::Kind kind, std::string text);
  const Name& operator[](uint32_t part) const { return *names_[part]; }
  size_t size() const { return names_.size(); }

 private:
  // A map does not move its keys: names_ may point to them.
  std::map<Name, uint32_t> numbers_;
  std::vector<const Name*> names_;
};

// The zones and waits of one thread. Thread-safe to read.
class ThreadParts {
 public:
  static constexpr uint32_t kNoSample = UINT32_MAX;
  // Called with a part's number (PartNames), its length, and for a wait the index of its sample in Profile::samples;
  // kNoSample for zones.
  using Visit = absl::FunctionRef<void(uint32_t part, uint64_t ns, uint32_t sample)>;

  ThreadParts(const Profile& profile, uint32_t thread, PartNames& names);

  // Calls visit for all parts between from_ns and to_ns, in their order. Their lengths sum to to_ns - from_ns, whatever
  // is in the profile.
  void Split(uint64_t from_ns, uint64_t to_ns, Visit visit) const;
  // Returns the part of the innermost zone at `ns`, whether the thread was on or off the CPU.
  uint32_t ZoneAt(uint64_t ns) const;

 private:
  // From here on the thread is in another zone.
  struct Change {
    uint64_t from_ns = 0;
    uint32_t part = 0;
  };
  struct Wait {
    uint64_t from_ns = 0, to_ns = 0;
    uint32_t part = 0, sample = 0;
  };

  void AddZones(const Profile& profile, uint32_t thread, PartNames& names);
  void AddWaits(const Profile& profile, uint32_t thread, PartNames& names);
  std::vector<Change>::const_iterator ChangeAt(uint64_t ns) const;
  void SplitZone(uint64_t from_ns, uint64_t to_ns, uint32_t part, size_t& wait, Visit visit) const;

  std::vector<Change> changes_;  // in order of time; the first one is at 0
  std::vector<Wait> waits_;      // in order of time
};

}  // namespace perfkit::profile
