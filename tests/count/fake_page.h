// The machine of a made-up user page: registers and ticks that a test chooses.
#pragma once

#include <cstdint>
#include <utility>

#include "perfkit/detail/user_page.h"

namespace perfkit::testing {

// Gives for register n what `read`(n) gives, on every architecture.
template <class Read>
struct FakeMachine : PageAccess {
  static constexpr bool kHasRegisters = true;
  Read read;
  uint64_t now = 0;

  uint64_t Ticks() const { return now; }
  uint64_t Register(uint32_t n) const { return read(n); }
};

// ReadUserCount, with `read` for the registers.
template <class Read>
bool ReadWith(const UserPage& page, UserCount& count, Read read, uint64_t now = 0) {
  return ReadUserCount(page, count, FakeMachine<Read>{{}, std::move(read), now});
}

// Page of an event that counts in register `index` - 1.
inline UserPage PageWithCounter(uint32_t index, uint16_t width) {
  UserPage page{};
  page.lock = 2;
  page.index = index;
  page.pmc_width = width;
  page.capabilities = UserPage::kCanReadCounter;
  return page;
}

}  // namespace perfkit::testing
