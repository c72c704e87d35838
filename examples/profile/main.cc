// profile: profiles two threads of SQLite, one of zstd, and two that wait for a lock; prints the report, and writes
// every format that is linked into a folder.
//
//   profile [SECONDS] [FOLDER]      how long (2); where the files go (a new one in /tmp)
#include <absl/strings/str_format.h>
#include <perfkit/profile_writer.h>
#include <perfkit/report.h>
#include <perfkit/session.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tool/arguments.h"
#include "tool/output.h"
#include "workload/compression.h"
#include "workload/queries.h"

namespace {

using namespace std::chrono_literals;

constexpr tool::Usage kUsage = {"profile",
                                "usage: profile [SECONDS] [FOLDER]\n"
                                "  profiles its threads for SECONDS (2), and writes files into FOLDER (a new one)\n",
                                2};

int Fail(const std::string& why) {
  std::fprintf(stderr, "profile: %s\n", why.c_str());
  return 1;
}

// Sleeps while it holds the lock for most of the time, so that the other thread waits for it.
void HoldLock(std::mutex& lock, const std::atomic<bool>& stop) {
  pthread_setname_np(pthread_self(), "lock-holder");
  while (!stop) {
    const std::lock_guard<std::mutex> held(lock);
    std::this_thread::sleep_for(5ms);
  }
}

void WantLock(std::mutex& lock, const std::atomic<bool>& stop) {
  pthread_setname_np(pthread_self(), "lock-waiter");
  while (!stop) {
    { const std::lock_guard<std::mutex> held(lock); }
    std::this_thread::sleep_for(1ms);
  }
}

// Runs the workload for `seconds`, profiled.
absl::StatusOr<perfkit::Profile> ProfileWork(double seconds, tool::Output& output) {
  absl::StatusOr<perfkit::Session> session =
      perfkit::Session::Start({.interval = 1ms, .clock = perfkit::SessionClock::kWall});
  if (!session.ok()) return session.status();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> queries{0}, blocks{0};
  std::array<std::string, 3> wrong;
  std::mutex lock;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { wrong[0] = workload::RunQueries(stop, queries); });
  threads.emplace_back([&] { wrong[1] = workload::RunQueries(stop, queries); });
  threads.emplace_back([&] { wrong[2] = workload::CompressBlocks(stop, blocks); });
  threads.emplace_back([&] { HoldLock(lock, stop); });
  threads.emplace_back([&] { WantLock(lock, stop); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const std::string& why : wrong) {
    if (!why.empty()) return absl::InternalError(why);
  }
  output.Write(absl::StrFormat("%d queries, %d blocks compressed\n\n", queries.load(), blocks.load()));
  return session->Stop();
}

// The folder that was asked for, or a new one.
absl::StatusOr<std::filesystem::path> MakeFolder(const char* asked) {
  std::error_code error;
  if (asked != nullptr) {
    std::filesystem::create_directories(asked, error);
    if (error) {
      return absl::InvalidArgumentError(absl::StrFormat("cannot make the folder %s: %s", asked, error.message()));
    }
    return asked;
  }
  std::string name = std::filesystem::temp_directory_path(error) / "profile-XXXXXX";
  return mkdtemp(name.data()) != nullptr ? name : ".";
}

// Writes one file for each format, and prints the programs that open it.
absl::Status WriteAll(const perfkit::Profile& profile, const std::filesystem::path& folder, tool::Output& output) {
  for (const perfkit::ProfileFormat& format : perfkit::ProfileFormats()) {
    const std::string path = folder / ("profile" + std::string(format.extensions[0]));
    if (absl::Status status = perfkit::WriteProfile(profile, path); !status.ok()) return status;
    output.Write(absl::StrFormat("%-36s %9d bytes   open with %s\n", path, std::filesystem::file_size(path),
                                 format.opened_with));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  const double seconds = tool::SecondsArgument(kUsage, argc, argv, 2);
  const auto folder = MakeFolder(argc > 2 ? argv[2] : nullptr);
  if (!folder.ok()) return Fail(std::string(folder.status().message()));
  tool::Output output("profile");
  const absl::StatusOr<perfkit::Profile> profile = ProfileWork(seconds, output);
  if (!profile.ok()) return Fail(std::string(profile.status().message()));
  output.Write(perfkit::FormatReport(*profile, {.min_percent = 3}) + "\n");
  const absl::Status written = WriteAll(*profile, *folder, output);
  if (!written.ok()) return Fail(std::string(written.message()));
  return output.Finish() ? 0 : 1;
}
