// Looks at the threads each millisecond.
#include "src/itt/wait_outside.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "src/proc/blocked_call.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"

namespace perfkit::itt {
namespace {

constexpr uint64_t kTickNs = 1'000'000;

// A thread that is waited for.
class Waiting {
 public:
  explicit Waiting(const OpenTasks& tasks) : tasks_(&tasks) { Look(); }

  const OpenTasks* tasks() const { return tasks_; }

  // Threads that begin and end many tasks are at work often, and never for long.
  bool IsOutside() const {
    constexpr int kLooks = 100;
    for (int look = 0; look < kLooks && tasks_->at_work(); ++look) std::this_thread::yield();
    return !tasks_->at_work();
  }

  // To be called after each tick. Returns true if the thread has had its time, or has ended.
  bool IsOver(uint64_t give_up_after_ns) {
    const uint64_t before_ns = cpu_ns_;
    Look();
    const char state = proc::ReadState(tasks_->tid());
    const bool sleeps = state == 'S' || state == '?';  // '?' without /proc.
    waited_ns_ += sleeps ? kTickNs : cpu_ns_ - before_ns;
    return has_ended_ || waited_ns_ >= give_up_after_ns;
  }

 private:
  void Look() {
    timespec time{};
    if (sys::kernel().clock_gettime(sys::ThreadCpuClock(tasks_->tid()), &time) != 0) {
      has_ended_ = errno == EINVAL;
      return;
    }
    const uint64_t cpu_ns = static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
    cpu_ns_ = std::max(cpu_ns_, cpu_ns);
  }

  const OpenTasks* tasks_;
  uint64_t cpu_ns_ = 0;  // At the last look.
  uint64_t waited_ns_ = 0;
  bool has_ended_ = false;
};

}  // namespace

std::vector<const OpenTasks*> WaitUntilOutside(std::span<const std::shared_ptr<OpenTasks>> threads,
                                               uint64_t give_up_after_ns) {
  std::vector<Waiting> waiting;
  std::vector<const OpenTasks*> given_up;
  for (const std::shared_ptr<OpenTasks>& tasks : threads) waiting.emplace_back(*tasks);
  for (;;) {
    std::erase_if(waiting, [](const Waiting& thread) { return thread.IsOutside(); });
    if (waiting.empty()) return given_up;
    const timespec tick{.tv_sec = 0, .tv_nsec = kTickNs};
    sys::kernel().nanosleep(&tick);
    std::erase_if(waiting, [&](Waiting& thread) {
      const bool is_over = thread.IsOver(give_up_after_ns);
      if (is_over && thread.tasks()->at_work()) given_up.push_back(thread.tasks());
      return is_over;
    });
  }
}

}  // namespace perfkit::itt
