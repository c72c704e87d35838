// Call frame information of one module: how the caller of each of its places is found.
//
// From .eh_frame, and where that says nothing from .debug_frame, of the module or of its separate debug file. What a
// function's records say is worked out when it is first asked for, all rows at once, and kept in twelve bytes a row.
//
//   address ──.eh_frame_hdr──> FDE ──own interpreter──> rows ──> Rule      nearly always
//                                                      └─────> CfiRow     where the rule is kSlow
//
// Addresses are the module's own: as its file says, before it is moved to where it runs. Of return addresses look up
// the byte before. Files are hostile: every walk is bounded, and what is damaged has no information.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "src/elf/image.h"
#include "src/unwind/dwarf/cfi_row.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// One thread at a time: look-ups fill caches.
class Cfi {
 public:
  // Looks at headers only. A module that has no such information, or is for another machine than x86-64 or aarch64,
  // gives kNone everywhere and costs nothing. The images' bytes must outlive this.
  explicit Cfi(const elf::Image& module, std::optional<elf::Image> debug_file = std::nullopt);
  ~Cfi();
  Cfi(Cfi&&) noexcept;
  Cfi& operator=(Cfi&&) noexcept;

  // Allocates only when a function is met for the first time, and no more in all than a dozen times the section's size.
  Rule At(uint64_t address);

  // The whole row at `address`; false where there is none. Kept nowhere: a microsecond each time.
  bool Full(uint64_t address, CfiRow& row);

  // Where the function begins that `address` is in; nothing where no information covers it.
  std::optional<uint64_t> FunctionAt(uint64_t address);

  // Where rules change in the module, by address, rising: from `address` on, to the next one, `rule` holds. Places
  // that nothing covers are kNone. `visit` returns false to stop.
  using VisitRow = absl::FunctionRef<bool(uint64_t address, const Rule& rule)>;
  void ForEachRow(VisitRow visit);

  // The same where `as` says what is kept of a row: kNone only of those that say nothing.
  void ForEachRow(absl::FunctionRef<Rule(const CfiRow& row)> as, VisitRow visit);

  size_t heap_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // none without information
};

}  // namespace perfkit::unwind
