// Combines the two sections of a module's call frame information. A lookup first asks both for code of functions,
// .eh_frame before .debug_frame, and then both for the padding after functions: a section that covers an address wins
// over one that only pads it. Each section is read when it is first needed, because .eh_frame may have to be indexed
// and .debug_frame decompressed. Merge visits the changes of both by the same precedence.
#include "src/unwind/dwarf/cfi/cfi.h"

#include <elf.h>

#include <algorithm>
#include <vector>

#include "src/unwind/dwarf/cfi/cfi_sections.h"
#include "src/unwind/dwarf/cfi/fde_rules.h"

namespace perfkit::unwind {
namespace {

using Reach = FdeRules::Reach;

std::optional<MachineRegisters> MachineOf(const elf::Image& image) {
  if (image.machine() == EM_X86_64) return kX86Registers;
  if (image.machine() == EM_AARCH64) return kArmRegisters;
  return std::nullopt;
}

// A change of rule in one section. `rank`: 2 if functions cover the code, 1 if it is padding, 0 if there is no
// information.
struct Change {
  uint64_t address;
  Rule rule;
  int rank;
};

// `for_each(rules, visit)` is ForEach or ForEachWhole.
template <class ForEach>
std::vector<Change> ChangesOf(FdeRules& rules, const ForEach& for_each) {
  std::vector<Change> changes;
  for_each(rules, [&](std::span<const RuleChange> of_function, uint64_t end) {
    for (const auto& [begin, rule] : of_function) {
      changes.push_back({begin, rule, rule.kind == RuleKind::kNone ? 0 : begin >= end ? 1 : 2});
    }
    return true;
  });
  return changes;
}

}  // namespace

struct Cfi::Parts {
  // Return a section's rules, which are read at the first call, or nullptr.
  FdeRules* Eh();
  FdeRules* Debug();
  // Calls ask(rules, reach) in the order of precedence until it returns true.
  template <class T>
  bool Try(const T& ask);
  // Visits the changes of both sections, merged by the same precedence.
  template <class ForEach>
  void Merge(const ForEach& for_each, VisitRow visit);

