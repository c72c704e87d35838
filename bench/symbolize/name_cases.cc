// Names by symbol tables: of new locations, and of cached ones.
#include <benchmark/benchmark.h>
#include <elfutils/libdwfl.h>
#include <perfkit/symbolizer.h>
#include <unistd.h>

#include "bench/symbolize/code.h"

namespace bench {
namespace {

// Without demangling, because elfutils has none.
perfkit::Symbolizer OfThisProcess() {
  LargeLibrary();
  perfkit::Symbolizer symbolizer({.demangle = false});
  if (!symbolizer.AddProcess(getpid()).ok()) std::abort();
  return symbolizer;
}

void Name(benchmark::State& state) {
  const auto pid = static_cast<uint32_t>(getpid());
  perfkit::Symbolizer symbolizer = OfThisProcess();
  const Code& code = LargeLibrary();
  uint64_t i = 0, named = 0;
  symbolizer.Resolve(pid, code.begin);  // Reads the symbol table.
  for (auto _ : state) named += symbolizer.Name(symbolizer.Locate(pid, PcIn(code, ++i))).named();
  if (named == 0 && i > kPcs) state.SkipWithError("there are no names");
}
BENCHMARK(Name)->Name("Symbol/name");

void Memo(benchmark::State& state) {
  const auto pid = static_cast<uint32_t>(getpid());
  perfkit::Symbolizer symbolizer = OfThisProcess();
  const Code& code = LargeLibrary();
  uint64_t i = 0, named = 0;
  for (size_t at = 0; at < kPcs; ++at) named += symbolizer.Resolve(pid, PcIn(code, at)).named();
  if (named == 0) return state.SkipWithError("there are no names");
  for (auto _ : state) {
    named += symbolizer.Resolve(pid, PcIn(code, i)).named();
    i = i + 1 < kPcs ? i + 1 : 0;
  }
  benchmark::DoNotOptimize(named);
}
BENCHMARK(Memo)->Name("Symbol/memo");

// Modules and their symbol tables are read and sorted before, as a profiler would keep them.
void DwflAddrinfo(benchmark::State& state) {
  char* debug_path = nullptr;
  const Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                                 .find_debuginfo = dwfl_standard_find_debuginfo,
                                 .section_address = nullptr,
                                 .debuginfo_path = &debug_path};
  const Code& code = LargeLibrary();
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  dwfl_linux_proc_report(dwfl, getpid());
  dwfl_report_end(dwfl, nullptr, nullptr);
  uint64_t i = 0, named = 0;
  const auto name = [&](uint64_t pc) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, pc);
    return dwfl_module_addrinfo(module, pc, &offset, &symbol, nullptr, nullptr, nullptr) != nullptr;
  };
  name(code.begin);
  for (auto _ : state) named += name(PcIn(code, ++i));
  if (named == 0 && i > kPcs) state.SkipWithError("there are no names");
  dwfl_end(dwfl);
}
BENCHMARK(DwflAddrinfo)->Name("Symbol/dwfl_addrinfo");

}  // namespace
}  // namespace bench
