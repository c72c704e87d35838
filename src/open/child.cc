// The states of a child: held before exec, running, ended. A child is created and held first, so that events can be
// opened on it with enable_on_exec; they begin to count when it becomes the program, and miss nothing of it.
#include "perfkit/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/process.h"

namespace perfkit {

struct Child::Impl {
  enum class Phase { kHeld, kRunning, kEnded, kNeverRan };

  Impl(sys::HeldChild child, std::string name) : held(std::move(child)), program(std::move(name)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    // A held child would wait for ever. A running one belongs to the caller, as after fork: it is not killed.
    if (phase == Phase::kHeld) sys::KillAndReap(held.pid);
  }

  sys::HeldChild held;
  std::string program;
  Phase phase = Phase::kHeld;
  ExitStatus ended;
};

namespace {

absl::Status CannotRun(const std::string& program, int error) {
  const char* const remedy = error == ENOENT   ? ". Remedy: check its spelling and PATH, or give its whole path."
                             : error == EACCES ? ". Remedy: make the file executable (chmod +x) for this user."
                                               : ".";
  const std::string text = absl::StrFormat("cannot run '%s': %s%s", program, strerror(error), remedy);
  return absl::Status(absl::ErrnoToStatusCode(error), text);
}

}  // namespace

absl::StatusOr<Child> Child::Spawn(std::span<const std::string> argv) {
  absl::StatusOr<sys::HeldChild> held = sys::HoldChild(argv);
  if (!held.ok()) return held.status();
  return Child(std::make_unique<Impl>(*std::move(held), argv[0]));
}

absl::StatusOr<Child> Child::Spawn(std::initializer_list<std::string> argv) {
  return Spawn(std::span<const std::string>(argv.begin(), argv.size()));
}

Child::Child(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Child::Child(Child&&) noexcept = default;
Child& Child::operator=(Child&&) noexcept = default;
Child::~Child() = default;

pid_t Child::pid() const { return impl_->held.pid; }

Target Child::target() const {
  Target target = Target::Process(pid());
  target.enable_on_exec = true;
  return target;
}

absl::Status Child::Start() {
  if (impl_->phase != Impl::Phase::kHeld) {
    return absl::FailedPreconditionError(absl::StrFormat("'%s' was started already", impl_->program));
  }
  const int error = sys::ReleaseChild(impl_->held);
  if (error == 0) {
    impl_->phase = Impl::Phase::kRunning;
    return absl::OkStatus();
  }
  // exec failed: the child has reported its errno, and only has to be reaped.
  sys::KillAndReap(pid());
  impl_->phase = Impl::Phase::kNeverRan;
  return CannotRun(impl_->program, error);
}

absl::StatusOr<ExitStatus> Child::Wait() {
  if (impl_->phase == Impl::Phase::kEnded) return impl_->ended;
  if (impl_->phase != Impl::Phase::kRunning) {
    return absl::FailedPreconditionError(absl::StrFormat("'%s' does not run: it was not started", impl_->program));
  }
  const absl::StatusOr<sys::ProcessEnd> end = sys::WaitFor(pid());
  if (!end.ok()) return end.status();
  impl_->ended = {.code = end->code, .signal = end->signal, .cpu_ns = end->cpu_ns};
  impl_->phase = Impl::Phase::kEnded;
  return impl_->ended;
}

}  // namespace perfkit
