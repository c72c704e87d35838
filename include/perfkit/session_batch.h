// What a session streams out: batches of finished samples.
//
//   auto session = perfkit::Session::Start({.on_batch = [&](const perfkit::SessionBatch& batch) { Send(batch); }});
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "perfkit/profile.h"

namespace perfkit {

// Finished samples, with all that they point to. Valid until the callback returns.
struct SessionBatch {
  // Threads, stacks, locations with their names, waits. Stacks, locations and modules have the same indexes in all
  // batches of a session; strings, waits and threads that have ended need not. `profile.samples` are not those of the
  // batch.
  const Profile& profile;
  // In the order in which they were finished. A sample is in one batch; ProfileSample::merged() is always false.
  std::span<const ProfileSample> samples;
};

// A callable that takes a batch. Converts from any, and keeps what that throws from the session.
class BatchCallback {
 public:
  BatchCallback() = default;
  template <class Fn>
    requires(std::invocable<Fn&, const SessionBatch&> && !std::same_as<std::remove_cvref_t<Fn>, BatchCallback>)
  BatchCallback(Fn fn)  // implicit, as std::function's
      : call_([fn = std::move(fn)](const SessionBatch& batch) mutable { return Call(fn, batch); }) {}

  explicit operator bool() const { return static_cast<bool>(call_); }
  // Returns false if the callable has thrown an exception. Requires a callable.
  bool operator()(const SessionBatch& batch) const { return call_(batch); }

 private:
  template <class Fn>
  static bool Call(Fn& fn, const SessionBatch& batch) {
#if defined(__cpp_exceptions)
    try {
      fn(batch);
    } catch (...) {
      return false;
    }
#else
    fn(batch);
#endif
    return true;
  }

  std::function<bool(const SessionBatch& batch)> call_;
};

}  // namespace perfkit