  MachineRegisters machine;
  elf::Image module;
  std::optional<elf::Image> debug_file;
  std::optional<CfiSection> eh_pending;
  std::optional<FdeRules> eh;
  std::optional<FdeRules> debug;
  bool debug_pending = false;
  std::vector<std::byte> storage;
};

FdeRules* Cfi::Parts::Eh() {
  if (eh_pending) {
    eh.emplace(module.bytes(), *eh_pending, machine);
    eh_pending.reset();
  }
  return eh ? &*eh : nullptr;
}

FdeRules* Cfi::Parts::Debug() {
  if (debug_pending) {
    debug_pending = false;
    const elf::Image* const holder = HasDebugFrame(module) ? &module : &*debug_file;
    if (const auto section = FindDebugFrame(*holder, storage)) debug.emplace(holder->bytes(), *section, machine);
  }
  return debug ? &*debug : nullptr;
}

template <class T>
bool Cfi::Parts::Try(const T& ask) {
  for (const Reach reach : {Reach::kExact, Reach::kPadded}) {
    for (FdeRules* (Parts::*const part)() : {&Parts::Eh, &Parts::Debug}) {
      FdeRules* const rows = (this->*part)();
      if (rows != nullptr && ask(*rows, reach)) return true;
    }
  }
  return false;
}

// Copies the changes of both sections if there are two, which is rare.
template <class ForEach>
void Cfi::Parts::Merge(const ForEach& for_each, VisitRow visit) {
  FdeRules* const first = Eh();
  FdeRules* const second = Debug();
  if (first == nullptr || second == nullptr) {
    FdeRules* const only = first != nullptr ? first : second;
    if (only == nullptr) return;
    return for_each(*only, [&](std::span<const RuleChange> changes, uint64_t) {
      return std::ranges::all_of(changes, [&](const RuleChange& at) { return visit(at.begin, at.rule); });
    });
  }
  const std::vector<Change> in_first = ChangesOf(*first, for_each), in_second = ChangesOf(*second, for_each);
  Change a{}, b{};
  for (size_t i = 0, j = 0; i < in_first.size() || j < in_second.size();) {
    const uint64_t next = std::min(i < in_first.size() ? in_first[i].address : UINT64_MAX,
                                   j < in_second.size() ? in_second[j].address : UINT64_MAX);
    while (i < in_first.size() && in_first[i].address == next) a = in_first[i++];
    while (j < in_second.size() && in_second[j].address == next) b = in_second[j++];
    if (!visit(next, a.rank >= b.rank ? a.rule : b.rule)) return;
  }
}

Cfi::Cfi(const elf::Image& module, std::optional<elf::Image> debug_file) {
  const std::optional<MachineRegisters> machine = MachineOf(module);
  if (!machine) return;
  const std::optional<CfiSection> eh = FindEhFrame(module);
  const bool has_debug = HasDebugFrame(module) || (debug_file && HasDebugFrame(*debug_file));
  if (!eh && !has_debug) return;
  parts_ = std::unique_ptr<Parts>(new Parts{*machine, module, debug_file, eh, {}, {}, has_debug, {}});
}

Cfi::~Cfi() = default;
Cfi::Cfi(Cfi&&) noexcept = default;
Cfi& Cfi::operator=(Cfi&&) noexcept = default;

Rule Cfi::At(uint64_t address) {
  bool covered = false;
  return At(address, covered);
}

Rule Cfi::At(uint64_t address, bool& covered) {
  Rule rule;
  covered = false;
  if (parts_ == nullptr) return rule;
  parts_->Try([&](FdeRules& rows, Reach reach) {
    rule = rows.At(address, reach);
    covered = rule.kind != RuleKind::kNone && reach == Reach::kExact;
    return rule.kind != RuleKind::kNone;
  });
  return rule;
}

bool Cfi::IsCovered(uint64_t address) {
  if (parts_ == nullptr) return false;
  return parts_->Try([&](FdeRules& rows, Reach reach) {
    return reach == Reach::kExact && rows.FunctionAt(address, reach).has_value();
  });
}

bool Cfi::IsFunctionBegin(uint64_t address) {
  if (parts_ == nullptr) return false;
  return parts_->Try([&](FdeRules& rows, Reach reach) {
    return reach == Reach::kExact && rows.FunctionAt(address, reach) == address;
  });
}

bool Cfi::Full(uint64_t address, CfiRow& row) {
  if (parts_ == nullptr) return false;
  return parts_->Try([&](FdeRules& rows, Reach reach) { return rows.Full(address, reach, row); });
}

std::optional<uint64_t> Cfi::LandingJumpIn(uint64_t address) {
  std::optional<uint64_t> jump;
  if (parts_ == nullptr) return jump;
  parts_->Try([&](FdeRules& rows, Reach reach) {
    if (reach != Reach::kExact || !rows.FunctionAt(address, reach)) return false;
    jump = rows.LandingJumpIn(address);
    return true;
  });
  return jump;
}

std::optional<uint64_t> Cfi::FunctionAt(uint64_t address) {
  std::optional<uint64_t> begin;
  if (parts_ == nullptr) return begin;
  parts_->Try([&](FdeRules& rows, Reach reach) { return (begin = rows.FunctionAt(address, reach)).has_value(); });
  return begin;
}

void Cfi::ForEachRow(VisitRow visit) {
  ForEachRow([](const CfiRow&, const Rule& rule) { return rule; }, visit);
}

void Cfi::ForEachRow(SlowRule slow, VisitRow visit) {
  if (parts_ != nullptr) parts_->Merge([&](FdeRules& rules, auto each) { rules.ForEach(slow, each); }, visit);
}

void Cfi::ForEachWholeRow(AsRule as, VisitRow visit) {
  if (parts_ != nullptr) parts_->Merge([&](FdeRules& rules, auto each) { rules.ForEachWhole(as, each); }, visit);
}

size_t Cfi::heap_bytes() const {
  if (parts_ == nullptr) return 0;
  return sizeof(Parts) + parts_->storage.capacity() + (parts_->eh ? parts_->eh->heap_bytes() : 0) +
         (parts_->debug ? parts_->debug->heap_bytes() : 0);
}

}  // namespace perfkit::unwind
