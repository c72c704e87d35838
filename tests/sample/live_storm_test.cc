// Live stacks at 10 kHz while a program does everything at once that signals can break. The handler must not allocate
// or lock.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include <mutex>
#include <stdexcept>

#include "src/base/sanitizers.h"
#include "tests/sample/live_support.h"
#include "tests/support/skip.h"

// Whether this thread is in a handler of SIGTRAP, and what it called there. For handlers: not instrumented, no library.
namespace {
thread_local volatile bool t_in_handler = false;
uint64_t g_calls_in_handler = 0, g_mallocs = 0, g_locks = 0;

[[maybe_unused]] PERFKIT_IN_HANDLER void Note(uint64_t& all) {
  __atomic_add_fetch(&all, 1, __ATOMIC_RELAXED);
  if (t_in_handler) __atomic_add_fetch(&g_calls_in_handler, 1, __ATOMIC_RELAXED);
}
}  // namespace

#if defined(__GLIBC__) && !PERFKIT_SANITIZED
#define PERFKIT_INTERPOSED 1
extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* memory, size_t size);
extern "C" void __libc_free(void* memory);

extern "C" void* malloc(size_t size) { return Note(g_mallocs), __libc_malloc(size); }
extern "C" void* calloc(size_t count, size_t size) { return Note(g_mallocs), __libc_calloc(count, size); }
extern "C" void* realloc(void* memory, size_t size) { return Note(g_mallocs), __libc_realloc(memory, size); }
extern "C" void free(void* memory) { Note(g_mallocs), __libc_free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static int (*lock)(pthread_mutex_t*);
  if (lock == nullptr) lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return Note(g_locks), lock(mutex);
}
#else
#define PERFKIT_INTERPOSED 0
#endif

