// The hitches are provoked, not faked: the kernel does what it does to every game, and perfkit has to find out.
#include "level.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <future>
#include <mutex>
#include <thread>

namespace game {

// One lock for all of them, as in many a game that was not to have any.
class Assets {
 public:
  explicit Assets(std::chrono::nanoseconds time) : time_(time) {}

  // On the loader's thread.
  [[gnu::noinline]] void Load() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_loading_.set_value();
    std::this_thread::sleep_for(time_);  // the disk
  }
  // On the thread that marks frames.
  [[gnu::noinline]] void Use() {
    is_loading_.get_future().wait();
    const std::lock_guard<std::mutex> lock(mutex_);
    asm volatile("");
  }

 private:
  const std::chrono::nanoseconds time_;
  std::mutex mutex_;
  std::promise<void> is_loading_;
};

size_t LoadLevelChunk(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, bytes, MADV_NOHUGEPAGE);  // the same number of faults on every machine
  auto* words = static_cast<uint64_t*>(memory);
  constexpr size_t kStride = 4096 / sizeof(uint64_t) / 2;
  size_t checksum = 0;
  for (size_t i = 0; i < bytes / sizeof(uint64_t); i += kStride) {
    words[i] = i * 0x9e3779b97f4a7c15;
    checksum ^= words[i];
  }
  munmap(memory, bytes);
  return checksum;
}

void WaitForAsset(std::chrono::nanoseconds time) {
  Assets assets(time);
  std::thread loader([&assets] {
    pthread_setname_np(pthread_self(), "loader");
    assets.Load();
  });
  assets.Use();
  loader.join();
}

}  // namespace game
