// Sessions for long: threads, libraries and child processes that come and go. Memory stays flat, sums stay exact.
#pragma once

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/sanitizers.h"
#include "src/session/thread_table.h"
#include "tests/session/support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

#if PERFKIT_SANITIZED
// Of <sanitizer/allocator_interface.h>, which GCC does not have.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace perfkit::session {

// The bytes that the program holds by malloc, in all arenas. What the allocator keeps for later does not count, but for
// its caches of threads, which are small. nullopt: this C library does not tell.
inline std::optional<size_t> HeldBytes() {
#if PERFKIT_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#elif defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return std::nullopt;
#endif
}

// Copies of the C library's mathematics under other names, which are loaded, called and unloaded in turn.
class SoakLibraries {
 public:
  SoakLibraries() {
    Dl_info info{};
    double (*const function)(double) = cos;
    if (dladdr(reinterpret_cast<void*>(function), &info) == 0 || info.dli_fname == nullptr) return;
    if (std::string(info.dli_fname).find("libm") == std::string::npos) return;  // musl: part of the C library
    for (size_t i = 0; i < paths_.size(); ++i) {
      paths_[i] = folder_.path() + "/libm" + std::to_string(i) + ".so";
      std::error_code error;
      std::filesystem::copy_file(info.dli_fname, paths_[i], error);
    }
  }
  void Call(size_t which) const {
    void* const library = dlopen(paths_[which % paths_.size()].c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto called = reinterpret_cast<double (*)(double)>(dlsym(library, "cos"));
    volatile double x = 1;
    for (int i = 0; called != nullptr && i < 20'000; ++i) x = called(x);
    dlclose(library);
  }

 private:
  testing::TempFolder folder_;
  std::array<std::string, 4> paths_;
};

inline constexpr int kThreadsARound = 8;

// Threads that work, fault and wait, each round under other names; a library; a child process.
inline void RunRound(const SoakLibraries& libraries, int round) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreadsARound; ++i) {
    threads.emplace_back([&, i] {
      const std::string name = i == 0 ? "own-" + std::to_string(round) : "soak-" + std::to_string(i);
      pthread_setname_np(pthread_self(), name.c_str());
      Fault(5);
      Spin(std::chrono::microseconds(50 * i));
      if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500 * i));
    });
  }
  libraries.Call(static_cast<size_t>(round));
  if (round % 4 == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  for (std::thread& thread : threads) thread.join();
}

// On and off the CPU, by threads and by samples.
inline void CheckTimes(const Profile& profile) {
  std::vector<uint64_t> off_ns(profile.threads.size());
  const size_t off = profile.EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile.samples) {
    if (sample.event == off) off_ns[sample.thread] += sample.weight;
  }
  for (size_t i = 0; i < off_ns.size(); ++i) {
    if (off_ns[i] != profile.threads[i].off_ns) CHECK(off_ns[i] == profile.threads[i].off_ns);
  }
}

// How many threads the profile knows, and its laws.
inline uint64_t CheckSoaked(const absl::StatusOr<Profile>& profile) {
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  for (size_t i = 0; i < 2; ++i) {
    CHECK(profile->Total(i).samples == profile->events[i].accounting.delivered);
    CHECK(profile->Total(i).weight == profile->events[i].accounting.represented);
  }
  CheckTimes(*profile);
  CHECK(profile->threads.size() <= ThreadTable::kMaxEnded + ThreadTable::kMaxSums + 100);
  uint64_t threads = 0;
  for (const ProfileThread& thread : profile->threads) threads += std::max<uint32_t>(thread.ended, 1);
  return threads;
}

// Runs rounds until `seconds` have passed and ended threads are summed up. In the first half, bounded caches fill, and
// the tables reach their size.
inline void Soak(double seconds) {
  const SoakLibraries libraries;
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(),
                                                    .clock = SessionClock::kWall,
                                                    .memory_bytes = 1 << 20,
                                                    .look_after = std::chrono::microseconds(200),
                                                    .lines = false});  // whose cache takes up to 64 MiB
  REQUIRE(session.status() == absl::OkStatus());
  // A sanitizer takes milliseconds for a thread: just as many as make sums of some.
  constexpr int kThreads = static_cast<int>(ThreadTable::kMaxEnded) * 3;
  constexpr int kMinRounds = (testing::kSanitized ? kThreads * 5 / 12 : kThreads) / kThreadsARound;
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  size_t warm = 0, held = 0;
  std::string series;  // KiB, every 100 rounds
  int rounds = 0;
  for (; rounds < kMinRounds || passed() < seconds; ++rounds) {
    RunRound(libraries, rounds);
    if (rounds % 100 == 99) {
      CheckSoaked(session->Snapshot());
      series += " " + std::to_string(HeldBytes().value_or(0) >> 10);
    }
    const bool is_warm = rounds >= kMinRounds / 2 && passed() >= seconds / 2;
    size_t& most = is_warm ? held : warm;
    most = std::max(most, HeldBytes().value_or(0));
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  const uint64_t threads = CheckSoaked(profile);
  CheckLaws(*profile);
  std::string notes;
  for (const std::string& note : profile->accounting.notes) notes += note + "\n";
  CAPTURE(profile->stacks.size(), profile->locations.size(), profile->strings.size(), profile->waits.size());
  CAPTURE(rounds, threads, warm, held, series, notes);
  if (!testing::kSanitized) CHECK(held <= warm + (1 << 20));  // else tables still grow in the second half
  CHECK(notes.find("summed up by name") != std::string::npos);
  if (profile->accounting.side_band_lost == 0) CHECK(threads >= static_cast<uint64_t>(rounds) * kThreadsARound);
}

}  // namespace perfkit::session
