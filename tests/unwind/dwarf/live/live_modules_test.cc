// Live stacks while modules are loaded and unloaded: unknown or unloaded code ends a walk and never misleads it.
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"
#include "perfkit/live_unwinder.h"
#include "src/unwind/dwarf/live/live_tables.h"
#include "tests/support/bearable.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/live_text.h"
#include "tests/unwind/dwarf/live/stack_ends.h"

namespace perfkit {
namespace {

// Calls back, over a frame of `room` bytes.
std::string CallerText(int room) {
  const std::string size = std::to_string(room);
  return "int CallBack(void (*f)(void)) { volatile char room[" + size + "]; room[0] = 1; f(); return room[0]; }\n";
}

class Plugin {
 public:
  explicit Plugin(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Plugin() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  using CallBack = int (*)(void (*)());
  CallBack call_back() const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<CallBack>(dlsym(handle_, "CallBack"));
  }

 private:
  void* handle_;
};

LiveUnwinder* plugin_unwinder = nullptr;
std::array<StackFrame, 128> plugin_frames;
UnwoundStack plugin_stack;

[[gnu::noinline]] void LookFromPlugin() {
  plugin_stack = plugin_unwinder->CurrentStack(plugin_frames);
  asm volatile("" ::: "memory");
}

unwind::LiveTables* plugin_tables = nullptr;

[[gnu::noinline]] void LookByTables() {
  ucontext_t here;
  getcontext(&here);
  plugin_stack = plugin_tables->Walk(here, plugin_frames);
  asm volatile("" ::: "memory");
}

UnwoundStack LookThrough(const Plugin& plugin) {
  plugin.call_back()(LookFromPlugin);
  return plugin_stack;
}

// Two libraries of the same size, in files of their own. The second one has a larger stack frame.
class TwoPlugins {
 public:
  explicit TwoPlugins(const std::string& options) {
    const int rooms[] = {40, 104};
    for (int i = 0; i < 2; ++i) {
      folder_.Write("/plugin.c", CallerText(rooms[i]));
      const std::string command = "cc -O1 -shared -fPIC " + options + " " + folder_.path() + "/plugin.c -o " + path(i);
      ok_ &= testing::RunCommand(command).exit_code == 0;
    }
  }
  bool ok() const { return ok_; }
  std::string path(int i) const { return folder_.path() + "/plugin" + std::to_string(i) + ".so"; }

