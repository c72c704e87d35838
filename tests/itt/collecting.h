// Tasks of a stand-in for ittnotify, which is connected directly, without libperfkit_itt.so.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "perfkit/frame_counter.h"
#include "src/itt/calls.h"
#include "src/itt/collector.h"
#include "tests/itt/static_part.h"

namespace perfkit::itt {

inline Domain g_domain{.flags = 1, .name = "app"}, g_other_domain{.flags = 1, .name = "library"};
inline StringHandle g_work{.text = "work"}, g_inner{.text = "inner"};

inline const Calls& Program() {
  static StaticPart* const part = [] {
    auto* const connected = new StaticPart;
    REQUIRE(ConnectCalls(&connected->global, -1).ok());
    return connected;
  }();
  return part->calls;
}

inline void Begin(StringHandle& name, const Domain& domain = g_domain) { Program().task_begin(&domain, {}, {}, &name); }
inline void End(const Domain& domain = g_domain) { Program().task_end(&domain); }
inline void Tasks(int count) {
  for (int i = 0; i < count; ++i) {
    Begin(g_work);
    End();
  }
}

// Collects into `frames` until Stop, or its destructor.
class Collecting {
 public:
  explicit Collecting(FrameCounter& frames) {
    static auto* const kept = new std::deque<std::unique_ptr<Collector>>;  // As in a program: none is destroyed.
    kept->push_back(std::make_unique<Collector>(frames, ThreadNames::kProgram));
    collector_ = kept->back().get();
    current_collector = collector_;
  }
  ~Collecting() { Stop(); }

  void Stop(uint64_t give_up_after_ns = 10'000'000'000) {
    if (current_collector == nullptr) return;
    collector_->Stop(give_up_after_ns);
    current_collector = nullptr;
  }
  TimedTasks::Totals timed() const { return collector_->timed(); }
  const Uncounted& uncounted() const { return collector_->uncounted(); }

 private:
  Collector* collector_;
};

// A thread that does one thing after the other, as it is told.
class Steps {
 public:
  template <class Step>
  void Do(Step step) {
    step_ = step;
    told_.store(told_ + 1);
    while (done_ != told_) std::this_thread::yield();
  }
  ~Steps() {
    Do([this] { over_ = true; });
    thread_.join();
  }

 private:
  std::atomic<int> told_{0}, done_{0};
  std::function<void()> step_;
  bool over_ = false;
  std::thread thread_{[this] {
    while (!over_) {
      while (done_ == told_) std::this_thread::yield();
      step_();
      done_.store(done_ + 1);
    }
  }};
};

}  // namespace perfkit::itt
