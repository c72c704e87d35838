// Sums times by name, and keeps the tasks and regions that are open.
#include "src/itt/timed_tasks.h"

#include <algorithm>
#include <utility>

#include "src/sys/fork_registry.h"

namespace perfkit::itt {

void TimedTasks::Begin(const Domain* domain, const Id& id, std::string name, uint64_t now_ns) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (open_.size() == kMaxOpen) {
    ++totals_.dropped;
    return;
  }
  open_.emplace(Key(domain, id.d1, id.d2, id.d3), Open{std::move(name), now_ns});
}

// If several are open with this id, ends the one that began last.
void TimedTasks::End(const Domain* domain, const Id& id, uint64_t now_ns) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [first, end] = open_.equal_range(Key(domain, id.d1, id.d2, id.d3));
  if (first == end) {
    ++totals_.mismatched;
    return;
  }
  const auto latest = std::prev(end);
  if (!latest->second.name.empty()) Add(latest->second.name, latest->second.begin_ns, now_ns);
  open_.erase(latest);
}

void TimedTasks::Submit(const std::string& name, uint64_t begin_ns, uint64_t end_ns, uint64_t now_ns) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (begin_ns == kNoTimestamp || end_ns == kNoTimestamp || end_ns < begin_ns || end_ns > now_ns) {
    ++totals_.untimed;
  } else {
    Add(name, begin_ns, end_ns);
  }
}

TimedTasks::Totals TimedTasks::Take() const {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  Totals totals = totals_;
  totals.open = open_.size();
  return totals;
}

void TimedTasks::Add(const std::string& name, uint64_t begin_ns, uint64_t end_ns) {
  if (totals_.by_name.size() == kMaxNames && !totals_.by_name.contains(name)) {
    ++totals_.dropped;
    return;
  }
  Sum& sum = totals_.by_name[name];
  uint64_t total_ns = 0;
  if (__builtin_add_overflow(sum.total_ns, end_ns - begin_ns, &total_ns)) {
    ++totals_.untimed;  // A sum of submitted frames of more than 500 years.
    return;
  }
  ++sum.calls;
  sum.total_ns = total_ns;
  sum.max_ns = std::max(sum.max_ns, end_ns - begin_ns);
}

}  // namespace perfkit::itt
