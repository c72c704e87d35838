// A breakpoint in kernel memory is refused to ordinary users with its own cause and remedy; the remedy works.
#include <errno.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/open/open_event.h"
#include "src/sys/kernel.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/skip.h"

namespace perfkit::open {
namespace {

// The page of the kernel's error pointers, which is never mapped: nothing writes there.
constexpr char kKernelWord[] = "mem:0xfffffffffffff000/8:w";

absl::Status OpenWord(const std::string& text, const sys::LazyRights& rights = {}) {
  const absl::StatusOr<EventConfig> event = ParseEvent(text);
  if (!event.ok()) return event.status();
  OpenRequest request = RequestFor(*event, 0);
  request.asked = text;
  return OpenEvent(request, rights).status();
}

bool HasPart(const absl::Status& status, const char* part) {
  const bool has = status.message().find(part) != std::string::npos;
  if (!has) printf("%s\n", status.ToString().c_str());
  return has;
}

// Says what the kernel said first: not about the retry for user space only, which is wrong for this address.
bool IsForAdministrator(const absl::Status& status) {
  return !status.ok() && status.message().find("errno 22") == std::string::npos &&
         HasPart(status, "): a breakpoint in kernel memory is for the administrator only; here: ") &&
         HasPart(status, "Remedy: run as root (CAP_SYS_ADMIN), or watch an address in user space.") &&
         absl::IsPermissionDenied(status);
}

TEST_CASE("a breakpoint in kernel memory is the administrator's, which an ordinary user is told", "[explain]") {
  if (!OpenWord("dummy:u").ok()) SKIP_TEST("perf events are closed to this process");
  if (testing::RawCountOfWrites() <= 0) SKIP_TEST("this machine counts no breakpoints");
  [[maybe_unused]] const bool admin = sys::ReadRights().sys_admin;
  for (const char* modifiers : {"", ":k", ":uk"}) {
    const std::string event = absl::StrCat(kKernelWord, modifiers);
    CAPTURE(event);
    CHECK(testing::AsOrdinaryUser([&] { return sys::ReadRights().sys_admin || IsForAdministrator(OpenWord(event)); }));
#if defined(__x86_64__)  // arm64 has none for threads (hw_breakpoint_arch_parse in arch/arm64/kernel/hw_breakpoint.c).
    CHECK((!admin || OpenWord(event).ok()));  // The remedy.
#endif
  }
}

TEST_CASE("a breakpoint in kernel memory for user space alone is wrong, for any user", "[explain]") {
  if (!OpenWord("dummy:u").ok()) SKIP_TEST("perf events are closed to this process");
  if (testing::RawCountOfWrites() <= 0) SKIP_TEST("this machine counts no breakpoints");
  const auto is_told = [] {
    const absl::Status status = OpenWord(absl::StrCat(kKernelWord, ":u"));
    return HasPart(status, "): a breakpoint in kernel memory cannot count user space only") &&
           HasPart(status, "Remedy: leave out the modifier, or watch an address in user space.") &&
           absl::IsInvalidArgument(status);
  };
  CHECK(is_told());
  CHECK(testing::AsOrdinaryUser(is_told));
}

// hw_breakpoint_parse in kernel/events/hw_breakpoint.c, for a user who lacks CAP_SYS_ADMIN. Other events open.
int RefuseKernelMemory(const sys::PerfEventAttr* attr, pid_t, int, int, unsigned long) {
  const bool in_kernel = attr->type == sys::kTypeBreakpoint && static_cast<int64_t>(attr->config1) < 0;
  if (!in_kernel) return sys::kLinux.open("/dev/null", 0);
  errno = attr->exclude_kernel != 0 ? EINVAL : EPERM;
  return -1;
}

TEST_CASE("the right to watch the kernel does not include breakpoints in its memory", "[explain]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = RefuseKernelMemory;
  for (const char* modifiers : {"", ":k"}) {
    CAPTURE(modifiers);
    CHECK(IsForAdministrator(OpenWord(absl::StrCat(kKernelWord, modifiers), sys::Rights{.paranoid = 1, .euid = 1000})));
  }
  for (const char* modifiers : {"", ":k", ":uk"}) {
    CAPTURE(modifiers);
    const sys::Rights perfmon{.paranoid = 2, .euid = 1000, .perfmon = true};
    CHECK(IsForAdministrator(OpenWord(absl::StrCat(kKernelWord, modifiers), perfmon)));
  }
  CHECK(fake.Leaks() == "");
}

}  // namespace
}  // namespace perfkit::open
