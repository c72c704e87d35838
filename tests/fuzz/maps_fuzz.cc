// Fuzzes the reader of /proc/PID/maps, and what is looked up in what it read.
#include <string>
#include <string_view>

#include "perfkit/symbolizer.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

// Nothing is read outside the line, and a range does not run backwards.
void CheckMapLine(std::string_view line) {
  const auto map = proc::ParseMapLine(line);
  if (!map) return;
  PERFKIT_FUZZ_CHECK(map->begin <= map->end);
  PERFKIT_FUZZ_CHECK(map->path.empty() || map->path.data() + map->path.size() == line.data() + line.size());
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzMaps) {
  static const testing::TempFolder proc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  proc.Write("/7/maps", text);
  Symbolizer symbolizer({.debug_root = "", .proc = proc.path()});
  PERFKIT_FUZZ_CHECK(symbolizer.AddProcess(7).ok());
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    CheckMapLine(line);
    const auto map = proc::ParseMapLine(line);
    if (!map) return;
    for (const uint64_t pc : {map->begin, map->begin + 1, map->end - 1, map->end}) (void)symbolizer.Locate(7, pc);
  });
  PERFKIT_FUZZ_CHECK(symbolizer.Modules().empty());  // no name was asked for
  return 0;
}

}  // namespace perfkit
