// Frozen tables, as a session builds them at its start: those of all modules of this process, for a MiB of their code.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstddef>

#include "bench/unwind/cases.h"
#include "src/elf/image.h"
#include "src/unwind/dwarf/live/frozen_cfi_rows.h"
#include "src/unwind/dwarf/live/frozen_table.h"
#include "src/unwind/dwarf/live/loaded_modules.h"
#include "src/unwind/machine.h"

namespace bench {
namespace {

using perfkit::unwind::LoadedModule;
using perfkit::unwind::LoadedModules;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns the bytes of the module's tables.
size_t BuildTables(const LoadedModule& module) {
  const auto image = perfkit::elf::Image::Parse(module.image);
  if (!image.ok()) return 0;
  perfkit::unwind::Cfi cfi(*image);
  perfkit::unwind::FrozenTable rules;
  using Machine = perfkit::unwind::ThisMachine;
  const auto& registers = Machine::kLinkRegister ? perfkit::unwind::kArmRegisters : perfkit::unwind::kX86Registers;
  const perfkit::unwind::FrozenCfiRows rows(cfi, registers, Machine::kPreserved, rules);
  return rules.heap_bytes() + rows.heap_bytes();
}

void Build(benchmark::State& state) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  const LoadedModules loaded = perfkit::unwind::LookAtLoaded([](const LoadedModule&) { return true; }, kMaxBytes);
  double code_bytes = 0;
  for (const LoadedModule& module : loaded.modules) {
    for (const LoadedModule::Range& range : module.code) code_bytes += static_cast<double>(range.end - range.begin);
  }
  const double mib = std::max(1.0, code_bytes) / (1 << 20);
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const double begun = CpuSeconds();
    for (const LoadedModule& module : loaded.modules) bytes += BuildTables(module);
    state.SetIterationTime((CpuSeconds() - begun) / mib);
  }
  state.counters["bytes"] = static_cast<double>(bytes) / mib;
  state.counters["mib"] = mib;
}

}  // namespace

void RegisterFrozenCases() { benchmark::RegisterBenchmark("Frozen/build", Build)->UseManualTime(); }

}  // namespace bench
