// Names of the kernel's code, read when the first kernel pc wants one: the file has 100,000 lines and takes 36 to 80
// ms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

class KernelNames {
 public:
  struct Found {
    std::string_view function;
    std::string_view module;  // with brackets; "" for the kernel itself
    uint64_t begin = 0;
  };

  // Reads `proc`/kallsyms, once. FailedPrecondition when the kernel hides its addresses from this user.
  const absl::Status& Load(const std::string& proc);
  bool loaded() const { return loaded_; }
  const absl::Status& status() const { return status_; }
  size_t symbols() const { return table_.size(); }

  std::optional<Found> Find(uint64_t pc) const;

 private:
  absl::Status TakeSymbols(std::string_view text, const std::string& proc);

  bool loaded_ = false;
  absl::Status status_;
  SymbolTable table_;  // of "name\t[module]", as the file has them
};

}  // namespace perfkit::symbolize
