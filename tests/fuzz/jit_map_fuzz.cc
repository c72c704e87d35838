// Fuzzes the list of JIT code: at each address, the latest whole line that has it is right.
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/proc/jit_map.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace perfkit {

PERFKIT_FUZZ_TARGET(FuzzJitMap) {
  static const testing::TempFolder proc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  proc.Write("/7/status", absl::StrFormat("Uid:\t%d\t%d\t%d\t%d\n", geteuid(), geteuid(), geteuid(), geteuid()));
  proc.Write(
      "/7/root"
      "/tmp/perf-7.map",
      text);
  std::vector<proc::JitFunction> lines;
  const std::string_view whole = std::string_view(text).substr(0, text.rfind('\n') + 1);
  base::ForEachPiece(whole, '\n', [&](std::string_view line) {
    if (const auto function = proc::ParseJitLine(line)) lines.push_back(*function);
  });
  proc::JitMap map(7, proc.path());
  for (const proc::JitFunction& line : lines) {
    for (const uint64_t pc : {line.begin - 1, line.begin, line.end - 1, line.end}) {
      std::optional<proc::JitFunction> latest;
      for (const proc::JitFunction& other : lines) {
        if (other.begin <= pc && pc < other.end) latest = other;
      }
      const std::optional<proc::JitFunction> found = map.Find(pc);
      PERFKIT_FUZZ_CHECK(found.has_value() == latest.has_value());
      PERFKIT_FUZZ_CHECK(!found || (found->name == latest->name && found->begin <= pc && pc < found->end));
    }
  }
  return 0;
}

}  // namespace perfkit
