// Fuzzes the reader of /proc/kallsyms, and what is looked up in what it read.
#include <string>
#include <string_view>

#include "src/base/text.h"
#include "src/proc/kallsyms.h"
#include "src/symbolize/kernel_names.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

bool IsWithin(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzKallsyms) {
  static const testing::TempFolder proc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  proc.Write("/kallsyms", text);
  symbolize::KernelNames names;
  const absl::Status status = names.Load(proc.path());
  PERFKIT_FUZZ_CHECK(status.ok() || names.symbols() == 0);
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    const auto symbol = proc::ParseKallsymsLine(line);
    if (!symbol) return;
    PERFKIT_FUZZ_CHECK(IsWithin(symbol->name, line) && IsWithin(symbol->module, line));
    for (const uint64_t pc : {symbol->address - 1, symbol->address, symbol->address + 4096}) {
      const auto found = names.Find(pc);
      PERFKIT_FUZZ_CHECK(!found || found->begin <= pc);
    }
  });
  return 0;
}

}  // namespace perfkit
