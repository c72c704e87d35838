// The account of a group grows at the end of a throttled time, by its length. So a growth between two readings was
// within the time from its length before the first one until the second one.
#include "src/session/cpu_quotas.h"

#include <algorithm>
#include <optional>

#include "src/proc/cpu_quota.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

constexpr uint64_t kFindEveryNs = 1'000'000'000;

}  // namespace

void ThrottledTimes::Add(const std::string& group, uint64_t before_ns, uint64_t after_ns, uint64_t throttled_ns) {
  Account& account = accounts_.try_emplace(group, Account{before_ns, throttled_ns}).first->second;
  if (throttled_ns > account.throttled_ns) {
    growths_.push_back({account.before_ns, after_ns, throttled_ns - account.throttled_ns});
    if (growths_.size() > kMaxGrowths) growths_.pop_front();
  }
  account = {before_ns, throttled_ns};
}

uint64_t ThrottledTimes::Within(uint64_t from_ns, uint64_t to_ns) const {
  uint64_t sum_ns = 0;
  for (auto growth = growths_.rbegin(); growth != growths_.rend() && growth->to_ns > from_ns; ++growth) {
    const uint64_t begin_ns = std::max(from_ns, growth->from_ns - std::min(growth->from_ns, growth->ns));
    const uint64_t end_ns = std::min(to_ns, growth->to_ns);
    if (begin_ns < end_ns) sum_ns += std::min(end_ns - begin_ns, growth->ns);
  }
  return std::min(sum_ns, to_ns - std::min(from_ns, to_ns));
}

void CpuQuotas::Read() {
  const uint64_t before_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (found_ns_ == 0 || before_ns - found_ns_ >= kFindEveryNs) {
    groups_ = proc::CpuQuotaGroups();
    found_ns_ = before_ns;
  }
  read_ns_ = before_ns;
  for (const std::string& group : groups_) {
    const std::optional<uint64_t> throttled_ns = proc::ReadThrottledNs(group);
    if (throttled_ns) times_.Add(group, before_ns, sys::ClockNs(CLOCK_MONOTONIC), *throttled_ns);
  }
}

uint64_t CpuQuotas::ThrottledWithin(uint64_t from_ns, uint64_t to_ns) {
  if (to_ns > read_ns_ && !groups_.empty()) Read();
  return times_.Within(from_ns, to_ns);
}

}  // namespace perfkit::session
