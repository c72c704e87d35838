// Threads whose zones or tasks a timeline does not know at present, and since when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace perfkit::session {

// Not thread-safe.
class OpenGaps {
 public:
  // Replaces all gaps by those that `recording`, a FrameRecording or TaskRecording, has now. index_of(gap) returns the
  // thread's index in Profile::threads, or nullopt if the profile does not have it.
  template <class Recording, class IndexOf>
  void Read(const Recording& recording, IndexOf&& index_of) {
    gaps_.clear();
    recording.ReadGaps([&](const auto& gap) {
      if (const std::optional<uint32_t> index = index_of(gap)) gaps_.push_back({*index, gap.from_ns, gap.lost});
    });
  }

  // Returns, for each thread of the profile, the time from which on nothing is known; UINT64_MAX if there is no gap.
  std::vector<uint64_t> UnknownFrom(size_t threads) const {
    std::vector<uint64_t> from_ns(threads, UINT64_MAX);
    for (const Gap& gap : gaps_) from_ns[gap.index] = std::min(from_ns[gap.index], gap.from_ns);
    return from_ns;
  }
  // Returns the number of records that were lost in them.
  uint64_t lost() const {
    uint64_t lost = 0;
    for (const Gap& gap : gaps_) lost += gap.lost;
    return lost;
  }

 private:
  struct Gap {
    uint32_t index = 0;
    uint64_t from_ns = 0;
    uint64_t lost = 0;
  };
  std::vector<Gap> gaps_;
};

}  // namespace perfkit::session