namespace perfkit {
namespace {

using testing::DrainInto;
using testing::FrameWalker;
using testing::HandlerAround;
using testing::LiveOptions;
using testing::LiveTally;

// Notes when the handler runs.
PERFKIT_IN_HANDLER void Around(int signal, siginfo_t* info, void* registers) {
  t_in_handler = true;
  HandlerAround::Within(signal, info, registers);
  t_in_handler = false;
}

TEST_CASE("the handler calls no allocator and takes no lock", "[live][storm][law]") {
  if (PERFKIT_INTERPOSED == 0) SKIP_TEST("a sanitizer has the allocator, or this is not glibc");
  const uint64_t before = __atomic_load_n(&g_mallocs, __ATOMIC_RELAXED) + __atomic_load_n(&g_locks, __ATOMIC_RELAXED);
  auto sampler = Sampler::Open(LiveOptions(testing::Bearable(10'000), FrameWalker::Make), Target::AllThreads());
  REQUIRE(sampler.ok());
  const HandlerAround watch(Around);
  REQUIRE(sampler->Start().ok());
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + 100'000'000;
      while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until) {
        for (size_t size = 1; size < 1000; size += 7) {
          std::vector<char> memory(size);
          asm volatile("" : : "r"(memory.data()) : "memory");
          const std::lock_guard<std::mutex> lock(mutex);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(sampler->Stop().ok());
  LiveTally tally;
  DrainInto(*sampler, tally);
  CHECK(tally.stacks > 500);
  CHECK(__atomic_load_n(&g_calls_in_handler, __ATOMIC_RELAXED) == 0);
  // The counts count.
  CHECK(__atomic_load_n(&g_mallocs, __ATOMIC_RELAXED) + __atomic_load_n(&g_locks, __ATOMIC_RELAXED) > before + 1000);
  t_in_handler = true;
  free(malloc(1));
  t_in_handler = false;
  CHECK(__atomic_exchange_n(&g_calls_in_handler, 0, __ATOMIC_RELAXED) == 2);
}

// The parts of the storm; each runs as long as it may.
struct Weather {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0}, failures{0};

  void Fail(bool failed) { failures += failed; }

  void Load() {
    for (const char* name : {"libresolv.so.2", "libBrokenLocale.so.1", "libthread_db.so.1", "libanl.so.1"}) {
      if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) dlclose(library);
    }
  }
  void Allocate() {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t size = 1; size < 300'000; size = size * 3 / 2 + 1) blocks.push_back(std::make_unique<char[]>(size));
  }
  void Fork() {
    const pid_t child = fork();
    if (child == 0) _exit(testing::Spin(100'000) == 0 ? 1 : 0);
    int status = 0;
    Fail(waitpid(child, &status, 0) != child || status != 0);
  }
  void Start() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { testing::Spin(50'000); });
    for (std::thread& thread : threads) thread.join();
  }
  [[gnu::noinline]] static void Throw(int levels) {
    if (levels == 0) throw std::runtime_error("storm");
    Throw(levels - 1);
    asm volatile("");
  }
  void Catch() {
    try {
      Throw(20);
      Fail(true);
    } catch (const std::runtime_error&) {
    }
  }
  void Jump() {
    static thread_local sigjmp_buf back;
    if (sigsetjmp(back, 1) != 0) return;
    struct sigaction act {};
    act.sa_handler = [](int) { siglongjmp(back, 1); };
    sigaction(SIGUSR2, &act, nullptr);
    pthread_kill(pthread_self(), SIGUSR2);
    Fail(true);
  }
  void Wait() {
    int pipes[2];
    if (pipe(pipes) != 0) return;
    std::thread writer([&] { Fail(write(pipes[1], "x", 1) != 1); });
    char byte = 0;
    Fail(read(pipes[0], &byte, 1) != 1);
    writer.join();
    close(pipes[0]), close(pipes[1]);
  }

  template <void (Weather::*kWhat)()>
  std::thread Blow() {
    return std::thread([this] {
      while (!stop) {
        (this->*kWhat)();
        testing::Spin(10'000);
        ++rounds;
      }
    });
  }
};

void LiveStorm(uint64_t seconds) {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks and jumps among threads");
  const uint64_t frequency = testing::Bearable(10'000);
  SamplerOptions options = LiveOptions(frequency, FrameWalker::Make);
  options.events.push_back({.event = "page-faults:u", .rate = Period{70'000 / frequency}});
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Weather weather;
  std::vector<std::thread> threads;
  threads.push_back(weather.Blow<&Weather::Load>());
  threads.push_back(weather.Blow<&Weather::Allocate>());
  threads.push_back(weather.Blow<&Weather::Start>());
  threads.push_back(weather.Blow<&Weather::Catch>());
  threads.push_back(weather.Blow<&Weather::Jump>());
  threads.push_back(weather.Blow<&Weather::Wait>());
  threads.push_back(weather.Blow<&Weather::Fork>());
  LiveTally tally;
  for (uint64_t i = 0; i < 10 * seconds || weather.rounds <= 50 || tally.stacks <= frequency / 10 * seconds; ++i) {
    testing::DrainFor(*sampler, tally, 100'000'000);
    // Samplers come and go beside it.
    if (i % 5 == 0) {
      auto other = Sampler::Open(LiveOptions(1000), Target::AllThreads());
      if (other.ok() && other->Start().ok()) testing::Sleep(2'000'000);
    }
  }
  weather.stop = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(sampler->Stop().ok());
  testing::DrainRest(*sampler, tally);
  const EventAccounting clock = testing::CheckStackAccounting(*sampler, 0),
                        faults = testing::CheckStackAccounting(*sampler, 1);
  std::printf("storm at %llu Hz: %llu rounds, %llu samples, %llu stacks, %llu paired; coalesced %llu and %llu, "
              "no ring %llu\n",
              static_cast<unsigned long long>(frequency),
              static_cast<unsigned long long>(weather.rounds), static_cast<unsigned long long>(tally.samples),
              static_cast<unsigned long long>(tally.stacks), static_cast<unsigned long long>(tally.paired),
              static_cast<unsigned long long>(clock.stacks.coalesced),
              static_cast<unsigned long long>(faults.stacks.coalesced),
              static_cast<unsigned long long>(clock.stacks.no_ring));
  CHECK(weather.failures == 0);
  CHECK(tally.early == 0);
  CHECK(tally.stacks == clock.stacks.delivered + faults.stacks.delivered);
}

// Slow: an emulated CPU does not get to the end of its seconds.
TEST_CASE("a storm of libraries, threads, forks, jumps and exceptions is sampled", "[live][storm][slow][law]") {
  LiveStorm(2);
}

TEST_CASE("a storm of two minutes is sampled", "[.heavy][law]") { LiveStorm(120); }

}  // namespace
}  // namespace perfkit
