// Searches symbol tables and mappings for the place of a uprobe.
#include "src/event/probe_location.h"

#include <elf.h>

#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/elf/symbols.h"
#include "src/event/parse_error.h"
#include "src/event/suggest.h"
#include "src/sys/files.h"

namespace perfkit::event {
namespace {

using elf::SymbolTable;

// Its callers know where in the event's text the symbol stands, and add it.
absl::Status Refuse(absl::StatusCode code, const std::string& text) { return absl::Status(code, text); }

// What a table has under one name.
struct Matches {
  std::vector<uint64_t> current;  // distinct addresses
  std::vector<uint64_t> old;      // of versions that only old programs ask for
  bool chosen_at_load = false;    // an IFUNC, in its current version
  bool not_code = false;          // a variable

  // An old version is better than none, but not better than a current one that cannot be probed.
  const std::vector<uint64_t>& best() const { return current.empty() && !chosen_at_load ? old : current; }
};

// Aliases of one function are one place.
void AddOnce(std::vector<uint64_t>& addresses, uint64_t address) {
  for (const uint64_t known : addresses) {
    if (known == address) return;
  }
  addresses.push_back(address);
}

// The whole table: a second function of that name is what makes it ambiguous.
Matches FindIn(const elf::Image& image, SymbolTable table, std::string_view name) {
  Matches matches;
  elf::ForEachSymbol(image, table, [&](const elf::Symbol& symbol) {
    if (!symbol.defined() || symbol.name != name) return true;
    // Hand-written assembly often leaves the type out.
    const bool code = symbol.type == STT_FUNC || symbol.type == STT_NOTYPE;
    matches.chosen_at_load |= symbol.type == STT_GNU_IFUNC && !symbol.old_version;
    matches.not_code |= !code && symbol.type != STT_GNU_IFUNC;
    if (code) AddOnce(symbol.old_version ? matches.old : matches.current, symbol.address);
    return true;
  });
  return matches;
}

constexpr size_t kMaxCompared = 50'000;  // names; a browser has millions, and each costs microseconds

// Defined functions only: imported ones are not in this file.
absl::Status NoSuchSymbol(const elf::Image& image, std::string_view name) {
  std::vector<std::string> known;
  for (const SymbolTable table : {SymbolTable::kDynamic, SymbolTable::kStatic}) {
    elf::ForEachSymbol(image, table, [&](const elf::Symbol& symbol) {
      if (symbol.defined() && symbol.type == STT_FUNC && !symbol.name.empty()) known.emplace_back(symbol.name);
      return known.size() < kMaxCompared;
    });
    if (!known.empty()) break;
  }
  const std::string hint =
      known.empty() ? "; it has no symbols: give an offset, as in 'file+0x1234'" : DidYouMean(name, known);
  return Refuse(absl::StatusCode::kNotFound, absl::StrFormat("the file defines no '%s'%s", Printable(name), hint));
}

// Executable segments only: the kernel would plant a probe into data, where it changes a variable.
absl::StatusOr<uint64_t> OffsetOf(const elf::Image& image, uint64_t address, std::string_view name) {
  const std::optional<uint64_t> offset = image.FileOffset(address, PF_X);
  if (offset) return *offset;
  return Refuse(absl::StatusCode::kInvalidArgument, absl::StrFormat("'%s' is no code of the file", Printable(name)));
}

// Whether file name `base` is `name`, or is `name` and then ".so…" or "-version.so…".
bool IsLibraryCalled(std::string_view base, std::string_view name) {
  if (!base.starts_with(name)) return false;
  base.remove_prefix(name.size());
  return base.empty() || base.starts_with(".so") || (base.starts_with('-') && base.find(".so") != base.npos);
}

}  // namespace

// The dynamic table is what a library is used by; the static one has its private functions.
absl::StatusOr<uint64_t> FindCode(const elf::Image& image, std::string_view symbol) {
  for (const SymbolTable table : {SymbolTable::kDynamic, SymbolTable::kStatic}) {
    const Matches matches = FindIn(image, table, symbol);
    if (matches.best().size() == 1) return OffsetOf(image, matches.best().front(), symbol);
    if (matches.best().size() > 1) {
      return Refuse(absl::StatusCode::kInvalidArgument,
                    absl::StrFormat("%d functions of the file are called '%s'; give an offset, as in 'file+0x%x'",
                                    matches.best().size(), Printable(symbol),
                                    image.FileOffset(matches.best().front(), PF_X).value_or(0)));
    }
    if (matches.chosen_at_load) {
      return Refuse(absl::StatusCode::kInvalidArgument,
                    absl::StrFormat("'%s' is chosen by the loader among several functions (IFUNC): a probe on it would "
                                    "count that choice, not the calls; name one of those functions",
                                    Printable(symbol)));
    }
    if (matches.not_code) {
      return Refuse(absl::StatusCode::kInvalidArgument,
                    absl::StrFormat("'%s' is a variable, not code", Printable(symbol)));
    }
  }
  return NoSuchSymbol(image, symbol);
}

// The first mapping wins: the program itself comes before its libraries.
absl::StatusOr<std::string> FindMappedFile(std::string_view name, const EventRoots& roots) {
  const absl::StatusOr<std::string> maps = sys::ReadFile(roots.proc + "/self/maps");
  if (!maps.ok()) return sys::WithMountRemedy(maps.status(), sys::KernelFiles::kProc, roots.proc);
  std::string found;
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const size_t start = line.find('/');
    if (!found.empty() || start == std::string_view::npos) return;
    const std::string_view path = line.substr(start);
    if (IsLibraryCalled(path.substr(path.rfind('/') + 1), name)) found = path;
  });
  if (!found.empty()) return found;
  return Refuse(absl::StatusCode::kNotFound,
                absl::StrFormat("'%s' is no path, and this process has mapped no file of that name", Printable(name)));
}

}  // namespace perfkit::event
