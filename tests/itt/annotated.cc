// A program with ITT annotations that knows nothing of perfkit. It does what its first argument says, and ends.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/itt/static_part.h"
#include "tests/support/work.h"

namespace {

using perfkit::itt::Domain;
using perfkit::itt::Id;
using perfkit::itt::StringHandle;
using perfkit::testing::FreshPages;

perfkit::itt::StaticPart g_static;
const perfkit::itt::Calls& g_calls = g_static.calls;

Domain MakeDomain(const char* name) { return {.flags = 1, .name = name}; }
StringHandle MakeHandle(const char* text) { return {.text = text}; }

Domain g_domain = MakeDomain("app"), g_other_domain = MakeDomain("library");
StringHandle g_warm_up = MakeHandle("warm-up"), g_work = MakeHandle("work"), g_inner = MakeHandle("inner");

void Begin(StringHandle& name, Domain& domain = g_domain) {
  if (g_calls.task_begin != nullptr) g_calls.task_begin(&domain, {}, {}, &name);
}
void End(Domain& domain = g_domain) {
  if (g_calls.task_end != nullptr) g_calls.task_end(&domain);
}
void FrameBegin(Id* id = nullptr) {
  if (g_calls.frame_begin != nullptr) g_calls.frame_begin(&g_domain, id);
}
void FrameEnd(Id* id = nullptr) {
  if (g_calls.frame_end != nullptr) g_calls.frame_end(&g_domain, id);
}

// The first call of each function faults on its own code.
void WarmUp() {
  for (int i = 0; i < 3; ++i) {
    FrameBegin();
    Begin(g_warm_up);
    Begin(g_warm_up);
    End();
    End();
    FrameEnd();
  }
}

// 100 tasks "work" of 5 faults, each with two tasks "inner" of 3 faults in it.
void Plant() {
  FreshPages pages(1100);
  pages.Touch(0, 1100);
  pages.Forget();
  WarmUp();
  for (size_t i = 0; i < 100; ++i) {
    Begin(g_work);
    pages.Touch(11 * i, 5);
    for (size_t k = 0; k < 2; ++k) {
      Begin(g_inner);
      pages.Touch(11 * i + 5 + 3 * k, 3);
      End();
    }
    End();
  }
}

void Tasks(int count) {
  for (int i = 0; i < count; ++i) {
    Begin(g_work);
    End();
  }
}

void Threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      g_calls.thread_set_name(("worker " + std::to_string(t % 2)).c_str());
      Plant();
      if (t == 3) Begin(g_work);  // and ends with it
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Misuse() {
  End();  // without a begin
  Begin(g_work);
  std::thread([] { End(); }).join();  // on another thread
  Begin(g_inner, g_other_domain);
  Begin(g_inner);
  End(g_other_domain);  // with the other inside
  End();                // of "work", from outside of "inner"
  FrameBegin();
  Begin(g_work);
  FrameEnd();  // with a task inside
  End();       // which has ended already
}

void Frames() {
  for (unsigned long long i = 1; i <= 10; ++i) {
    Id id{i, 0, 0};
    FrameBegin(&id);
    Tasks(3);
    FrameEnd(&id);
  }
  const auto end = g_calls.get_timestamp();
  g_calls.frame_submit(&g_domain, nullptr, end - 2'000'000, end);
  g_calls.frame_submit(&g_domain, nullptr, end - 4'000'000, end);
  g_calls.frame_submit(&g_domain, nullptr, end, perfkit::itt::kNoTimestamp);
  g_calls.frame_submit(&g_domain, nullptr, 0, perfkit::itt::kNoTimestamp - 1);  // In 500 years.
}

void Overlapped() {
  for (unsigned long long i = 1; i <= 4; ++i) g_calls.task_begin_overlapped(&g_domain, {i, 0, 0}, {}, &g_work);
  std::thread([] {
    for (unsigned long long i = 1; i <= 5; ++i) {
      if (i != 2) g_calls.task_end_overlapped(&g_domain, {i, 0, 0});  // 5 was never begun, and 2 never ends
    }
  }).join();
}

void Pause() {
  g_calls.pause();
  Tasks(7);
  Begin(g_inner);
  g_calls.resume();
  Begin(g_work);
  End();  // of "work", which is counted
  End();  // of "inner", which is not
  Tasks(15);
}

void Fork() {
  Tasks(5);
  Begin(g_work);
  const pid_t child = fork();
  if (child == 0) {
    Tasks(100);
    End();
    g_calls.pause();
    std::thread([] { Tasks(100); }).join();
    std::exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0) std::abort();
  End();
}

// 80 tasks of each of 100 names, which all threads create as they need them, while the process forks.
void Storm() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        Domain* const domain = g_calls.domain_create("storm");
        Begin(*g_calls.string_handle_create(("name " + std::to_string(i % 100)).c_str()), *domain);
        End(*domain);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Domain* const domain = g_calls.domain_create(("child " + std::to_string(i)).c_str());
      Begin(*g_calls.string_handle_create("name 1"), *domain);
      End(*domain);
      std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) std::abort();
  }
  for (std::thread& thread : threads) thread.join();
}

