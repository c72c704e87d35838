// The cost of open counters at each context switch: two threads on one CPU pass a byte through pipes, with two switches
// in each round. Both threads have the same set. This is the price of being counted.
#include <sched.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "bench/support/events.h"

namespace bench {
namespace {

// What a thread has open while it is switched.
enum class Held { kNothing, kFast, kGroup, kClosed };

// Pins the calling thread to its current CPU.
class Pinned {
 public:
  Pinned() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Pinned() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

std::optional<perfkit::CounterSet> Hold(Held held) {
  if (held == Held::kNothing) return std::nullopt;
  auto set = perfkit::CounterSet::Open(Four(), perfkit::Target::ThisThread(),
                                       held == Held::kGroup ? GroupRead() : perfkit::CounterOptions{});
  if (!set.ok() || held == Held::kClosed) return std::nullopt;  // Closed here: off means detached.
  return *std::move(set);
}

// Sends back each byte until the other end is closed.
void Echo(int from, int to, Held held) {
  const auto set = Hold(held);
  char byte;
  while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1) {
  }
}

void Switches(benchmark::State& state, Held held) {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return state.SkipWithError("no pipe");
  const Pinned pinned;  // The other thread inherits it.
  std::thread partner(Echo, there[0], back[1], held);
  const auto set = Hold(held);
  if (!set.has_value() && (held == Held::kFast || held == Held::kGroup)) state.SkipWithError("the set does not open");
  char byte = 0;
  for (auto _ : state) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) state.SkipWithError("the partner is gone");
  }
  close(there[1]);
  partner.join();
  for (int fd : {there[0], back[0], back[1]}) close(fd);
}
BENCHMARK_CAPTURE(Switches, none, Held::kNothing)->Name("Switch/none");
BENCHMARK_CAPTURE(Switches, fast4, Held::kFast)->Name("Switch/fast4");
BENCHMARK_CAPTURE(Switches, group4, Held::kGroup)->Name("Switch/group4");
BENCHMARK_CAPTURE(Switches, off, Held::kClosed)->Name("Switch/off");

}  // namespace
}  // namespace bench
