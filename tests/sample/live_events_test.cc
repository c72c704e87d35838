// Tracepoints with filters, uprobes and breakpoints as sampled events, if this user may use them.
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "perfkit/tracepoint.h"
#include "tests/sample/support.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/skip.h"
#include "tests/support/with_tracefs.h"

namespace perfkit {
namespace {

// Samples an event while `work` runs, and checks that the accounting balances; nothing if it can't be opened.
template <class Work>
std::optional<uint64_t> SamplesOf(const SampledEvent& event, Work&& work) {
  SamplerOptions options;
  options.events = {event};
  auto sampler = Sampler::Open(options);
  if (!sampler.ok()) {
    std::printf("%s\n", std::string(sampler.status().message()).c_str());
    return std::nullopt;
  }
  if (!sampler->Start().ok()) return std::nullopt;
  work();
  if (!sampler->Stop().ok()) return std::nullopt;
  const uint64_t samples = testing::CountSamples(*sampler)[0];
  const EventAccounting accounting = sampler->stats().events[0];
  return accounting.accounted() == accounting.counted ? std::optional(samples) : std::nullopt;
}

// The first arguments of this thread's close() from 1000 up, as the tracepoint's samples tell them.
std::vector<uint64_t> FdsByTracepoint(int calls) {
  std::vector<uint64_t> fds;
  const auto format = TracepointFormat::Of("syscalls:sys_enter_close");
  SamplerOptions options;
  options.events = {{.event = "syscalls:sys_enter_close", .filter = "fd >= 1000"}};
  auto sampler = Sampler::Open(options);
  if (!format.ok() || format->Find("fd") == nullptr || !sampler.ok() || !sampler->Start().ok()) return fds;
  for (int fd = 1000; fd < 1000 + calls; ++fd) syscall(SYS_close, fd);
  sampler->Stop().IgnoreError();
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             [&](const Sample& sample) { fds.push_back(format->Find("fd")->Unsigned(sample.raw()).value_or(0)); });
  });
  return fds;
}

TEST_CASE("a tracepoint's samples hold the values of its fields", "[live_events]") {
  const int result = testing::WithTracefs([] {
    const std::vector<uint64_t> fds = FdsByTracepoint(100);
    bool same = fds.size() == 100;
    for (size_t i = 0; i < fds.size(); ++i) same = same && fds[i] == 1000 + i;
    return same;
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

TEST_CASE("only a tracepoint has a format, and the answer says so", "[live_events]") {
  const auto none = TracepointFormat::Of("page-faults");
  CHECK(absl::IsInvalidArgument(none.status()));
  CHECK(std::string(none.status().message()).find("'page-faults' is not written as a tracepoint") != std::string::npos);
  CHECK(TracepointFormat::Of("syscalls:sys_enter_clos").status().code() != absl::StatusCode::kOk);
}

TEST_CASE("a tracepoint's filter drops in the kernel what does not pass", "[live_events]") {
  const int result = testing::WithTracefs([] {
    const auto calls = [] {
      for (int fd = 1000; fd < 1100; ++fd) syscall(SYS_close, fd);
    };
    const auto some = SamplesOf({.event = "syscalls:sys_enter_close", .filter = "fd >= 1040 && fd < 1050"}, calls);
    const auto all = SamplesOf({.event = "syscalls:sys_enter_close", .filter = ""}, calls);
    const auto wrong = SamplesOf({.event = "syscalls:sys_enter_close", .filter = "fdd == 1"}, calls);
    return some == 10u && all >= 100u && !wrong;
  });
  if (result == 2) SKIP_TEST("tracefs cannot be mounted here");
  CHECK(result == 0);
}

// Found by its name, in this program's own symbols.
extern "C" __attribute__((noinline, used)) int perfkit_test_probed_by_uprobe(volatile int* count) {
  *count = *count + 1;
  return *count;
}

TEST_CASE("a uprobe gives a sample for each call of a function", "[live_events]") {
  std::array<char, 4096> path{};
  REQUIRE(readlink("/proc/self/exe", path.data(), path.size() - 1) > 0);
  const std::string name = absl::StrFormat("uprobe:%s:perfkit_test_probed_by_uprobe", path.data());
  SamplerOptions options;
  options.events = {{.event = name}};
  if (const auto probe = Sampler::Open(options); !probe.ok()) SKIP_TEST(std::string(probe.status().message()));
  volatile int count = 0;
  const auto samples = SamplesOf({.event = name}, [&] {
    for (int i = 0; i < 20; ++i) perfkit_test_probed_by_uprobe(&count);
  });
  CHECK(samples == 20u);
}

__attribute__((noinline)) void Probed(volatile int* count) { *count = *count + 1; }

TEST_CASE("a breakpoint gives a sample for each call", "[live_events]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime may hold the breakpoints");
  if (testing::RawCountOfWrites() == 0) SKIP_TEST("this virtual machine does not count breakpoints");
  volatile int count = 0;
  const std::string name = absl::StrFormat("mem:0x%x:x", reinterpret_cast<uintptr_t>(&Probed));
  SamplerOptions options;
  options.events = {{.event = name + ":u"}};
  if (const auto probe = Sampler::Open(options); !probe.ok()) SKIP_TEST(std::string(probe.status().message()));
  const auto samples = SamplesOf({.event = name + ":u"}, [&] {
    for (int i = 0; i < 50; ++i) Probed(&count);
  });
  CHECK(samples == 50u);
}

}  // namespace
}  // namespace perfkit
