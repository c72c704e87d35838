// Names locks of this process by the variables that they are, or are parts of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace perfkit::session {

struct LockName {
  std::string name;
  std::string module;  // Its path, inode and first address; "" if the address is in none.
};
using LockNamesByAddress = std::unordered_map<uint64_t, LockName>;

// Not thread-safe.
class LockNames {
 public:
  // Looks up the addresses in the modules that are mapped now. Keeps the names that it knows while their module stays
  // mapped there: memory that was a module's may have become something else. Reads files.
  void LookUp(std::span<const uint64_t> addresses);
  // Forgets the names of those addresses whose module is not mapped there any more. Reads a file if it knows names.
  void Recheck(std::span<const uint64_t> addresses);
  // Forgets all names: other modules may be mapped now.
  void Forget() { names_.clear(); }
  // Returns "g_lock in game", "g_world+0x28 in game" or, without a symbol, "game+0x4010". Returns "" if the address was
  // not looked up, or is in no module's data, e.g. on the heap or on a stack. Valid until LookUp or Forget.
  std::string_view NameOf(uint64_t address) const;

 private:
  LockNamesByAddress names_;
};

}  // namespace perfkit::session
