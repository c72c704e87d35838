// The files that are kept open for looks at threads: of more threads than are kept, of one that has ended, in a child.
#include "src/session/look_files.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "src/sys/files.h"
#include "src/sys/kernel.h"
#include "tests/session/numbered_thread.h"
#include "tests/sys/in_child.h"

namespace perfkit::session {
namespace {

// Includes that of the folder itself.
size_t Descriptors() { return sys::ListFolder("/proc/self/fd").value_or(std::vector<std::string>()).size(); }

// Threads that wait until the end of the scope.
class WaitingThreads {
 public:
  explicit WaitingThreads(size_t count) {
    while (threads_.size() < count) threads_.push_back(std::make_unique<NumberedThread>([this] { over_.wait(false); }));
  }
  ~WaitingThreads() {
    over_ = true;
    over_.notify_all();
  }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  size_t size() const { return threads_.size(); }
  pid_t operator[](size_t i) const { return static_cast<pid_t>(threads_[i]->tid()); }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::unique_ptr<NumberedThread>> threads_;
};

TEST_CASE("files of as many threads as promised stay open", "[look_files]") {
  const size_t before = Descriptors();
  const WaitingThreads threads(LookFiles::kMaxThreads + 2);
  LookFiles files;
  for (size_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < threads.size(); ++i) CHECK(files.Of(threads[i]).tid() == threads[i]);
  }
  CHECK(Descriptors() == before + 2 * LookFiles::kMaxThreads);
  files.Forget(threads[threads.size() - 1]);
  CHECK(Descriptors() == before + 2 * LookFiles::kMaxThreads - 2);
  files.Forget(threads[0]);  // has none
  CHECK(Descriptors() == before + 2 * LookFiles::kMaxThreads - 2);
  files.CloseAll();
  CHECK(Descriptors() == before);
}

TEST_CASE("the thread that was looked at least recently makes room", "[look_files]") {
  const WaitingThreads threads(LookFiles::kMaxThreads + 1);
  LookFiles files;
  for (size_t i = 0; i < LookFiles::kMaxThreads; ++i) files.Of(threads[i]);
  const proc::ThreadFiles* const first = &files.Of(threads[0]);
  const proc::ThreadFiles* const third = &files.Of(threads[2]);
  const proc::ThreadFiles* const last = &files.Of(threads[threads.size() - 1]);  // in the place of the second
  CHECK(&files.Of(threads[0]) == first);
  CHECK(&files.Of(threads[2]) == third);
  CHECK(&files.Of(threads[threads.size() - 1]) == last);
  CHECK(&files.Of(threads[1]) != last);
}

TEST_CASE("a forked child has no files of its parent's threads", "[look_files]") {
  const size_t before = Descriptors();
  LookFiles files;
  files.Of(sys::kernel().gettid());
  CHECK(Descriptors() == before + 2);
  CHECK(perfkit::testing::InChild([&] { return Descriptors() == before; }) == 0);
  CHECK(Descriptors() == before + 2);
}

}  // namespace
}  // namespace perfkit::session
