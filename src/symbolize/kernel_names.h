// The names of the kernel's functions. Read at the first lookup of a kernel pc: the file has 100,000 lines, which takes
// 36 to 80 ms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// Not thread-safe.
class KernelNames {
 public:
  struct Found {
    std::string_view function;
    std::string_view module;  // With brackets; "" for the kernel itself.
    uint64_t begin = 0;
  };

  // Reads `proc`/kallsyms at the first call. Errors: FailedPrecondition if the kernel hides its addresses from this
  // user.
  const absl::Status& Load(const std::string& proc);
  bool loaded() const { return loaded_; }
  const absl::Status& status() const { return status_; }
  size_t symbols() const { return table_.size(); }

  // Returns the function that contains `pc`, or nullopt. Requires Load. The views are valid as long as this.
  std::optional<Found> Find(uint64_t pc) const;

 private:
  absl::Status TakeSymbols(std::string_view text, const std::string& proc);

  bool loaded_ = false;
  absl::Status status_;
  SymbolTable table_;  // Names are "name\t[module]", as in the file.
};

}  // namespace perfkit::symbolize
