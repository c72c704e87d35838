// IttCollection: a collector of the program's own FrameCounter, which libperfkit_itt.so connects the copies of
// ittnotify to.
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/itt.h"
#include "src/itt/calls.h"
#include "src/itt/collector.h"
#include "src/itt/forward.h"
#include "src/itt/load.h"
#include "src/sys/fork_registry.h"

namespace perfkit {
namespace itt {
namespace {

// What stays until the process ends.
struct Lasting {
  std::mutex mutex;  // Guards all of it. Locked under a ForkBlocker: a fork never leaves it locked in its child.
  std::set<const Global*> copies, unknown_copies;
  std::vector<std::unique_ptr<Collector>> collectors;
};

Lasting& TheLasting() {
  static Lasting* const lasting = new Lasting;
  return *lasting;
}

void ConnectCopy(Global* global, int groups) {
  Lasting& lasting = TheLasting();
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(lasting.mutex);
  const bool known = ConnectCalls(global, groups).ok();
  (known ? lasting.copies : lasting.unknown_copies).insert(global);
}

const Forward kForward{.connect = ConnectCopy};

void FillUncounted(const Uncounted& from, IttStats& stats) {
  const auto value = [](const std::atomic<uint64_t>& number) { return number.load(std::memory_order_relaxed); };
  stats.paused = value(from.paused);
  stats.refused = value(from.refused);
  stats.in_handler = value(from.in_handler);
  stats.too_deep = value(from.too_deep);
  stats.stray_ends = value(from.stray_ends);
  stats.cut = value(from.cut);
  stats.unended = value(from.unended);
  stats.jumped = value(from.jumped);
}

void FillTimes(const TimedTasks::Totals& from, IttStats& stats) {
  for (const auto& [name, sum] : from.by_name) stats.times.push_back({name, sum.calls, sum.total_ns, sum.max_ns});
  stats.timed_open = from.open;
  stats.timed_stray = from.mismatched;
  stats.timed_dropped = from.dropped;
  stats.timed_invalid = from.untimed;
}

absl::Status Refused(const char* why, const char* remedy) {
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      absl::StrFormat("ITT tasks in a FrameCounter: %s. Remedy: %s.", why, remedy));
}

}  // namespace
}  // namespace itt

class IttCollection::Impl {
 public:
  explicit Impl(FrameCounter& frames) {
    auto collector = std::make_unique<itt::Collector>(frames, itt::ThreadNames::kProgram);
    collector_ = collector.get();
    {
      itt::Lasting& lasting = itt::TheLasting();
      const sys::ForkBlocker fork_blocker;
      const std::lock_guard<std::mutex> lock(lasting.mutex);
      lasting.collectors.push_back(std::move(collector));
    }
    itt::current_collector.store(collector_, std::memory_order_release);  // Pairs with the loads in calls.cc.
  }
  ~Impl() { Stop(); }

  void Stop() {
    if (std::exchange(stopped_, true)) return;
    collector_->Stop();  // It has to be called meanwhile: by the ends that it waits for.
    itt::current_collector.store(nullptr, std::memory_order_relaxed);
  }

  IttStats Stats() const {
    IttStats stats;
    itt::FillUncounted(collector_->uncounted(), stats);
    itt::FillTimes(collector_->timed(), stats);
    itt::Lasting& lasting = itt::TheLasting();
    const sys::ForkBlocker fork_blocker;
    const std::lock_guard<std::mutex> lock(lasting.mutex);
    stats.copies = static_cast<uint32_t>(lasting.copies.size());
    stats.unknown_copies = static_cast<uint32_t>(lasting.unknown_copies.size());
    return stats;
  }

 private:
  itt::Collector* collector_;
  bool stopped_ = false;
};

absl::StatusOr<IttCollection> IttCollection::Start(FrameCounter& frames, const char* collector_path) {
  if (!count::FrameCounterImpl::Of(frames)->MayCount()) {
    return itt::Refused("it belongs to the parent of this forked child", "construct a FrameCounter in the child");
  }
  if (itt::current_collector.load(std::memory_order_relaxed) != nullptr) {
    return itt::Refused("there is an IttCollection already", "destroy it first: a process has one at a time");
  }
  if (absl::Status status = itt::ForwardTo(itt::kForward, collector_path); !status.ok()) return status;
  return IttCollection(std::make_unique<Impl>(frames));
}

IttCollection::IttCollection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
IttCollection::IttCollection(IttCollection&& other) noexcept = default;
IttCollection& IttCollection::operator=(IttCollection&& other) noexcept = default;
IttCollection::~IttCollection() = default;

void IttCollection::Stop() { impl_->Stop(); }
IttStats IttCollection::Stats() const { return impl_->Stats(); }

}  // namespace perfkit
