// A wait has the number of other threads, but not who they were. So of several waits only the least number of others is
// known.
#include "src/profile/preempter_shares.h"

#include <algorithm>

#include "src/profile/wait_text.h"

namespace perfkit::profile {

void PreempterShares::Add(const Profile& profile, const WaitPiece& preempted, int64_t share_ns) {
  const uint32_t wait = profile.samples[preempted.sample].wait;
  const ProfilePreempter preempter =
      wait == ProfileSample::kNoWait ? ProfilePreempter{} : profile.waits[wait].preempter;
  if (!preempter.is_known()) {
    unknown_ns_ += share_ns;
    return;
  }
  Share& share = shares_[{preempter.tid, preempter.command}];
  share.preempter = preempter;
  share.ns += share_ns;
  max_others_ = std::max(max_others_, preempter.others);
}

std::string PreempterShares::Text(const Profile& profile) const {
  const auto most = std::ranges::max_element(shares_, {}, [](const auto& share) { return share.second.ns; });
  if (most == shares_.end() || most->second.ns < unknown_ns_) return "";
  ProfilePreempter preempter = most->second.preempter;
  const auto is_other = [&](const auto& share) { return share.first != most->first && share.first.first != 0; };
  const auto named = static_cast<uint32_t>(std::ranges::count_if(shares_, is_other));
  const bool is_exact = max_others_ == 0 || shares_.size() == 1;
  preempter.others = std::max(named, max_others_);
  return PreempterText(profile, preempter, is_exact && unknown_ns_ == 0);
}

}  // namespace perfkit::profile