 private:
  testing::TempFolder folder_;
  bool ok_ = true;
};

void CheckReplaced(const std::string& options) {
  const TwoPlugins plugins(options);
  if (!plugins.ok()) SKIP_TEST("there is no compiler here");
  LiveUnwinder unwinder;
  plugin_unwinder = &unwinder;
  uint64_t first_place = 0;
  uint32_t known = 0;
  {
    const Plugin first(plugins.path(0));
    REQUIRE(first.call_back() != nullptr);
    first_place = reinterpret_cast<uint64_t>(first.call_back());
    CHECK(LookThrough(first).end == StackEnd::kNoMapping);  // not known yet
    known = plugin_stack.frames;
    CHECK(known >= 1);
    REQUIRE(unwinder.Maintain().ok());
    CHECK(LookThrough(first).complete());
    CHECK(plugin_stack.frames > known + 2);
  }
  const Plugin second(plugins.path(1));
  REQUIRE(second.call_back() != nullptr);
  const bool same_place = reinterpret_cast<uint64_t>(second.call_back()) == first_place;
  INFO("at the same place: " << same_place);
  if (!testing::kSanitized) CHECK(same_place);  // else this tests less than it should
  CHECK(LookThrough(second).end == StackEnd::kNoMapping);
  CHECK(plugin_stack.frames == known);  // by the first one's rules it would be one more, and a wrong one
  CHECK(plugin_stack.guesses == 0);
  REQUIRE(unwinder.Maintain().ok());
  CHECK(LookThrough(second).complete());
  REQUIRE(unwinder.Maintain().ok());
  CHECK(unwinder.stats().retired == 0);
}

TEST_CASE("a module in the place of another one is not walked by the other one's rules", "[live]") {
  CheckReplaced("-Wl,--build-id=sha1");
  CheckReplaced("-Wl,--build-id=none");
}

TEST_CASE("brief maintenance leaves modules for later, and walks that come to them say so", "[live]") {
  const TwoPlugins plugins("");
  if (!plugins.ok()) SKIP_TEST("there is no compiler here");
  const Plugin plugin(plugins.path(0));
  REQUIRE(plugin.call_back() != nullptr);
  unwind::LiveTables tables(0);
  plugin_tables = &tables;
  const auto look = [&] { return (void)plugin.call_back()(LookByTables), plugin_stack; };
  REQUIRE(tables.MaintainBriefly().ok());
  LookByTables();
  // The program and its C library are ready. That one is found by its dl_iterate_phdr, which sanitizers replace.
  if (!testing::kSanitized) CHECK(plugin_stack.complete());
  CHECK(look().end == StackEnd::kNotReady);
  CHECK(plugin_stack.guesses == 0);
  const uint32_t known = plugin_stack.frames;
  const LiveStats early = tables.stats();
  CHECK(early.not_ready >= 1);
  REQUIRE(tables.MaintainBriefly().ok());
  CHECK(look().end == StackEnd::kNotReady);
  REQUIRE(tables.Maintain().ok());
  CHECK(look().complete());
  CHECK(plugin_stack.frames > known);
  const LiveStats late = tables.stats();
  CHECK(late.not_ready == 0);
  CHECK(late.modules == early.modules);
  CHECK(late.changes == early.changes);
  const Plugin second(plugins.path(1));
  REQUIRE(second.call_back() != nullptr);
  REQUIRE(tables.MaintainBriefly().ok());
  CHECK(tables.stats().not_ready == 1);  // ready ones stay ready
  CHECK(look().complete());
}

TEST_CASE("a module whose file is gone is walked by what is in memory", "[live]") {
  std::optional<TwoPlugins> plugins;
  plugins.emplace("");
  if (!plugins->ok()) SKIP_TEST("there is no compiler here");
  const Plugin plugin(plugins->path(0));
  REQUIRE(plugin.call_back() != nullptr);
  plugins.reset();
  LiveUnwinder unwinder;
  plugin_unwinder = &unwinder;
  CHECK(LookThrough(plugin).complete());
}

TEST_CASE("without .eh_frame it is the file's .debug_frame", "[live]") {
  const TwoPlugins plugins("-g -fno-asynchronous-unwind-tables -fno-unwind-tables -Wl,--build-id=sha1 -nostdlib");
  if (!plugins.ok()) SKIP_TEST("there is no compiler here");
  const Plugin plugin(plugins.path(0));
  REQUIRE(plugin.call_back() != nullptr);
  LiveUnwinder unwinder;
  plugin_unwinder = &unwinder;
  CHECK(LookThrough(plugin).complete());
}

// Walked in handlers of a timer's signals.
LiveUnwinder* storm_unwinder = nullptr;
std::atomic<uint64_t> storm_walks{0}, storm_ends[testing::kStackEnds];

void OnStormSignal(int, siginfo_t*, void* context) {
  std::array<StackFrame, 100> frames;
  const int kept = errno;
  const UnwoundStack stack = storm_unwinder->InterruptedStack(context, frames);
  storm_ends[static_cast<size_t>(stack.end)].fetch_add(1, std::memory_order_relaxed);
  storm_walks.fetch_add(1, std::memory_order_relaxed);
  if (errno != kept) std::abort();
}

// A signal every N nanoseconds, to one thread, or to any that does not block it.
class StormTimer {
 public:
  StormTimer(int signal, long ns, pid_t tid) {
    sigevent event{};
    event.sigev_signo = signal;
    event.sigev_notify = tid == 0 ? SIGEV_SIGNAL : SIGEV_THREAD_ID;
    event._sigev_un._tid = tid;
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const itimerspec each{{0, ns}, {0, ns}};
    timer_settime(timer_, 0, &each, nullptr);
  }
  ~StormTimer() { timer_delete(timer_); }
  StormTimer(const StormTimer&) = delete;
  StormTimer& operator=(const StormTimer&) = delete;

