// What a thread waited for, in words.
#include "src/profile/wait_text.h"

#include <catch2/catch.hpp>

#include "perfkit/profile_builder.h"

namespace perfkit::profile {
namespace {

TEST_CASE("a wait is named by what is known of it", "[profile][wait_text]") {
  ProfileBuilder builder;
  const uint32_t detail = builder.String("/tmp/log");
  const uint32_t waker = builder.String("worker (12)");
  const Profile profile = builder.Take();
  CHECK(WaitText(profile, {.preempted = true, .detail = detail}) == "preempted");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 1, .detail = detail}) == "/tmp/log");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 202}) == "syscall 202");
  CHECK(WaitText(profile, {.blocked_in_syscall = true, .syscall = 1, .detail = detail, .waker = waker}) ==
        "/tmp/log, woken by worker (12)");
  CHECK(WaitText(profile, {.waker = waker}) == "woken by worker (12)");
  CHECK(WaitText(profile, {}).empty());
}

}  // namespace
}  // namespace perfkit::profile
