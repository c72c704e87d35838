// Samples of hardware events: one for each period, at the right address, with the values of its followers.
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "src/event/attr.h"
#include "src/open/open_event.h"
#include "src/sys/kernel.h"
#include "tests/pmu/samples.h"

namespace perfkit {
namespace {

using testing::Every;
using testing::ForEachSample;
using testing::IsIn;
using testing::kLoopInstructions;
using testing::kSampledRounds;
using testing::Loop;
using testing::Sampled;

TEST_CASE("each period of an event gives one sample", "[sampling]") {
  NEED_EXACT_PMU();
  // QEMU 7.2 notices that a counter of instructions has gone over only when some timer of the machine fires: at its
  // ticks, 4 ms apart, or when the counter of cycles, which has such a timer, goes over. So a period below a tick would
  // lose samples there, unless cycles are sampled at the same pace.
  const uint64_t kPer = testing::CyclesPerInstruction();
  struct Case {
    std::vector<const char*> events;
    std::vector<uint64_t> per, periods;
  };
  const Case kCases[] = {
      {{"cycles:u"}, {kPer}, {10'000 * kPer}},
      {{"instructions:u"}, {1}, {100'000}},
      {{"instructions:u", "cycles:u"}, {1, kPer}, {10'000, 10'000 * kPer}},
  };
  for (const Case& c : kCases) {
    CAPTURE(c.events.size(), c.events[0]);
    SamplerOptions options = Every(c.events[0], c.periods[0]);
    if (c.events.size() > 1) options.events.push_back({.event = c.events[1], .rate = Period{c.periods[1]}});
    Sampler sampler = Sampled(options);
    uint64_t elsewhere = 0, all[2] = {};
    ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord& record) {
      ++all[record.event];
      elsewhere += IsIn(*sample.ip(), &Loop) ? 0 : 1;
    });
    for (size_t i = 0; i < c.events.size(); ++i) {
      const EventAccounting accounting = sampler.stats().events[i];
      CHECK(accounting.counted >= kSampledRounds * kLoopInstructions * c.per[i]);
      CHECK(all[i] == accounting.counted / c.periods[i]);
      CHECK(accounting.delivered == all[i]);
      CHECK(accounting.represented == all[i] * c.periods[i]);
      CHECK(accounting.lost == 0);
      CHECK(accounting.throttled == 0);
    }
    CHECK(elsewhere <= 4);
  }
}

TEST_CASE("followers are counted with each sample", "[sampling]") {
  NEED_EXACT_PMU();
  const uint64_t per = testing::CyclesPerInstruction(), period = 50'000 * per;
  SamplerOptions options = Every("cycles:u", period);
  options.events[0].followers = {"instructions:u"};
  Sampler sampler = Sampled(options);
  std::optional<uint64_t> cycles, instructions;
  uint64_t samples = 0;
  ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
    const std::optional<ReadValues> read = sample.read();
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 2);
    const uint64_t now_cycles = (*read)[0].value, now_instructions = (*read)[1].value;
    if (cycles) {
      CHECK(static_cast<double>(now_cycles - *cycles) == Approx(static_cast<double>(period)).epsilon(0.01));
      CHECK(static_cast<double>(now_instructions - *instructions) ==
            Approx(static_cast<double>(period / per)).epsilon(0.01));
    }
    cycles = now_cycles;
    instructions = now_instructions;
    ++samples;
  });
  CHECK(samples > 50);
}

// kernel.perf_event_max_sample_rate of the whole machine, put back when this dies. The kernel takes it only while it
// also limits the time that sampling takes, which it must not do here: a sample takes long by the machine's clock.
class MaxSamples {
 public:
  explicit MaxSamples(const char* per_second) : works_(Set(per_second)) {}
  ~MaxSamples() { Set("100000"); }
  bool works() const { return works_; }

