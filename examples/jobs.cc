// A thread pool of std::function: what its jobs cost, how long they waited in the queue, when they ran, and how many
// samples each kind of job has.
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/session.h"
#include "perfkit/task_job.h"

namespace {

class JobQueue {
 public:
  void Push(std::function<void()> job) { jobs_.push_back(std::move(job)); }
  void RunAll() {
    while (const std::function<void()> job = Take()) job();
  }

 private:
  std::function<void()> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.empty()) return {};
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;
};

void Decode(size_t megabytes) { std::vector<char>(megabytes << 20, 1); }

void PrintSamples(const perfkit::Profile& profile) {
  std::map<std::string, size_t> samples;
  for (const perfkit::ProfileSample& sample : profile.samples) {
    samples[profile.strings[sample.task]] += sample.samples;
  }
  for (const auto& [task, count] : samples) {
    printf("%s: %zu samples\n", task.empty() ? "outside of tasks" : task.c_str(), count);
  }
}

}  // namespace

int main() {
  perfkit::TaskCounter tasks({.events = {"task-clock", "page-faults"}});
  absl::StatusOr<perfkit::Session> session = perfkit::Session::Start({.tasks = &tasks});
  JobQueue queue;
  for (size_t i = 0; i < 40; ++i) {
    queue.Push(perfkit::CountedJob(tasks, {i % 4 == 0 ? "music" : "sound"}, [i] { Decode(i % 4 == 0 ? 8 : 1); }));
  }
  std::thread worker([&queue] { queue.RunAll(); });
  queue.RunAll();
  worker.join();
  fputs(tasks.FormatTasks().c_str(), stdout);
  if (!session.ok()) {
    fprintf(stderr, "no samples: %s\n", std::string(session.status().message()).c_str());
    return 0;
  }
  const absl::StatusOr<perfkit::Profile> profile = session->Stop();
  if (profile.ok()) PrintSamples(*profile);
}
