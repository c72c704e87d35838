// Why nothing is counted with PERFKIT_ENABLE=0: as text, and as the status that Open returns.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/enable.h"

namespace PERFKIT_NAMESPACE {
namespace detail {

#if defined(__linux__)
inline constexpr std::string_view kOffReason = "perfkit is compiled out (PERFKIT_ENABLE=0)";
#else
inline constexpr std::string_view kOffReason = "perfkit counts on Linux only";
#endif

// The part of absl::Status that callers of an Open use.
class Unimplemented {
 public:
  bool ok() const noexcept { return false; }
  std::string_view message() const noexcept { return kOffReason; }
  std::string ToString() const { return "UNIMPLEMENTED: " + std::string(kOffReason); }
};

// The same part of absl::StatusOr<T>. Never ok; a caller that does not check gets an empty T.
template <class T>
class UnimplementedOr {
 public:
  bool ok() const noexcept { return false; }
  Unimplemented status() const noexcept { return {}; }
  T& value() & noexcept { return empty_; }
  T&& value() && noexcept { return static_cast<T&&>(empty_); }
  T& operator*() & noexcept { return empty_; }
  T&& operator*() && noexcept { return static_cast<T&&>(empty_); }
  T* operator->() noexcept { return &empty_; }

 private:
  T empty_;
};

}  // namespace detail
}  // namespace PERFKIT_NAMESPACE
