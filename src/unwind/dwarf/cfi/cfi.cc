// Combines the two sections of a module's call frame information. A lookup first asks both for code of functions,
// .eh_frame before .debug_frame, and then both for the padding after functions: a section that covers an address wins
// over one that only pads it. Each section is read when it is first needed, because .eh_frame may have to be indexed
// and .debug_frame decompressed. Merge joins the changes of both by the same precedence.
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

// Reads the changes of one section one after the other.
class ChangeReader {
 public:
  explicit ChangeReader(const SectionChanges& from) : from_(from) {}

  bool done() const { return next_ == from_.changes.size(); }
  // Returns the address of the next change; UINT64_MAX if there is none.
  uint64_t NextBegin() const { return done() ? UINT64_MAX : from_.changes[next_].begin; }
  // Reads all changes at `address`.
  void ReadThrough(uint64_t address) {
    for (; !done() && NextBegin() == address; ++next_) {
      rule_ = from_.changes[next_].rule;
      const bool is_padding = padding_ < from_.padding.size() && from_.padding[padding_] == next_;
      padding_ += is_padding ? 1 : 0;
      rank_ = rule_.kind == RuleKind::kNone ? 0 : is_padding ? 1 : 2;
    }
  }

  // The rule that the last change has set.
  const Rule& rule() const { return rule_; }
  // 2 if functions cover the code, 1 if it is padding, 0 if there is no information.
  int rank() const { return rank_; }

 private:
  const SectionChanges& from_;
  size_t next_ = 0, padding_ = 0;
  Rule rule_;
  int rank_ = 0;
};

}  // namespace

struct Cfi::Parts {
  // Return a section's rules, which are read at the first call, or nullptr.
  FdeRules* Eh();
  FdeRules* Debug();
  // Calls ask(rules, reach) in the order of precedence until it returns true.
  template <class T>
  bool Try(const T& ask);
  // Returns changes_of(rules) of both sections, merged by the same precedence.
  template <class T>
  std::vector<RuleChange> Merge(const T& changes_of);

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

template <class T>
std::vector<RuleChange> Cfi::Parts::Merge(const T& changes_of) {
  FdeRules* const first = Eh();
  FdeRules* const second = Debug();
  if (first == nullptr || second == nullptr) {
    FdeRules* const only = first != nullptr ? first : second;
    return only != nullptr ? changes_of(*only).changes : std::vector<RuleChange>();
  }
  const SectionChanges in_first = changes_of(*first), in_second = changes_of(*second);
  std::vector<RuleChange> merged;
  for (ChangeReader a(in_first), b(in_second); !a.done() || !b.done();) {
    const uint64_t next = std::min(a.NextBegin(), b.NextBegin());
    a.ReadThrough(next);
    b.ReadThrough(next);
    merged.push_back({next, a.rank() >= b.rank() ? a.rule() : b.rule()});
  }
  return merged;
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

std::vector<RuleChange> Cfi::Changes() {
  return Changes([](const CfiRow&, const Rule& rule) { return rule; });
}

std::vector<RuleChange> Cfi::Changes(SlowRule slow) {
  if (parts_ == nullptr) return {};
  return parts_->Merge([&](FdeRules& rules) { return rules.Changes(slow); });
}

std::vector<RuleChange> Cfi::ChangesAs(AsRule as) {
  if (parts_ == nullptr) return {};
  return parts_->Merge([&](FdeRules& rules) { return rules.ChangesAs(as); });
}

size_t Cfi::heap_bytes() const {
  if (parts_ == nullptr) return 0;
  return sizeof(Parts) + parts_->storage.capacity() + (parts_->eh ? parts_->eh->heap_bytes() : 0) +
         (parts_->debug ? parts_->debug->heap_bytes() : 0);
}

}  // namespace perfkit::unwind
