// The public entries of the core, as an emulator of user programs (qemu-user) runs them: it has no perf_event_open, and
// its single steps are not exact. Each entry must give a number that can be true, or a reason. Prints what it got, and
// returns 1 if something is neither. A crash is a failure, too.
#include <perfkit/blocked_threads.h>
#include <perfkit/capabilities.h>
#include <perfkit/child.h>
#include <perfkit/counter.h>
#include <perfkit/format.h>
#include <perfkit/frame_counter.h>
#include <perfkit/measure.h>
#include <perfkit/sampler.h>
#include <perfkit/session.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace perfkit::event;

bool g_failed = false;

void Say(const char* entry, bool fine, const std::string& what) {
  g_failed |= !fine;
  std::printf("%s%s: %s\n", fine ? "" : "FAILED: ", entry, what.c_str());
  std::fflush(stdout);  // A crash must not hide it.
}

// What perf alone can do must be refused, with the call and the remedy.
void Refused(const char* entry, const absl::Status& status) {
  const std::string text = status.ToString();
  Say(entry, text.find("perf_event_open") != text.npos && text.find("Remedy: ") != text.npos, text);
}

// Writes to each of 64 new pages, and makes a system call: 64 faults or more.
void TouchPages() {
  constexpr size_t kBytes = 64 << 12;
  void* const pages = std::aligned_alloc(4096, kBytes);
  for (size_t i = 0; i < kBytes; i += 4096) static_cast<volatile char*>(pages)[i] = 1;
  std::free(pages);
}

// Loses no trap on a CPU; QEMU 7.2 loses those of `pause`.
void Pause() {
#if defined(__x86_64__)
  for (int i = 0; i < 10; ++i) __builtin_ia32_pause();
#endif
}

void Count() {
  const std::vector<perfkit::EventSpec> events = {"cycles", kTaskClock, kPageFaults, "context-switches"};
  auto set = perfkit::CounterSet::Open(events, perfkit::Target::ThisThread(), {.require_all = false});
  if (!set.ok()) return Say("CounterSet", false, set.status().ToString());
  perfkit::Snapshot begin, end;
  set->Read(begin);
  TouchPages();
  set->Read(end);
  for (size_t i = 0; i < set->size(); ++i) {
    const perfkit::Count count = set->Difference(begin, end, i);
    const std::string name(set->name(i));
    const bool hardware = name.starts_with("cycles");
    const bool fine = count.validity.counted() ? !hardware : !set->reason(i).ok();
    Say(name.c_str(), fine, count.validity.counted() ? std::to_string(count.value) : set->reason(i).ToString());
  }
  Refused("Counter of cycles", perfkit::Counter::Open("cycles").status());
  Refused("a set on all threads", perfkit::CounterSet::Open({"task-clock"}, perfkit::Target::AllThreads()).status());

  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}});
  {
    PERFKIT_ZONE(frames, "touch");
    TouchPages();
  }
  frames.Mark();
  Say("FrameCounter", !frames.zones().empty(), "\n" + frames.FormatZones());
}

void Measure() {
  const auto region = [] {
    Pause();
    TouchPages();
  };
  const perfkit::Measurement measured = perfkit::Measure(
      {kInstructions, kPageFaults, kTaskClock, kSyscalls, kAllocations, perfkit::Calls(&TouchPages)}, region);
  for (const perfkit::Cost& cost : measured.costs) {
    // The clock and the faults by getrusage; the stepper must not give a number that is exact on a CPU only.
    const bool counts = cost.event == kPageFaults || cost.event == kTaskClock;
    Say("Measure", counts ? cost.measured() : !cost.measured() && !cost.unmeasurable.empty(), cost.ToString());
  }
}

void Sample() {
  perfkit::SamplerOptions options;
  options.events = {{.event = "cpu-clock"}};
  Refused("Sampler", perfkit::Sampler::Open(options).status());
  Refused("Session", perfkit::Session::Start({}).status());
  Refused("Session as a flight recorder", perfkit::Session::Start({.mode = perfkit::RingMode::kOverwrite}).status());
  Refused("Session by wall time", perfkit::Session::Start({.clock = perfkit::SessionClock::kWall}).status());
}

void Look() {
  const perfkit::Capabilities all = perfkit::ProbeCapabilities();
  Say("ProbeCapabilities", !all.has(perfkit::CapabilityId::kPerf), "\n" + perfkit::FormatCapabilities(all));
  size_t events = 0, without_reason = 0;
  perfkit::ListEvents([&](const perfkit::EventInfo& event) {
    ++events;
    without_reason += !event.usable.ok() && event.cause.empty();
  });
  Say("ListEvents", events > 0 && without_reason == 0, std::to_string(events) + " events");
  // The thread waits by now, or not yet.
  static std::mutex mutex;
  mutex.lock();
  std::thread waits([] { const std::lock_guard lock(mutex); });
  const auto threads = perfkit::BlockedThreads();
  mutex.unlock();
  waits.join();
  Say("BlockedThreads", threads.ok() || !threads.status().message().empty(), threads.status().ToString());
  const auto child = perfkit::Child::Spawn({"/bin/true"});
  Say("Child", child.ok() || !child.status().message().empty(), child.status().ToString());
}

}  // namespace

int main() {
  Count();
  Measure();
  Sample();
  Look();
  if (!g_failed) std::puts("each entry gave a number or a reason");
  return g_failed ? 1 : 0;
}
