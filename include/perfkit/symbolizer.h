// Names of code: which function, of which module, a program counter lies in.
//
//   perfkit::Symbolizer symbolizer;                     // with SamplerOptions::side_band
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     symbolizer.Add(record, sampler->layout());        // what is mapped where, as it changes
//     perfkit::Dispatch(record, sampler->layout(), [&](const perfkit::Sample& sample) {
//       ++counts[symbolizer.Locate(sample.task()->pid, *sample.ip(), sample.cpu_mode())];
//     });
//   });
//   for (const auto& [location, count] : counts) Print(symbolizer.Name(location), count);
//
// Two steps, because a pc means something only as long as nothing else is mapped there, and names take files to read:
// Locate at once, without files; Name whenever there is time.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "perfkit/record.h"

namespace perfkit {

namespace symbolize {
class SymbolizerImpl;
class DebugFetcher;
class LineSource;
}  // namespace symbolize

// A location in a module, whatever the address at which a process has it mapped: also a key to count by. Of one
// Symbolizer: another one numbers its modules in its own way.
struct CodeLocation {
  uint32_t module = 0;  // 0: nobody knows what was there
  uint64_t offset = 0;  // in the module's file; of the kernel, of memory that is no file's, and of unknown code: the pc

  bool known() const { return module != 0; }
  friend auto operator<=>(const CodeLocation&, const CodeLocation&) = default;
};

// What is known of a location. Views live as long as the Symbolizer.
struct Symbol {
  std::string_view function;  // "" when it has no name: SymbolizedModule::status may say why
  // A path; "[kernel]", a kernel module as "[nf_tables]", "[vdso]", "//anon" (code made at run time), "[heap]", …;
  // "[unknown]" where nothing that we know of was mapped.
  std::string_view module;
  // From the function's begin. Without a function: the address in the module's file, as nm and addr2line count, or the
  // pc where there is no file.
  uint64_t offset = 0;
  bool kernel = false;

  bool named() const { return !function.empty(); }
};

// One call at a location: the function itself, or one that the compiler inlined there.
struct SourceFrame {
  std::string_view function;  // "" when it has no name
  std::string_view file;      // as the compiler was given it, below the folder that it ran in; "" when nobody knows
  uint32_t line = 0;          // 0: of no line, or nobody knows
  uint32_t column = 0;        // in bytes from 1; 0: nobody knows
  bool inlined = false;       // into the next one, which calls it there
};

// One of many locations, see Symbolizer::ResolveAll. The frames are gone when the visitor returns.
struct ResolvedLocation {
  size_t index = 0;  // in the list that was given
  Symbol symbol;
  std::span<const SourceFrame> frames;
  size_t done = 0;  // how many are, with this one: progress
};

// A module whose names were asked for.
struct SymbolizedModule {
  std::string name;
  // OK, or why it has no names, or few: what was asked, what is in the way, what would help.
  absl::Status status;
  // The same of source lines and inlined calls. OK as long as nobody asks for them.
  absl::Status lines;
  size_t symbols = 0;      // pieces of code with a name
  std::string debug_file;  // the separate file that some of the names come from, if any
};

struct SymbolizerOptions {
  bool demangle = true;  // C++ names as they are written
  // Where separate debug files are; "": nowhere.
  std::string debug_root = "/usr/lib/debug";
  std::string proc = "/proc";
  // Reads source lines and inlined calls: perfkit::DwarfLines (dwarf_lines.h, component perfkit::dwarf), or nullptr.
  std::unique_ptr<symbolize::LineSource> (*lines)(size_t cache_bytes) = nullptr;
  // Asks servers for separate debug files that are not here, which may take seconds: perfkit::Debuginfod (debuginfod.h,
  // component perfkit::dwarf), or nullptr: nobody is asked.
  std::unique_ptr<symbolize::DebugFetcher> (*fetch)() = nullptr;
  // How much may be kept of what was decoded of debug information, in all modules together.
  size_t lines_cache_bytes = 64 << 20;
};

// Knows what processes have mapped, and the names in it. For one thread at a time. Moves, never copies.
//
// Reads each module's file once, when the first name in it is asked for (some ms; libraries of 100 MiB some 100), and
// the kernel's names when the first name of the kernel is. Files are read as they are then: one that was replaced since
// it ran is noticed and gives no names. Allocates as it learns; a location that was named before costs some ten ns.
//
// Code made at run time has the names that its compiler lists in /tmp/perf-PID.map (node --perf-basic-prof, Java's
// perf-map-agent, …). The list is read on when it has no name for a pc; of an address that was used twice it gives the
// latest function only. It must be a file of the process's user's, root's or this process's, and no symbolic link.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options = {});
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // Takes MMAP, MMAP2, FORK, EXIT and COMM records, in order of time, and passes over all others. Whether it was one
  // that can change what later pcs mean.
  bool Add(const RawRecord& record, const SampleLayout& layout);

  // What process `pid` has mapped now, instead of what was known of it. NotFound when there is none, PermissionDenied
  // when it may not be looked at.
  absl::Status AddProcess(pid_t pid);

  // Where `pc` is, by what was mapped in process `pid` according to the latest record. `mode`: Sample::cpu_mode(), or
  // that of the part of a call chain. Reads no file. Return addresses: look up the pc before it.
  CodeLocation Locate(uint32_t pid, uint64_t pc, CpuMode mode = CpuMode::kUser);
  // Its name.
  Symbol Name(CodeLocation location);
  // Both at once.
  Symbol Resolve(uint32_t pid, uint64_t pc, CpuMode mode = CpuMode::kUser);

  // The calls at a location: what was inlined there, the innermost first, and the function itself last. Never empty:
  // without debug information it is what Name says, and SymbolizedModule::lines says why. The frames are valid until
  // the next call of this Symbolizer, the texts as long as it lives. The first one in a module reads its units' ranges,
  // each first one in a unit decodes that (some ms for a large one); then some 100 ns.
  std::span<const SourceFrame> Inlined(CodeLocation location);

  // Both of many locations: module by module and in the order of their code, so that each unit is decoded once, however
  // little of it may be kept. `visit` gets one after the other and may stop by returning false; whether it never did.
  bool ResolveAll(std::span<const CodeLocation> locations, absl::FunctionRef<bool(const ResolvedLocation&)> visit);

  // All whose names were asked for, the kernel among them, by name.
  std::vector<SymbolizedModule> Modules() const;

 private:
  std::unique_ptr<symbolize::SymbolizerImpl> impl_;
};

}  // namespace perfkit
