// Source lines and inlined calls in this program: C++ with a unit of debug information for each file. "Cold" includes
// everything: finding files, sorting symbols, decoding units.
#include <benchmark/benchmark.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <perfkit/dwarf_lines.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "bench/symbolize/code.h"

namespace bench {
namespace {

// Read once: a system call for each location would be a part of the measured time.
uint32_t ThisPid() {
  static const auto pid = static_cast<uint32_t>(getpid());
  return pid;
}

perfkit::Symbolizer WithLines() {
  perfkit::Symbolizer symbolizer({.demangle = false, .lines = perfkit::DwarfLines});
  if (!symbolizer.AddProcess(static_cast<pid_t>(ThisPid())).ok()) std::abort();
  return symbolizer;
}

// Locations with a line, because some libraries in this program were compiled without -g. Their order is spread over
// the program, so that the first kPcs cover all of it.
const std::vector<uint64_t>& ManyPcs() {
  static const std::vector<uint64_t> pcs = [] {
    perfkit::Symbolizer symbolizer = WithLines();
    std::vector<uint64_t> found;
    for (uint64_t i = 0; found.size() < kManyPcs && i < 100 * kManyPcs; ++i) {
      const uint64_t pc = PcIn(ThisProgram(), i);
      const auto frames = symbolizer.Inlined(symbolizer.Locate(ThisPid(), pc));
      if (frames[0].line > 0 && !frames[0].function.empty()) found.push_back(pc);
    }
    return found;
  }();
  return pcs;
}

const std::vector<uint64_t>& Pcs() {
  static const std::vector<uint64_t> pcs(ManyPcs().begin(),
                                         ManyPcs().begin() + std::min<long>(kPcs, std::ssize(ManyPcs())));
  return pcs;
}

constexpr char kNoLines[] = "this program was compiled without -g";

size_t Ask(perfkit::Symbolizer& symbolizer, uint64_t pc) {
  return symbolizer.Inlined(symbolizer.Locate(ThisPid(), pc)).size();
}

// Units are decoded, but locations are not cached: there are more than the Symbolizer caches.
void Inline(benchmark::State& state) {
  const std::vector<uint64_t>& pcs = ManyPcs();
  if (pcs.empty()) return state.SkipWithError(kNoLines);
  perfkit::Symbolizer symbolizer = WithLines();
  for (const uint64_t pc : pcs) Ask(symbolizer, pc);
  size_t i = 0, frames = 0;
  for (auto _ : state) {
    frames += Ask(symbolizer, pcs[i]);
    i = i + 1 < pcs.size() ? i + 1 : 0;
  }
  benchmark::DoNotOptimize(frames);
}
BENCHMARK(Inline)->Name("Symbol/inline");

void InlineCold(benchmark::State& state) {
  const std::vector<uint64_t>& pcs = Pcs();
  if (pcs.empty()) return state.SkipWithError(kNoLines);
  size_t frames = 0;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(pcs.size()))) {
    perfkit::Symbolizer symbolizer = WithLines();
    for (const uint64_t pc : pcs) frames += Ask(symbolizer, pc);
  }
  benchmark::DoNotOptimize(frames);
}
BENCHMARK(InlineCold)->Name("Symbol/inline_cold");

// libdw's unit, entries around the pc, and line, all cached; without names, and without a second pass for the nesting
// of inlined calls.
void DwarfGetscopes(benchmark::State& state) {
  const std::vector<uint64_t>& pcs = Pcs();
  if (pcs.empty()) return state.SkipWithError(kNoLines);
  const int fd = open(ThisProgram().path.c_str(), O_RDONLY | O_CLOEXEC);
  Dwarf* const dwarf = dwarf_begin(fd, DWARF_C_READ);
  size_t i = 0, known = 0;
  const auto ask = [&](uint64_t address) {
    Dwarf_Die unit, *scopes = nullptr;
    if (dwarf_addrdie(dwarf, address, &unit) == nullptr) return;
    known += dwarf_getscopes(&unit, address, &scopes) > 0 && dwarf_getsrc_die(&unit, address) != nullptr;
    free(scopes);
  };
  for (auto _ : state) {
    ask(pcs[i] - ThisProgram().bias);
    i = i + 1 < pcs.size() ? i + 1 : 0;
  }
  if (known == 0 && i > 100) state.SkipWithError("libdw finds nothing");
  dwarf_end(dwarf);
  close(fd);
}
BENCHMARK(DwarfGetscopes)->Name("Symbol/dwarf_getscopes");

}  // namespace
}  // namespace bench
