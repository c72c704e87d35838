// Batches of finished samples, which a session delivers while it runs.
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

// Finished samples, and the tables that they refer to. Valid until the callback returns.
struct SessionBatch {
  // The tables: threads, stacks, named locations, waits. Stacks, locations and modules keep their indices in all
  // batches of a session; strings, waits and ended threads may not. Ignore `profile.samples`: the batch is in
  // `samples`.
  const Profile& profile;
  // In the order in which they were finished. Each sample is in exactly one batch; none is merged().
  std::span<const ProfileSample> samples;
};

// A function that takes a batch. Converts from any callable, and catches the callable's exceptions.
class BatchCallback {
 public:
  BatchCallback() = default;
  template <class Fn>
  requires(std::invocable<Fn&, const SessionBatch&> && !std::same_as<std::remove_cvref_t<Fn>, BatchCallback>)
      BatchCallback(Fn fn)  // Implicit, as std::function's.
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
