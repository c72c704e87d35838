// Names of locks of this process: the variable that a lock is, or lies in.
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
  // Looks up those addresses that were not looked up before, by what is mapped there now. Reads files.
  void LookUp(std::span<const uint64_t> addresses);
  // Something else may be mapped from now on.
  void Forget() { names_.clear(); }
  // Returns "g_lock in game", "g_world+0x28 in game" or, without a symbol, "game+0x4010"; "" if it lies in no file's
  // data, as on the heap and on stacks, or was not looked up. Valid until LookUp.
  std::string_view NameOf(uint64_t address) const;

 private:
  std::unordered_map<uint64_t, std::string> names_;
};

}  // namespace perfkit::session
