// Names of code: the function and the module that a program counter lies in.
//
//   perfkit::Symbolizer symbolizer;                     // with SamplerOptions::side_band
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     symbolizer.Add(record, sampler->layout());        // mappings, as they change
//     perfkit::Dispatch(record, sampler->layout(), [&](const perfkit::Sample& sample) {
//       ++counts[symbolizer.Locate(sample.task()->pid, *sample.ip(), sample.cpu_mode())];
//     });
//   });
//   for (const auto& [location, count] : counts) Print(symbolizer.Name(location), count);
//
// There are two steps. Locate has to be called at once, because a pc identifies code only as long as nothing else is
// mapped there; it reads no file. Name reads files, and may be called at any later time.
#pragma once

#include "perfkit/detail/library_only.h"

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

// A location in a module, the same in each process that has the module mapped. Can be a key of maps. Valid for the
// Symbolizer that returned it: each numbers modules in its own way.
struct CodeLocation {
  uint32_t module = 0;  // Number of the module; 0 means unknown.
  uint64_t offset = 0;  // Offset in the module's file; the pc for the kernel, anonymous memory and unknown code.

  bool known() const { return module != 0; }
  friend auto operator<=>(const CodeLocation&, const CodeLocation&) = default;
};

// The function at a location. Views are valid as long as the Symbolizer.
struct Symbol {
  std::string_view function;  // "" if it has no name: SymbolizedModule::status may say why.
  // A path; "[kernel]"; a kernel module as "[nf_tables]"; "[vdso]"; "//anon" for generated code; "[heap]", …;
  // "[hypervisor]", "[guest.kernel]", "[guest.user]"; "[unknown]" if no known mapping contains the pc.
  std::string_view module;
  // Bytes from the start of the function. Without a function: the address in the module's file, as nm and addr2line
  // print it; the offset in the file if that can't be read (SymbolizedModule::status); or the pc if there is no file.
  uint64_t offset = 0;
  bool kernel = false;

  bool named() const { return !function.empty(); }
};

// One call at a location: the function itself, or a function that the compiler inlined. Texts are valid as long as the
// Symbolizer.
struct SourceFrame {
  std::string_view function;  // "" if it has no name.
  std::string_view file;      // Path as given to the compiler, below its working directory; "" if unknown.
  uint32_t line = 0;          // From 1; 0 if unknown or if the code belongs to no line.
  uint32_t column = 0;        // In bytes from 1; 0 if unknown.
  bool inlined = false;       // Inlined into the next frame, which calls it.
};

// A location that Symbolizer::ResolveAll has resolved. `frames` is valid until the visitor returns.
struct ResolvedLocation {
  size_t index = 0;  // Index in the list of locations.
  Symbol symbol;
  std::span<const SourceFrame> frames;
  size_t done = 0;  // Number of locations resolved so far, this one included.
};

// A module in which names were looked up.
struct SymbolizedModule {
  std::string name;
  // OK, or why it has no names or too few: what was tried, the cause, the remedy.
  absl::Status status;
  // The same for source lines and inlined calls. OK if none were looked up. NotFound also if lines are known, but the
  // inlined calls are in files that are missing, or that are not read (.dwo and .dwp of -gsplit-dwarf).
  absl::Status lines;
  size_t symbols = 0;      // Number of named ranges of code.
  std::string debug_file;  // Path of the separate debug file that was used; "" if none.
};

struct SymbolizerOptions {
  bool demangle = true;  // Demangle C++ and Rust names.
  // Folder of separate debug files; "" means none.
  std::string debug_root = "/usr/lib/debug";
  std::string proc = "/proc";
  // Reads source lines and inlined calls: perfkit::DwarfLines (dwarf_lines.h, component perfkit::dwarf), or nullptr.
  std::unique_ptr<symbolize::LineSource> (*lines)(size_t cache_bytes) = nullptr;
  // Downloads missing debug files from debuginfod servers, which may take seconds: perfkit::Debuginfod (debuginfod.h,
  // component perfkit::dwarf), or nullptr for no downloads.
  std::unique_ptr<symbolize::DebugFetcher> (*fetch)() = nullptr;
  // Maximum bytes of decoded debug information, for all modules together.
  size_t lines_cache_bytes = 64 << 20;
};

