// Symbols of the kernel: the lines of /proc/kallsyms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace perfkit::proc {

struct KernelSymbol {
  uint64_t address = 0;     // 0 for all symbols if the kernel hides its addresses from this user.
  char type = '?';          // As in nm; lower case means local.
  std::string_view name;    // A view into the line.
  std::string_view module;  // With its brackets, "[nf_tables]"; "" for the kernel itself.

  // Returns true for code of any binding.
  bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};

// Parses one line, "ffffffff81000000 T _stext" or "ffffffffc0000000 t nft_do_chain\t[nf_tables]"; nullopt if it is
// malformed.
std::optional<KernelSymbol> ParseKallsymsLine(std::string_view line);

// Reads the whole file, some MiB. Errors: NotFound if the kernel was built without it; else as sys::ReadFile.
absl::StatusOr<std::string> ReadKallsyms(const std::string& proc = "/proc");

}  // namespace perfkit::proc
