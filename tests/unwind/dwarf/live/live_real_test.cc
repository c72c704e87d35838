// Live stacks of code that we did not write: SQLite running queries, walked at random moments. Every return address
// follows a call instruction, which wrong guesses do not match for long.
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "absl/strings/str_format.h"
#include "perfkit/live_unwinder.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/stack_ends.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

// Returns true if a call may end at `pc`: E8 and four bytes, or FF /2 with its operands (Intel's manual, volume 2,
// CALL).
bool FollowsCall(uint64_t pc) {
  const auto* const at = reinterpret_cast<const uint8_t*>(pc);
  if (at[-5] == 0xe8) return true;
  for (int size = 2; size <= 7; ++size) {
    const uint8_t form = at[-size + 1];
    if (at[-size] != 0xff || (form >> 3 & 7) != 2) continue;
    const int mode = form >> 6, rm = form & 7;
    const bool index = mode != 3 && rm == 4;
    const bool far = mode == 2 || (mode == 0 && (rm == 5 || (index && (at[-size + 2] & 7) == 5)));
    if (size == 2 + index + (mode == 1 ? 1 : far ? 4 : 0)) return true;
  }
  return false;
}

constexpr const char* kMakeTable =
    "create table t(a, b, c);"
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)"
    "insert into t select i, hex(randomblob(8)), i * 7 % 1000 from n; create index x on t(c, b)";
constexpr const char* kJoin =
    "select count(*), sum(length(x.b)) from t x join t y on x.c = y.c and y.a < 100"
    " where x.b like '%A%' group by x.c % 17 order by 2";
constexpr const char* kScan = "select max(printf('%.9f %s', a * 1.5, upper(b))) from t where a in (select c from t)";

struct RealRun {
  LiveUnwinder unwinder;
  size_t walks = 0, complete = 0, returns = 0, not_calls = 0, guesses = 0, deepest = 0;
  uint64_t first_not_call = 0;
  size_t ends[testing::kStackEnds] = {};
};

RealRun* real_run = nullptr;

void OnRealSignal(int, siginfo_t*, void* context) {
  RealRun& run = *real_run;
  std::array<StackFrame, 200> frames;
  const UnwoundStack stack = run.unwinder.InterruptedStack(context, frames);
  ++run.walks;
  ++run.ends[static_cast<size_t>(stack.end)];
  run.complete += stack.complete();
  run.guesses += stack.guesses;
  run.deepest = std::max<size_t>(run.deepest, stack.frames);
  for (size_t i = 0; i < stack.frames; ++i) {
    if (!frames[i].is_return_address) continue;
    ++run.returns;
    if (!FollowsCall(frames[i].pc) && run.not_calls++ == 0) run.first_not_call = frames[i].pc;
  }
}

// The functions of SQLite that are needed.
class Sqlite {
 public:
  Sqlite() : handle_(dlopen("libsqlite3.so.0", RTLD_LAZY)) {
    if (handle_ == nullptr) return;
    using Open = int (*)(const char*, void**);
    exec_ = reinterpret_cast<Exec>(dlsym(handle_, "sqlite3_exec"));
    reinterpret_cast<Open>(dlsym(handle_, "sqlite3_open"))(":memory:", &database_);
  }
  ~Sqlite() {
    if (handle_ == nullptr) return;
    using Close = int (*)(void*);
    reinterpret_cast<Close>(dlsym(handle_, "sqlite3_close"))(database_);
    dlclose(handle_);
  }
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  bool ok() const { return database_ != nullptr; }
  bool Run(const char* sql) { return exec_(database_, sql, nullptr, nullptr, nullptr) == 0; }

 private:
  using Exec = int (*)(void*, const char*, void*, void*, char**);
  void* handle_;
  void* database_ = nullptr;
  Exec exec_ = nullptr;
};

TEST_CASE("return addresses of live stacks follow calls, and the stacks are whole", "[live][law]") {
  if (testing::kSanitized) SKIP_TEST("a signal may come while a sanitizer holds its locks");
  Sqlite sqlite;
  if (!sqlite.ok()) SKIP_TEST("there is no SQLite here");
  RealRun run;
  real_run = &run;
  struct sigaction action = {}, before = {};
  action.sa_sigaction = OnRealSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGUSR1, &action, &before);
  sigevent event{};
  event.sigev_signo = SIGUSR1;
  event.sigev_notify = SIGEV_THREAD_ID;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  const itimerspec each{{0, 97'000}, {0, 97'000}};
  timer_settime(timer, 0, &each, nullptr);
  bool ran = sqlite.Run(kMakeTable);
  for (int round = 0; round < 200 && run.walks < 3'000; ++round) ran &= sqlite.Run(kJoin) && sqlite.Run(kScan);
  timer_delete(timer);
  testing::Sleep(5'000'000);
  sigaction(SIGUSR1, &before, nullptr);
  std::string ends;
  for (const size_t end : run.ends) ends += absl::StrFormat(" %d", end);
  INFO(run.walks << " walks, ends" << ends << "; " << run.returns << " return addresses, the deepest has "
                 << run.deepest << "; first without a call " << std::hex << run.first_not_call);
  CHECK(ran);
  CHECK(run.walks > 500);
  CHECK(run.not_calls == 0);
  CHECK(run.returns > 5 * run.walks);
  CHECK(run.complete * 1000 >= run.walks * 999);
  CHECK(run.guesses * 1000 <= run.walks);
}

#endif

}  // namespace
}  // namespace perfkit
