// A handler counts itself in before it reads the words; Remove clears a word before it reads that count. All four
// accesses are sequentially consistent, so one of the two sees the other: either the handler does not find the
// descriptor, or Remove waits for it.
#include "src/sample/signal_switches.h"

#include <time.h>

#include "src/sys/handler_calls.h"

namespace perfkit::sample {

PERFKIT_IN_HANDLER void SignalSwitches::SwitchOff(uint32_t number) {
  __atomic_add_fetch(&switching_, 1, __ATOMIC_SEQ_CST);
  for (size_t block = 0; block < kBlocks; ++block) {
    // Acquire pairs with the release in Add: the words of a new block are 0.
    const uint64_t* const words = __atomic_load_n(&words_[block], __ATOMIC_ACQUIRE);
    if (words == nullptr) break;
    for (size_t i = 0; i < kBlockWords; ++i) {
      const uint64_t word = __atomic_load_n(&words[i], __ATOMIC_SEQ_CST);
      if (word != 0 && word >> 32 == number) sys::HandlerDisableEvent(static_cast<int>(word & 0xffff'ffff) - 1);
    }
  }
  // Release pairs with the load in Remove: no descriptor is used any more.
  __atomic_sub_fetch(&switching_, 1, __ATOMIC_RELEASE);
}

size_t SignalSwitches::Add(uint32_t number, int fd) {
  if (free_.empty()) {
    if (blocks_.size() == kBlocks) return kNone;
    const size_t first = blocks_.size() * kBlockWords;
    blocks_.push_back(std::make_unique<uint64_t[]>(kBlockWords));
    free_.reserve(blocks_.size() * kBlockWords);  // For Remove.
    for (size_t i = kBlockWords; i > 0; --i) free_.push_back(first + i - 1);
    __atomic_store_n(&words_[blocks_.size() - 1], blocks_.back().get(), __ATOMIC_RELEASE);
  }
  const size_t at = free_.back();
  free_.pop_back();
  __atomic_store_n(&WordAt(at), uint64_t{number} << 32 | static_cast<uint32_t>(fd + 1), __ATOMIC_SEQ_CST);
  return at;
}

bool SignalSwitches::Remove(size_t at) {
  __atomic_store_n(&WordAt(at), 0, __ATOMIC_SEQ_CST);
  free_.push_back(at);
  for (int i = 0; i < 10'000; ++i) {
    if (__atomic_load_n(&switching_, __ATOMIC_SEQ_CST) == 0) return true;
    const timespec pause{0, 100'000};
    sys::kernel().nanosleep(&pause);
  }
  return false;
}

void SignallingFd::AddTo(SignalSwitches& switches, uint32_t number) {
  at_ = switches.Add(number, fd_.get());
  switches_ = at_ == SignalSwitches::kNone ? nullptr : &switches;
}

void SignallingFd::Reset() {
  SignalSwitches* const switches = std::exchange(switches_, nullptr);
  if (switches != nullptr && !switches->Remove(at_)) (void)fd_.Release();
  fd_.Reset();
}

}  // namespace perfkit::sample
