// Names of the kernel: the lines of /proc/kallsyms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace perfkit::proc {

struct KernelSymbol {
  uint64_t address = 0;     // 0 for all of them: the kernel hides its addresses from this user
  char type = '?';          // as nm spells it; lower case: local
  std::string_view name;    // a view into the line
  std::string_view module;  // with its brackets, "[nf_tables]"; "" for the kernel itself

  // Code, of any binding.
  bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};

// One line, "ffffffff81000000 T _stext" or "ffffffffc0000000 t nft_do_chain\t[nf_tables]"; nothing when it is none.
std::optional<KernelSymbol> ParseKallsymsLine(std::string_view line);

// The whole file: some MiB. NotFound where the kernel was built without it.
absl::StatusOr<std::string> ReadKallsyms(const std::string& proc = "/proc");

}  // namespace perfkit::proc