 private:
  timer_t timer_{};
};

[[gnu::noinline]] uint64_t StormDive(int depth) {
  volatile char room[60] = {};
  if (depth == 0) return testing::Spin(300);
  return StormDive(depth - 1) + static_cast<uint64_t>(room[depth]);
}

int CompareInStorm(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }

void WorkInStorm(uint64_t round) {
  StormDive(static_cast<int>(round % 40));
  int numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = i * 7919 % 64;
  qsort(numbers, 64, sizeof(int), CompareInStorm);
  try {
    if (round % 8 == 0) throw 1;
  } catch (int) {
  }
  free(malloc(round % 5000));
}

// Modules come and go, threads too, exceptions are thrown.
class StormWeather {
 public:
  // What `prepare` makes of a loop's number is kept by its thread.
  template <class Prepare>
  StormWeather(const TwoPlugins& plugins, Prepare prepare) {
    Loop(0, prepare, [](uint64_t round) { WorkInStorm(round); });
    Loop(1, prepare, [&plugins](uint64_t round) {
      const Plugin plugin(plugins.path(static_cast<int>(round % 2)));
      if (plugin.call_back() != nullptr) plugin.call_back()([] { testing::Spin(1000); });
    });
    Loop(kLoopOfThreads, prepare, [](uint64_t) { std::thread([] { WorkInStorm(8); }).join(); });
  }
  ~StormWeather() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  static constexpr int kLoopOfThreads = 2;

