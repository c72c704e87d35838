// A function of the program that a session calls. Catches its exceptions.
#pragma once

#include "perfkit/detail/library_only.h"

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

namespace perfkit {

// A function that takes a `const Argument&`. Converts from any copyable callable, and catches its exceptions.
template <class Argument>
class SessionCallback {
 public:
  SessionCallback() = default;
  template <class Fn>
  requires(std::invocable<Fn&, const Argument&> && !std::same_as<std::remove_cvref_t<Fn>, SessionCallback>)
      SessionCallback(Fn fn)  // implicit, as std::function's
      : call_([fn = std::move(fn)](const Argument& argument) mutable { return Call(fn, argument); }) {}

  explicit operator bool() const { return static_cast<bool>(call_); }
  // Calls the callable. Returns false if it has thrown an exception. Requires a callable, which must not be a null
  // pointer or an empty std::function.
  bool operator()(const Argument& argument) const { return call_(argument); }

 private:
  template <class Fn>
  static bool Call(Fn& fn, const Argument& argument) {
#if defined(__cpp_exceptions)
    try {
      fn(argument);
    } catch (...) {
      return false;
    }
#else
    fn(argument);
#endif
    return true;
  }

  std::function<bool(const Argument& argument)> call_;
};

}  // namespace perfkit
