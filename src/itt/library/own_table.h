// What libperfkit_itt.so counts in an unchanged program: a FrameCounter of its own, and a table of it at the exit.
//
// No thread of the program marks frames here. So the FrameCounter has no marking thread: each thread is a worker, whose
// counts are published when it leaves its outermost task, and kept when it ends.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/itt/collector.h"
#include "src/itt/library/settings.h"

namespace perfkit::itt {

// Thread-safe. Never destroyed: the program may call its collector until the process ends.
class OwnTable {
 public:
  static constexpr size_t kMaxZones = 512, kMaxThreads = 1024;

  explicit OwnTable(const Settings& settings);
  OwnTable(const OwnTable&) = delete;
  OwnTable& operator=(const OwnTable&) = delete;

  Collector& collector() { return collector_; }

  // Ends counting, and writes the table. Does nothing in a forked child.
  void Finish();
  // Ends counting without a table, if it has not ended yet.
  void Discard();

 private:
  bool End();
  uint32_t WaitForThreads() const;

  const std::string path_;
  FrameCounter frames_;
  const std::shared_ptr<count::FrameCounterImpl> impl_;  // Of frames_.
  Collector collector_;
  std::mutex mutex_;  // Guards finished_, and the end of counting.
  bool finished_ = false;
};

}  // namespace perfkit::itt