 private:
  static bool Write(const char* name, std::string_view value) {
    FILE* const file = fopen((std::string("/proc/sys/kernel/") + name).c_str(), "w");
    if (file == nullptr) return false;
    const bool written = fwrite(value.data(), 1, value.size(), file) == value.size();
    return fclose(file) == 0 && written;
  }
  static bool Set(const char* per_second) {
    return Write("perf_cpu_time_max_percent", "99") && Write("perf_event_max_sample_rate", per_second) &&
           Write("perf_cpu_time_max_percent", "0");
  }
  bool works_;
};

// How many samples may come between two ticks depends on the kernel's HZ. What is above stops the event till the tick.
TEST_CASE("samples above the kernel's limit stop the event, which is told, and what was counted is accounted for",
          "[sampling]") {
  NEED_EXACT_PMU();
  if (geteuid() != 0) SKIP_TEST("needs root to set kernel.perf_event_max_sample_rate");
  const MaxSamples most("500");
  REQUIRE(most.works());
  const uint64_t per = testing::CyclesPerInstruction(), period = 5'000 * per;
  Sampler sampler = Sampled(Every("cycles:u", period));
  uint64_t samples = 0, throttled = 0, resumed = 0, stopped_ns = 0, last = 0;
  sampler.Drain([&](const SamplerRecord& record) {
    const auto count = [&](bool on, const ThrottleRecord& told) {
      CHECK(record.event == 0);
      CHECK(told.time_ns >= last);
      on ? ++resumed : ++throttled;
      if (on) stopped_ns += told.time_ns - last;
      last = told.time_ns;
    };
    Dispatch(record, sampler.layout(),
             Overloaded{[&](const Sample&) { ++samples; },
                        [&](const ThrottleRecord& told) {
                          count(record.type == static_cast<uint32_t>(RecordType::kUnthrottle), told);
                        }});
  });
  const EventAccounting accounting = sampler.stats().events[0];
  const uint64_t truth = kSampledRounds * kLoopInstructions * per;
  printf("%d samples, throttled %d times, %.0f %% counted; stopped for %.0f %% of the loop\n",
         static_cast<int>(samples), static_cast<int>(throttled),
         100 * static_cast<double>(accounting.counted) / static_cast<double>(truth),
         100 * static_cast<double>(stopped_ns) / static_cast<double>(truth));
  CHECK(throttled >= 10);
  CHECK(accounting.throttled == throttled);
  CHECK(resumed + 1 >= throttled);
  CHECK(resumed <= throttled);
  CHECK(accounting.delivered == samples);
  CHECK(accounting.lost == 0);
  // The law of docs/sampling.md holds of what was counted; while it is stopped, an event does not count.
  CHECK(accounting.represented == samples * period);
  CHECK(accounting.counted >= accounting.represented);
  CHECK(accounting.counted - accounting.represented < period);
  CHECK(accounting.counted < truth);
}

// Signals at samples. The sampler has none of them yet; the kernel does what its users will rely on.
volatile uint64_t signals_in_loop, signals_elsewhere, signals_of_others;
constexpr uint64_t kSignalData = 0x5eed;

void CountSignal(int, siginfo_t* info, void* context) {
  constexpr int kPerf = 6;            // TRAP_PERF
  constexpr size_t kDataAt = 8 + 16;  // si_perf_data: after the head and si_addr
  uint64_t data = 0;
  memcpy(&data, reinterpret_cast<const char*>(info) + kDataAt, sizeof(data));
  if (info->si_code != kPerf || data != kSignalData) signals_of_others = signals_of_others + 1;
  uint64_t pc = 0;
#if defined(__aarch64__)
  pc = static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  (void)context;
#endif
  if (IsIn(pc, &Loop))
    signals_in_loop = signals_in_loop + 1;
  else
    signals_elsewhere = signals_elsewhere + 1;
}

TEST_CASE("sigtrap signals each period, where it happened", "[sampling]") {
  NEED_EXACT_PMU();
  const uint64_t period = 10'000 * testing::CyclesPerInstruction();
  const absl::StatusOr<EventConfig> event = ParseEvent("cycles:u");
  REQUIRE(event.ok());
  open::OpenRequest request;
  request.attr = event::ToAttr(*event, event->parts.front());
  request.attr.sample_period_or_freq = period;
  request.attr.disabled = request.attr.sigtrap = request.attr.remove_on_exec = 1;
  request.attr.sig_data = kSignalData;
  const absl::StatusOr<open::OpenedEvent> opened = open::OpenEvent(request, sys::ReadRights());
  INFO(opened.status().ToString());
  REQUIRE(opened.ok());
  struct sigaction action {
  }, before{};
  action.sa_sigaction = CountSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  REQUIRE(sigaction(SIGTRAP, &action, &before) == 0);
  REQUIRE(sys::kernel().ioctl(opened->fd.get(), sys::kIocEnable, 0) == 0);
  Loop(kSampledRounds);
  REQUIRE(sys::kernel().ioctl(opened->fd.get(), sys::kIocDisable, 0) == 0);
  REQUIRE(sigaction(SIGTRAP, &before, nullptr) == 0);
  uint64_t counted = 0;
  REQUIRE(read(opened->fd.get(), &counted, sizeof(counted)) == sizeof(counted));
  CHECK(counted >= kSampledRounds * kLoopInstructions * testing::CyclesPerInstruction());
  CHECK(signals_in_loop + signals_elsewhere == counted / period);
  CHECK(signals_elsewhere <= 2);
  CHECK(signals_of_others == 0);
}

}  // namespace
}  // namespace perfkit
