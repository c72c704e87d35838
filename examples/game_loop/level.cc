// The hitches are provoked, not faked: the kernel does what it does to every game, and perfkit has to find out.
#include "level.h"

#include <sys/mman.h>

#include <cstdint>
#include <future>
#include <thread>

namespace game {

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
  std::promise<void> ready;
  std::future<void> waiting = ready.get_future();
  std::thread loader([&ready, time] {
    std::this_thread::sleep_for(time);  // the disk
    ready.set_value();
  });
  waiting.get();
  loader.join();
}

}  // namespace game
