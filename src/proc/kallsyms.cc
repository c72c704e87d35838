// Parses /proc/kallsyms: "ffffffffc0a01000 t nf_hook\t[nf_tables]" (s_show in kernel/kallsyms.c).
#include "src/proc/kallsyms.h"

#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {

std::optional<KernelSymbol> ParseKallsymsLine(std::string_view line) {
  const auto [address, rest] = base::Cut(line, ' ');
  const auto [type, names] = base::Cut(rest, ' ');
  const std::optional<uint64_t> number = base::ParseNumber(address, 16);
  if (!number || type.size() != 1) return std::nullopt;
  const auto [name, module] = base::Cut(names, '\t');
  if (name.empty()) return std::nullopt;
  return KernelSymbol{*number, type[0], base::Trim(name), base::Trim(module)};
}

absl::StatusOr<std::string> ReadKallsyms(const std::string& proc) { return sys::ReadFile(proc + "/kallsyms"); }

}  // namespace perfkit::proc
