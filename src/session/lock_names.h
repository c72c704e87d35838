// Names locks of this process by the variables that they are, or are parts of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace perfkit::session {

// Not thread-safe.
class LockNames {
 public:
  // Looks up the addresses that were not looked up before, in the modules that are mapped now. Reads files.
  void LookUp(std::span<const uint64_t> addresses);
  // Forgets all names: other modules may be mapped now.
  void Forget() { names_.clear(); }
  // Returns "g_lock in game", "g_world+0x28 in game" or, without a symbol, "game+0x4010". Returns "" if the address was
  // not looked up, or is in no module's data, e.g. on the heap or on a stack. Valid until LookUp or Forget.
  std::string_view NameOf(uint64_t address) const;

 private:
  std::unordered_map<uint64_t, std::string> names_;
};

}  // namespace perfkit::session