// Names the code of processes. Movable, not copyable: a moved-from one may only be assigned to or destroyed. Not
// thread-safe: any thread may call it, one at a time.
//
// Reads a module's file at the first lookup of a name in it (some ms; some 100 ms for a library of 100 MiB), and the
// kernel's names at the first lookup in the kernel. A file that was replaced since it was mapped gives no names.
// Allocates for new modules and locations; a location that was named before takes some ten ns.
//
// Code generated at run time has the names that its compiler writes to /tmp/perf-PID.map (node --perf-basic-prof,
// Java's perf-map-agent and others). Each lookup of such a name first reads the lines that were appended to the file, in
// about 3 us. If an address was used twice, the latest function counts. A forked process has the names of its own file;
// for other addresses, those of its parent's file, except at addresses that the parent has used twice. The file must
// belong to the user of that process, to root or to this process's user, and must not be a symbolic link. A file
// that is older than the process is ignored: an earlier process with the same number wrote it. After exec, the names
// that the program before has listed stay known.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options = {});
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // Adds an MMAP, MMAP2, FORK, EXIT or COMM record; ignores others. Requires records in order of time. Returns true if
  // the record can change what later pcs mean. If the parent in a FORK record is unknown, reads its mappings and those
  // of the child in /proc. If one of both has called exec since the fork, or has ended, what was read holds only once a
  // record of any kind is as late as the reading, by CLOCK_MONOTONIC: so pass samples as well. Looks at each file
  // without build-id that is mapped again, because it may have been changed.
  bool Add(const RawRecord& record, const SampleLayout& layout);

  // Replaces the known mappings of process `pid` by its current ones, from /proc. Errors: NotFound if there is no such
  // process; PermissionDenied if this user may not read its mappings.
  absl::Status AddProcess(pid_t pid);

  // Returns the location of `pc` by the mappings that process `pid` has after the latest record. `mode` is
  // Sample::cpu_mode(), or the mode of that part of a call chain. Reads no file, except /proc/PID/status at the first
  // pc in generated code of a forked process. For a return address, pass the address minus 1.
  CodeLocation Locate(uint32_t pid, uint64_t pc, CpuMode mode = CpuMode::kUser);
  // Returns the function at a location.
  Symbol Name(CodeLocation location);
  // Returns Name(Locate(pid, pc, mode)), with a cache.
  Symbol Resolve(uint32_t pid, uint64_t pc, CpuMode mode = CpuMode::kUser);

  // Returns the calls at a location: inlined ones, innermost first, and the function itself last. Never empty: without
  // debug information it has the function of Name, and SymbolizedModule::lines says why. The frames are valid until the
  // next call of this Symbolizer. The first call in a module reads the ranges of its compilation units, the first call
  // in a unit decodes it (some ms if it is large); later calls take some 100 ns.
  std::span<const SourceFrame> Inlined(CodeLocation location);

  // Resolves many locations, by module and address, so that each compilation unit is decoded only once, even with a
  // small cache. Calls visit for each location; stops if visit returns false. Returns true if visit never did.
  bool ResolveAll(std::span<const CodeLocation> locations, absl::FunctionRef<bool(const ResolvedLocation&)> visit);

  // Returns the build-id of a location's module as hexadecimal digits: as the kernel's record has it (Linux 5.12), or
  // as the file has it, once a name was looked up there. "" if unknown, for code without a file, and for the kernel.
  std::string BuildId(CodeLocation location);

  // Returns all modules in which names were looked up, including the kernel, sorted by name.
  std::vector<SymbolizedModule> Modules() const;

 private:
  std::unique_ptr<symbolize::SymbolizerImpl> impl_;
};

}  // namespace perfkit
