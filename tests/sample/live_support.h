// Shared by the tests of live stacks: walkers without tables, threads to be sampled, and a tally of a drain.
#pragma once

#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"
#include "src/base/in_handler.h"
#include "src/unwind/live_walker.h"
#include "tests/sample/support.h"
#include "tests/support/bearable.h"

namespace perfkit::testing {

struct Interrupted {
  uint64_t pc = 0, fp = 0, sp = 0;

  PERFKIT_IN_HANDLER static Interrupted Of(const ucontext_t& context) {
#if defined(__x86_64__)
    const auto& registers = context.uc_mcontext.gregs;
    return {static_cast<uint64_t>(registers[REG_RIP]), static_cast<uint64_t>(registers[REG_RBP]),
            static_cast<uint64_t>(registers[REG_RSP])};
#elif defined(__aarch64__)
    return {context.uc_mcontext.pc, context.uc_mcontext.regs[29], context.uc_mcontext.sp};
#endif
  }
};

// The two words of a span: its members are functions, which a sanitizer sees, and must not where a thread is being
// born.
struct Room {
  StackFrame* first;
  size_t size;

  PERFKIT_IN_HANDLER static Room Of(const std::span<StackFrame>& frames) {
    static_assert(sizeof(frames) == sizeof(Room));
    Room room;
    __builtin_memcpy(&room, &frames, sizeof(room));
    return room;
  }
};

// While it lives, a handler of SIGTRAP runs around perfkit's: it calls Within. One at a time.
class HandlerAround {
 public:
  explicit HandlerAround(void (*handler)(int signal, siginfo_t* info, void* registers)) {
    sigaction(SIGTRAP, nullptr, &within_);
    struct sigaction around = within_;
    around.sa_sigaction = handler;
    sigaction(SIGTRAP, &around, nullptr);
  }
  ~HandlerAround() { sigaction(SIGTRAP, &within_, nullptr); }

  PERFKIT_IN_HANDLER static void Within(int signal, siginfo_t* info, void* registers) {
    within_.sa_sigaction(signal, info, registers);
  }

 private:
  static inline struct sigaction within_ = {};
};

// Returns the interrupted frame only.
class FlatWalker : public unwind::LiveWalker {
 public:
  absl::Status Maintain() override { return absl::OkStatus(); }
  PERFKIT_IN_HANDLER UnwoundStack Walk(const ucontext_t& context, std::span<StackFrame> frames) noexcept override {
    StackFrame* const first = Room::Of(frames).first;
    first->pc = Interrupted::Of(context).pc;
    first->is_return_address = first->is_guess = false;
    return {.frames = 1, .guesses = 0, .end = StackEnd::kRoot};
  }

  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<FlatWalker>(); }
};

// Follows frame pointers to any address: the kernel reads for it.
class FrameWalker : public FlatWalker {
 public:
  PERFKIT_IN_HANDLER UnwoundStack Walk(const ucontext_t& context, std::span<StackFrame> frames) noexcept override {
    const Interrupted at = Interrupted::Of(context);
    const Room room = Room::Of(frames);
    StackFrame* const out = room.first;
    const auto most = static_cast<uint32_t>(room.size);
    out[0].pc = at.pc;
    out[0].is_return_address = out[0].is_guess = false;
    uint64_t fp = at.fp, record[2];
    uint32_t n = 1;
    for (; n < most && Read(fp, record); ++n) {
      out[n].pc = record[1];
      out[n].is_return_address = out[n].is_guess = true;
      if (record[0] <= fp || record[1] == 0) return {.frames = n, .guesses = n - 1, .end = StackEnd::kRoot};
      fp = record[0];
    }
    return {.frames = n, .guesses = n - 1, .end = n == most ? StackEnd::kLimit : StackEnd::kUnreadable};
  }

  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<FrameWalker>(); }

 private:
  PERFKIT_IN_HANDLER static bool Read(uint64_t address, uint64_t (&record)[2]) {
    iovec to{record, sizeof(record)}, from{reinterpret_cast<void*>(address), sizeof(record)};
    // The last argument is on the stack, where an int would leave the upper half of its word as it was.
    return syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) == sizeof(record);
  }
};

inline SamplerOptions LiveOptions(uint64_t hz, std::unique_ptr<unwind::LiveWalker> (*stacks)() = FlatWalker::Make) {
  SamplerOptions options;
  options.events = {{.event = "cpu-clock", .rate = Frequency{hz}}};
  options.user_only = true;
  options.stack = CallStack::Live(stacks);
  return options;
}

// Instructions that are all different: two samples of the same one are of one moment, or one time in 2,000.
inline void Wander() { asm volatile(".rept 2000\n nop\n .endr"); }

