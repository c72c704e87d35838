// Session, and the process's only running session. The global pointer to it is weak, so that it ends with the Session
// that owns it.
#include "perfkit/session.h"

#include <mutex>
#include <utility>

#include "src/session/impl.h"
#include "src/sys/fork_registry.h"

namespace perfkit {
namespace {

// The session that runs in this process. docs/design.md says why it is a mutable global. A forked child has a copy of
// the parent's, whose mutex is not locked: no fork happens while it is (ForkBlocker).
struct Current {
  std::mutex mutex;
  std::weak_ptr<session::Impl> impl;
};

Current& current() {
  static Current* const instance = new Current;
  return *instance;
}

absl::Status InChild() {
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      "the session belongs to the parent process. Remedy: Session::Start one in this process");
}

absl::Status Moved() {
  return absl::Status(absl::StatusCode::kFailedPrecondition, "the session was moved from. Remedy: use the new one");
}

}  // namespace

Session::Session(std::shared_ptr<session::Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Start(SessionOptions options) {
  while (true) {
    std::shared_ptr<session::Impl> other;
    {
      const sys::ForkBlocker fork_blocker;
      const std::lock_guard<std::mutex> lock(current().mutex);
      other = current().impl.lock();
      if (other == nullptr || !other->running()) {
        absl::StatusOr<std::shared_ptr<session::Impl>> impl = session::Impl::Start(std::move(options));
        if (!impl.ok()) return impl.status();
        current().impl = *impl;
        return Session(*std::move(impl));
      }
    }
    if (!options.replace) {
      return absl::Status(absl::StatusCode::kFailedPrecondition,
                          "a session runs in this process already. Remedy: stop it, or set SessionOptions::replace");
    }
    // Without the ForkBlocker: this waits for the other session's callbacks, and one of them may fork.
    other->Halt();
  }
}

absl::StatusOr<Profile> Session::Stop() {
  if (impl_ == nullptr) return Moved();
  return impl_->in_forked_child() ? InChild() : impl_->Stop();
}

absl::StatusOr<Profile> Session::Snapshot() {
  if (impl_ == nullptr) return Moved();
  return impl_->in_forked_child() ? InChild() : impl_->Snapshot();
}

absl::Status Session::Pause() {
  if (impl_ == nullptr) return Moved();
  return impl_->in_forked_child() ? InChild() : impl_->Gate(true);
}

absl::Status Session::Resume() {
  if (impl_ == nullptr) return Moved();
  return impl_->in_forked_child() ? InChild() : impl_->Gate(false);
}

absl::Status Session::Poll() {
  if (impl_ == nullptr) return Moved();
  return impl_->in_forked_child() ? InChild() : impl_->Poll();
}

int Session::poll_fd() const { return impl_ == nullptr || impl_->in_forked_child() ? -1 : impl_->poll_fd(); }

bool Session::running() const { return impl_ != nullptr && impl_->running(); }

}  // namespace perfkit