 private:
  template <class Prepare, class Body>
  void Loop(int number, Prepare prepare, Body body) {
    threads_.emplace_back([this, number, prepare, body] {
      [[maybe_unused]] const auto kept = prepare(number);
      for (uint64_t round = 0; !stop_; ++round) body(round);
    });
  }

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// The duration of a storm: until enough stacks were taken, on a machine of any speed.
struct StormSize {
  uint64_t stacks, changes;
};
constexpr StormSize kShortStorm{2'000, 40}, kLongStorm{500'000, 10'000};
constexpr auto kLongestStorm = std::chrono::minutes(5);  // If no stacks come.

// All of it is walked, until there is as much as `size` says.
void Storm(LiveUnwinder& unwinder, const TwoPlugins& plugins, StormSize size) {
  storm_unwinder = &unwinder;
  storm_walks = 0;
  for (auto& end : storm_ends) end = 0;
  struct sigaction action = {}, before[2] = {};
  action.sa_sigaction = OnStormSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, &before[0]);
  sigaction(SIGUSR2, &action, &before[1]);
  sigset_t any, old;
  sigemptyset(&any);
  sigaddset(&any, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &any, &old);  // of all threads but one, and those that it makes
  const long each_ns = 1'000'000'000 / static_cast<long>(testing::Bearable(10'000));
  const auto set_timer = [&any, each_ns](int loop) {
    if (loop == StormWeather::kLoopOfThreads) pthread_sigmask(SIG_UNBLOCK, &any, nullptr);
    return StormTimer(SIGUSR1, each_ns, static_cast<pid_t>(syscall(SYS_gettid)));
  };
  {
    const StormTimer timer(SIGUSR2, each_ns, 0);
    const StormWeather weather(plugins, set_timer);
    const auto end = std::chrono::steady_clock::now() + kLongestStorm;
    const auto is_over = [&] { return storm_walks >= size.stacks && unwinder.stats().changes >= size.changes; };
    while (!is_over() && std::chrono::steady_clock::now() < end) {
      (void)unwinder.Maintain();
      testing::Sleep(200'000);
    }
  }
  // Signals may still be under way: they are dropped then.
  testing::Sleep(10'000'000);
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  for (const int signal : {SIGUSR1, SIGUSR2}) sigaction(signal, &ignored, nullptr);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  sigaction(SIGUSR1, &before[0], nullptr);
  sigaction(SIGUSR2, &before[1], nullptr);
  (void)unwinder.Maintain();
  (void)unwinder.Maintain();
}

void CheckStorm(StormSize size) {
  if (testing::kSanitized) SKIP_TEST("a signal may come while a sanitizer holds its locks");
  const TwoPlugins plugins("");
  if (!plugins.ok()) SKIP_TEST("there is no compiler here");
  LiveUnwinder unwinder;
  Storm(unwinder, plugins, size);
  const auto count = [](StackEnd end) { return storm_ends[static_cast<size_t>(end)].load(); };
  std::string ends;
  for (size_t i = 0; i < testing::kStackEnds; ++i)
    ends += std::string(StackEndName(static_cast<StackEnd>(i))) + " " + std::to_string(storm_ends[i]) + ", ";
  const LiveStats stats = unwinder.stats();
  INFO(storm_walks << " walks: " << ends << stats.changes << " changes, " << stats.retired << " retired");
  CHECK(storm_walks >= size.stacks);
  CHECK(stats.changes >= size.changes);
  CHECK(stats.retired == 0);
  // Only a plugin that is not known yet may end a walk.
  CHECK(count(StackEnd::kRoot) + count(StackEnd::kNoMapping) + count(StackEnd::kNoInfo) >= storm_walks * 999 / 1000);
  CHECK(count(StackEnd::kRoot) * 10 >= storm_walks * 5);
}

TEST_CASE("a storm of modules and threads, walked at 10 kHz", "[live][storm][law]") { CheckStorm(kShortStorm); }
TEST_CASE("a long storm of modules and threads", "[.heavy][law]") { CheckStorm(kLongStorm); }

// The same storm, with a sampler's own signals: Drain keeps the tables up to date.
void CheckSampledStorm(StormSize size) {
  if (testing::kSanitized) SKIP_TEST("a signal may come while a sanitizer holds its locks");
  const TwoPlugins plugins("");
  if (!plugins.ok()) SKIP_TEST("there is no compiler here");
  SamplerOptions options;
  options.events = {{.event = "cpu-clock", .rate = Frequency{testing::Bearable(10'000)}}};
  options.user_only = true;
  options.stack = CallStack::Live(LiveStacks);
  auto sampler = Sampler::Open(options, Target::AllThreads());
  INFO(sampler.status());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  uint64_t stacks = 0, whole = 0, unknown = 0;
  const auto drain = [&] {
    return sampler->Drain([&](const SamplerRecord& record) {
      const auto stack = LiveStack::Parse(record, sampler->layout());
      if (!stack) return;
      ++stacks;
      whole += stack->end == StackEnd::kRoot;
      unknown += stack->end == StackEnd::kNoMapping || stack->end == StackEnd::kNoInfo;
    });
  };
  {
    const StormWeather weather(plugins, [](int) { return 0; });
    const auto end = std::chrono::steady_clock::now() + kLongestStorm;
    while (stacks < size.stacks && std::chrono::steady_clock::now() < end) {
      drain();
      testing::Sleep(1'000'000);
    }
  }
  REQUIRE(sampler->Stop().ok());
  while (drain() > 0) {
  }
  const EventAccounting accounting = sampler->stats().events[0];
  INFO(stacks << " stacks, " << whole << " whole, " << unknown << " into modules that were not known yet");
  CHECK(stacks >= size.stacks);
  CHECK(stacks == accounting.stacks.delivered);
  CHECK(accounting.stacks.accounted() == accounting.accounted());
  CHECK(whole + unknown >= stacks * 999 / 1000);
  CHECK(whole * 10 >= stacks * 5);
}

TEST_CASE("a storm of modules and threads, sampled with live stacks at 10 kHz", "[live][storm][law]") {
  CheckSampledStorm(kShortStorm);
}
TEST_CASE("a long storm of modules and threads, sampled with live stacks", "[.heavy][law]") {
  CheckSampledStorm(kLongStorm);
}

}  // namespace
}  // namespace perfkit
