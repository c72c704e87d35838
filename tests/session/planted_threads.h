// Threads that wait in known ways, for looks at them.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace perfkit::session {

// Each call is a function of its own, so that stacks have its name. What is waited for never comes before Release.
class PlantedThreads {
 public:
  struct Planted {
    const char* name;      // of the thread
    const char* function;  // in its stack
    const char* wait;      // begin of what it waits for
    std::atomic<pid_t> tid{0};
  };

  PlantedThreads() {
    if (pipe(ends_) != 0) std::abort();
    epoll_ = epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, ends_[0], &wanted);
    held_.lock();
    for (Planted& planted : planted_) {
      threads_.emplace_back([this, &planted] {
        pthread_setname_np(pthread_self(), planted.name);
        planted.tid = static_cast<pid_t>(syscall(SYS_gettid));
        const size_t which = static_cast<size_t>(&planted - planted_.data());
        constexpr std::array kCalls = {&PlantedThreads::LockHeld,   &PlantedThreads::ReadPipe,
                                       &PlantedThreads::Sleep,      &PlantedThreads::EpollPipe,
                                       &PlantedThreads::LockSecond, &PlantedThreads::LockFirst};
        (this->*kCalls[which])();
      });
    }
  }

  // Each thread ends.
  ~PlantedThreads() {
    stop_ = true;
    held_.unlock();
    for (int i = 0; i < 2; ++i) (void)!write(ends_[1], "xx", 2);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : {ends_[0], ends_[1], epoll_}) close(fd);
  }
  PlantedThreads(const PlantedThreads&) = delete;
  PlantedThreads& operator=(const PlantedThreads&) = delete;

  const std::array<Planted, 6>& planted() const { return planted_; }
  int read_end() const { return ends_[0]; }
  // What the two threads of the deadlock wait for.
  const void* first() const { return &first_; }
  const void* second() const { return &second_; }

 private:
  [[gnu::noinline]] void LockHeld() {
    held_.lock();
    held_.unlock();
  }
  [[gnu::noinline]] void ReadPipe() {
    char byte = 0;
    (void)!read(ends_[0], &byte, 1);
    asm volatile("");
  }
  [[gnu::noinline]] void Sleep() {
    const timespec time{0, 20'000'000};
    while (!stop_) nanosleep(&time, nullptr);
  }
  [[gnu::noinline]] void EpollPipe() {
    epoll_event event{};
    epoll_wait(epoll_, &event, 1, -1);
    asm volatile("");
  }
  // A deadlock, but for the end of the test.
  [[gnu::noinline]] void LockSecond() { LockBoth(first_, second_); }
  [[gnu::noinline]] void LockFirst() { LockBoth(second_, first_); }
  void LockBoth(pthread_mutex_t& mine, pthread_mutex_t& others) {
    pthread_mutex_lock(&mine);
    ++locked_;
    while (locked_ < 2) std::this_thread::yield();
    for (bool locked = false; !locked && !stop_;) {
      timespec until{};
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += 20'000'000;
      if (until.tv_nsec >= 1'000'000'000) ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
      locked = pthread_mutex_timedlock(&others, &until) == 0;
      if (locked) pthread_mutex_unlock(&others);
    }
    pthread_mutex_unlock(&mine);
  }

  std::array<Planted, 6> planted_{{{"held", "LockHeld", "futex 0x"},
                                   {"reader", "ReadPipe", "read of descriptor "},
                                   {"sleeper", "Sleep", "sleep for 20 ms"},
                                   {"poller", "EpollPipe", "epoll descriptor "},
                                   {"locks-second", "LockSecond", "futex 0x"},
                                   {"locks-first", "LockFirst", "futex 0x"}}};
  std::mutex held_;
  pthread_mutex_t first_ = PTHREAD_MUTEX_INITIALIZER, second_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> locked_{0};
  std::atomic<bool> stop_{false};
  int ends_[2] = {-1, -1}, epoll_ = -1;
  std::vector<std::thread> threads_;
};

}  // namespace perfkit::session
