// The domains and string handles of this process: the same one for the same name.
//
// The static part of ittnotify makes those that a program creates before a collector is loaded. Afterwards it leaves
// that to the collector; up to version 3.18 it then returns a domain without a name, and no handles.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/itt/abi.h"

namespace perfkit::itt {

// Thread-safe, also in a forked child. What it returns lives as long as this object.
class Names {
 public:
  // Adopts the domains and handles that the static part has made. Requires that `global` is as abi.h describes.
  void Adopt(const Global& global);

  Domain* DomainOf(std::string_view name);
  StringHandle* HandleOf(std::string_view text);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class Value>
  using ByName = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  std::mutex mutex_;
  ByName<Domain*> domains_;
  ByName<StringHandle*> handles_;
};

}  // namespace perfkit::itt