// Threads that compute until they are stopped. Waits until all have begun, because libc blocks their signals until
// then.
class Spinners {
 public:
  explicit Spinners(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        ++begun_;
        while (!stop_) Wander();
      });
    }
    while (begun_ < count) Sleep(100'000);
  }
  ~Spinners() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::atomic<int> begun_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Samples and stacks in the order of their arrival, and which belong together.
struct LiveTally {
  struct Last {
    uint64_t ip = 0, time_ns = 0;
    bool user = false, has_stack = true;
  };
  uint64_t samples = 0, stacks = 0;
  uint64_t paired = 0;     // stacks that are of the sample before them, by event, thread and pc
  uint64_t in_kernel = 0;  // that are of samples of the kernel's part
  uint64_t orphans = 0;    // whose sample was lost, or came from within the handler
  uint64_t twins = 0;      // samples of one interrupt: it came late, the next one was due, and one signal is for both
  uint64_t early = 0;      // whose time is before their sample's
  uint64_t disorder = 0;   // records of an earlier time than one before
  uint64_t last_time_ns = 0;
  std::map<std::pair<uint32_t, uint32_t>, Last> last;  // by event and thread
  std::map<uint32_t, uint64_t> by_thread;              // samples

  void Take(const SamplerRecord& record, const SampleLayout& layout) {
    const uint64_t time = layout.TimeOf(record).value_or(last_time_ns);
    disorder += time < last_time_ns;
    last_time_ns = std::max(last_time_ns, time);
    const bool fine = Dispatch(record, layout,
                               Overloaded{[&](const Sample& sample) { TakeSample(record.event, sample); },
                                          [&](const LiveStack& stack) { TakeStack(stack); }});
    CHECK(fine);
  }

  void TakeSample(uint32_t event, const Sample& sample) {
    ++samples;
    ++by_thread[sample.task()->tid];
    Last& of = last[{event, sample.task()->tid}];
    const Last now{*sample.ip(), *sample.time_ns(), sample.cpu_mode() == CpuMode::kUser, false};
    twins += !of.has_stack && of.ip == now.ip;
    of = now;
  }

  void TakeStack(const LiveStack& stack) {
    ++stacks;
    CHECK(stack.pid == static_cast<uint32_t>(getpid()));
    REQUIRE(stack.size() > 0);
    Last& of = last[{stack.event, stack.tid}];
    early += stack.time_ns < of.time_ns;
    if (of.has_stack || (of.user && of.ip != stack[0].pc)) {
      ++orphans;
    } else {
      of.user ? ++paired : ++in_kernel;
    }
    of.has_stack = true;
  }
};

inline size_t DrainInto(Sampler& sampler, LiveTally& tally) {
  return sampler.Drain([&](const SamplerRecord& record) { tally.Take(record, sampler.layout()); });
}

// Drains now and then for a while. How long beyond 40 ms it took to come to the next drain, in all.
inline uint64_t DrainFor(Sampler& sampler, LiveTally& tally, uint64_t ns) {
  uint64_t last = NowNs(), late = 0;
  const uint64_t until = last + ns;
  while (NowNs() < until) {
    Sleep(5'000'000);
    DrainInto(sampler, tally);
    const uint64_t now = NowNs();
    late += now - last > 40'000'000 ? now - last - 40'000'000 : 0;
    last = now;
  }
  return late;
}

// The same for at least so long, and until `is_enough` returns true, however long that takes.
template <class IsEnough>
void DrainUntil(Sampler& sampler, LiveTally& tally, uint64_t ns, IsEnough&& is_enough) {
  DrainFor(sampler, tally, ns);
  while (!is_enough()) DrainFor(sampler, tally, 10'000'000);
}

// All that is left, once the sampler has stopped.
inline void DrainRest(Sampler& sampler, LiveTally& tally) {
  while (DrainInto(sampler, tally) > 0) {
  }
}

// Each sample of the kernel is delivered or in the accounting, and so is its stack.
inline EventAccounting CheckStackAccounting(Sampler& sampler, size_t event = 0) {
  const EventAccounting accounting = sampler.stats().events[event];
  const StackAccounting& stacks = accounting.stacks;
  INFO("samples " << accounting.delivered << ", lost " << accounting.lost << ", duplicates " << accounting.duplicates
                  << ", paused " << accounting.paused << "; stacks " << stacks.delivered << ", duplicates "
                  << stacks.duplicates << ", stale " << stacks.stale << ", walk limit " << stacks.walk_limit
                  << ", no ring " << stacks.no_ring << ", ring full " << stacks.ring_full << ", paused "
                  << stacks.paused << ", given up " << stacks.given_up << ", coalesced " << stacks.coalesced);
  CHECK(stacks.accounted() == accounting.accounted());
  return accounting;
}

}  // namespace perfkit::testing
