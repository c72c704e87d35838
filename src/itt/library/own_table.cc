// The end of counting: it gives threads some time to leave their tasks, and then writes what is known.
#include "src/itt/library/own_table.h"

#include <cstdio>
#include <utility>

#include "src/itt/library/report.h"
#include "src/sys/kernel.h"
#include "src/sys/new_file.h"

namespace perfkit::itt {

OwnTable::OwnTable(const Settings& settings)
    : path_(settings.path),
      frames_({.events = settings.events,
               .history_frames = 1,
               .max_zones = kMaxZones,
               .max_depth = OpenTasks::kMaxDepth,
               .max_threads = kMaxThreads}),
      impl_(count::FrameCounterImpl::Of(frames_)),
      collector_(frames_, ThreadNames::kCollector) {
  impl_->DetachThisThread();  // This thread has marked nothing, and is a worker like all others from now on.
}

// Gives threads that are inside of a task some time to leave it: until then their counts are not known. Returns how
// many are inside still.
uint32_t OwnTable::WaitForThreads() const {
  constexpr int kMaxWaitMs = 100;
  for (int waited = 0; impl_->draining() != 0 && waited < kMaxWaitMs; ++waited) {
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
    sys::kernel().nanosleep(&millisecond);
  }
  return impl_->draining();
}

// Returns false if it has ended before. Requires mutex_.
bool OwnTable::End() {
  if (std::exchange(finished_, true)) return false;
  collector_.EndForTable();
  frames_.SetEnabled(false);
  return true;
}

void OwnTable::Discard() {
  if (!impl_->MayCount()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  End();
}

void OwnTable::Finish() {
  if (!impl_->MayCount()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!End()) return;
  const uint32_t inside = WaitForThreads();
  const std::string text = FormatTable(frames_, impl_->plan(), collector_.timed(), collector_.uncounted(), inside);
  if (path_.empty()) {
    std::fputs(text.c_str(), stderr);
    return;
  }
  const absl::Status status = sys::WriteFile(path_, [&text](sys::ByteSink sink) { return sink(text); });
  if (status.ok()) return;
  std::fprintf(stderr, "perfkit: no table of ITT tasks: %s\n", std::string(status.message()).c_str());
}

}  // namespace perfkit::itt
