// The table of errors: every errno that perf calls are known to give has a row with a cause and a remedy.
#include "src/sys/perf_error.h"

#include <errno.h>
#include <string.h>

#include <catch2/catch.hpp>
#include <string>

namespace perfkit::sys {
namespace {

using Code = absl::StatusCode;

const Rights kOrdinary = {.paranoid = 2, .euid = 1000, .perfmon = false};

std::string Text(const absl::Status& status) { return std::string(status.message()); }

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct Expected {
  PerfCall call;
  int error;
  Code code;
};

// man perf_event_open(2), ERRORS, and kernel/events/core.c: what people meet.
constexpr Expected kExpected[] = {
    {PerfCall::kOpen, E2BIG, Code::kUnavailable},
    {PerfCall::kOpen, EACCES, Code::kPermissionDenied},
    {PerfCall::kOpen, EPERM, Code::kPermissionDenied},
    {PerfCall::kOpen, EBADF, Code::kInternal},
    {PerfCall::kOpen, EINVAL, Code::kInvalidArgument},
    {PerfCall::kOpen, ENODEV, Code::kUnavailable},
    {PerfCall::kOpen, ENOENT, Code::kUnavailable},
    {PerfCall::kOpen, ENOSPC, Code::kResourceExhausted},
    {PerfCall::kOpen, EOPNOTSUPP, Code::kUnavailable},
    {PerfCall::kOpen, EOVERFLOW, Code::kInvalidArgument},
    {PerfCall::kOpen, EBUSY, Code::kResourceExhausted},
    {PerfCall::kOpen, EMFILE, Code::kResourceExhausted},
    {PerfCall::kOpen, ENFILE, Code::kResourceExhausted},
    {PerfCall::kOpen, ENOMEM, Code::kResourceExhausted},
    {PerfCall::kOpen, ESRCH, Code::kNotFound},
    {PerfCall::kOpen, ENOSYS, Code::kUnavailable},
    {PerfCall::kOpen, EINTR, Code::kUnavailable},
    {PerfCall::kMapRing, EPERM, Code::kResourceExhausted},
    {PerfCall::kMapRing, ENOMEM, Code::kResourceExhausted},
    {PerfCall::kMapRing, EINVAL, Code::kInvalidArgument},
    {PerfCall::kRead, ECHILD, Code::kFailedPrecondition},
};

TEST_CASE("every known error has a code, a cause and a remedy", "[perf_error]") {
  for (const Expected& expected : kExpected) {
    const absl::Status status = PerfError(expected.call, expected.error, "event 'x' on this thread", kOrdinary);
    const std::string text = Text(status);
    INFO(text);
    CHECK(status.code() == expected.code);
    CHECK(text.starts_with("event 'x' on this thread: "));
    CHECK(Contains(text, strerror(expected.error)));
    CHECK(Contains(text, "(errno " + std::to_string(expected.error) + ")"));
    CHECK(ErrnoOf(status) == expected.error);
    CHECK(Contains(text, ". Remedy: "));
    CHECK(text.ends_with("."));
    CHECK_FALSE(CauseOf(status).empty());
  }
}

TEST_CASE("rights are quoted where they are the cause, and only there", "[perf_error]") {
  const std::string denied = Text(PerfError(PerfCall::kOpen, EACCES, "x", kOrdinary));
  CHECK(Contains(denied, "kernel.perf_event_paranoid is 2, uid 1000, without CAP_PERFMON"));
  CHECK(Contains(denied, "CAP_PERFMON"));
  const std::string sandboxed =
      Text(PerfError(PerfCall::kOpen, EPERM, "x", {.paranoid = {}, .euid = 0, .perfmon = true}));
  CHECK(Contains(sandboxed, "kernel.perf_event_paranoid cannot be read, uid 0, with CAP_PERFMON"));
  CHECK(Contains(sandboxed, "seccomp"));
  CHECK_FALSE(Contains(Text(PerfError(PerfCall::kOpen, ENOENT, "x", kOrdinary)), "paranoid"));
}

TEST_CASE("without perf_event_open, the remedy is about filters and sandboxes", "[perf_error]") {
  const std::string remedy = RemedyOf(PerfError(PerfCall::kOpen, ENOSYS, "x", kOrdinary));
  CHECK(Contains(remedy, "seccomp profile"));
  CHECK(Contains(remedy, "gVisor"));
}

TEST_CASE("in a user namespace, rights are those outside of it", "[perf_error]") {
  Rights rights = kOrdinary;
  const Explanation denied{Code::kPermissionDenied, "denied", "grant CAP_PERFMON"};
  const Explanation gone{Code::kNotFound, "gone", "grant CAP_PERFMON"};
  CHECK(RemedyOf(PerfError(PerfCall::kOpen, EACCES, "x", denied, rights)) == "grant CAP_PERFMON.");
  rights.in_user_namespace = true;
  CHECK(RemedyOf(PerfError(PerfCall::kOpen, EACCES, "x", denied, rights)) ==
        "grant CAP_PERFMON; root and capabilities count only outside of this user namespace.");
  CHECK(RemedyOf(PerfError(PerfCall::kOpen, ESRCH, "x", gone, rights)) == "grant CAP_PERFMON.");
}

TEST_CASE("the same errno means different things to different calls", "[perf_error]") {
  CHECK(absl::IsPermissionDenied(PerfError(PerfCall::kOpen, EPERM, "x", kOrdinary)));
  CHECK(absl::IsResourceExhausted(PerfError(PerfCall::kMapRing, EPERM, "x", kOrdinary)));
  CHECK(Contains(Text(PerfError(PerfCall::kMapRing, EPERM, "x", kOrdinary)), "perf_event_mlock_kb"));
}

TEST_CASE("an unknown errno is quoted as it is", "[perf_error]") {
  for (const PerfCall call : {PerfCall::kOpen, PerfCall::kMapRing, PerfCall::kIoctl, PerfCall::kRead}) {
    const absl::Status status = PerfError(call, EXDEV, "event 'x'", kOrdinary);
    CHECK(status.code() == Code::kInternal);
    CHECK(Contains(Text(status), strerror(EXDEV)));
    CHECK(Contains(Text(status), "event 'x'"));
  }
}

}  // namespace
}  // namespace perfkit::sys
