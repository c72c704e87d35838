// Names locks of this process by the variables that they are, or are parts of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace perfkit::session {

struct LockName {
  // "g_lock in game", "g_world+0x28 in game" or, without a symbol, "game+0x4010"; "" if the address is in no module's
  // data, e.g. on the heap or on a stack.
  std::string name;
  std::string module;                         // Its path, inode and first address; "" if the address is in none.
  uint64_t module_begin = 0, module_end = 0;  // Where the module is mapped, with its .bss.
};
using LockNamesByAddress = std::unordered_map<uint64_t, LockName>;

// Not thread-safe.
class LockNames {
 public:
  // Looks up the addresses in the modules that are mapped now. Keeps the names that it knows while their module stays
  // mapped there: memory that was a module's may have become something else. Reads files.
  void LookUp(std::span<const uint64_t> addresses);
  // Returns what was found; without a name and a module if the address was not looked up. Valid until LookUp.
  const LockName& Find(uint64_t address) const;

 private:
  LockNamesByAddress names_;
  const LockName unknown_{};
};

}  // namespace perfkit::session