[[gnu::noinline]] void SomeFunction() { asm volatile(""); }
void Functions() {
  for (int i = 0; i < 3; ++i) {
    g_calls.task_begin_fn(&g_domain, {}, {}, reinterpret_cast<void*>(&SomeFunction));
    End();
  }
}

// Begins in the folder of its start, and ends in another one.
void ChangeFolder() {
  Tasks(3);
  if (chdir("/") != 0) std::abort();
}

void Deep() {
  for (int i = 0; i < 100; ++i) Begin(g_work);
  for (int i = 0; i < 100; ++i) End();
  Tasks(1);
}

// Prints how many tasks it has begun: handlers run as often as they do.
void Signals() {
  static std::atomic<unsigned long> begun{0};
  Begin(g_inner);  // A thread's first task allocates, which a handler must not.
  End();
  struct sigaction action {};
  action.sa_handler = [](int) {
    begun.fetch_add(1, std::memory_order_relaxed);
    Begin(g_inner);
    End();
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every{.it_interval = {0, 1000}, .it_value = {0, 1000}};
  setitimer(ITIMER_PROF, &every, nullptr);
  unsigned long work = 0;
  while (begun.load(std::memory_order_relaxed) < 100) {
    Tasks(1);
    ++work;
  }
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  std::printf("%lu %lu\n", work, begun.load() + 1);
}

// Another thread ends the process while this one is inside of a task.
void ExitElsewhere() {
  Begin(g_work);
  std::thread([] {
    Tasks(20);
    std::exit(0);
  }).detach();
  for (;;) pause();
}

// Tasks of a static object, after the main thread's own objects have ended.
struct AtExit {
  ~AtExit() {
    if (armed) Tasks(2);
  }
  bool armed = false;
} g_at_exit;

// Names that no table has room for.
void Names() {
  static std::vector<std::string> texts;
  static std::vector<StringHandle> handles;
  for (int i = 0; i < 3000; ++i) texts.push_back("name " + std::to_string(i));
  for (const std::string& text : texts) handles.push_back(MakeHandle(text.c_str()));
  for (StringHandle& handle : handles) {
    Begin(handle);
    End();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const char* const collector = std::getenv("INTEL_LIBITTNOTIFY64");
  const std::string error = collector != nullptr ? g_static.Load(collector) : "INTEL_LIBITTNOTIFY64 is not set";
  if (!error.empty()) return std::fprintf(stderr, "%s\n", error.c_str()), 1;
  if (what == "nothing") return 0;
  if (what == "plant") Plant();
  if (what == "threads") Threads();
  if (what == "misuse") Misuse();
  if (what == "frames") Frames();
  if (what == "overlapped") Overlapped();
  if (what == "pause") Pause();
  if (what == "fork") Fork();
  if (what == "storm") Storm();
  if (what == "functions") Functions();
  if (what == "deep") Deep();
  if (what == "chdir") ChangeFolder();
  if (what == "signals") Signals();
  if (what == "names") Names();
  if (what == "exit elsewhere") ExitElsewhere();
  if (what == "exit inside") {
    Tasks(3);
    Begin(g_work);
    std::exit(0);
  }
  if (what == "late") {
    Tasks(3);
    g_at_exit.armed = true;
  }
  return 0;
}
