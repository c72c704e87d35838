// Computes the rules of functions, keeps them and searches them. A lookup finds the nearest FDE by the index, decodes
// all its rows at once if that was not done yet, and then searches them by binary search. Functions are found by their
// slot in a hash table of indices, so that a file with many functions costs memory only for those that were looked up.
// The effort is bounded for damaged and hostile files, too: what is damaged has kNone, and beyond kMaxHeap times the
// section's size and 64 KiB all rules are dropped, and computed again as needed.
#include "src/unwind/dwarf/cfi/fde_rules.h"

#include <algorithm>
#include <limits>

namespace perfkit::unwind {
namespace {

// How many FDEs before the nearest one to try, if that does not cover the address: it may be empty, or inside of
// another one. Linkers do not make files with more such FDEs in succession.
constexpr size_t kLookBack = 8;
// Maximum of kept bytes for each byte of the section. Valid files need half of it; a hostile one, with records inside
// of each other, could make rows without end.
constexpr size_t kMaxHeap = 12;
// Maximum number of times, on average, that each byte of the section is interpreted when all rows are computed.
constexpr size_t kMaxRuns = 4;
// Maximum size, in bytes, of an FDE's program for Full, which interprets it at each call. The largest one of gcc's
// compiler has 20 KB.
constexpr size_t kMaxFullProgram = 128 << 10;
// Bytes of the section for each change, about: memory is reserved for as many changes. Measured in a dozen programs and
// libraries: 4.8 to 6.2 on x86-64, 10.7 to 12 on aarch64.
constexpr size_t kBytesOfChange = 5;
// Changes of one function whose memory is kept for the next one. Few functions have more.
constexpr size_t kMaxChanges = 4096;

// Appends the changes of rule that the rows of an FDE make. Damaged parts have kNone.
template <class T>
void AppendRules(CfiRecords& records, const Fde& fde, const T& as, std::vector<RuleChange>& changes) {
  uint64_t reached = fde.begin;
  const auto add = [&](uint64_t begin, const Rule& rule) {
    if (begin == fde.begin || rule != changes.back().rule) changes.push_back({begin, rule});
  };
  records.Run(fde, [&](uint64_t begin, uint64_t end, const CfiRow& row) {
    add(begin, as(row));
    reached = end;
    return true;
  });
  if (reached < fde.end) add(reached, Rule());
}

}  // namespace

FdeRules::FdeRules(base::Bytes ident, const CfiSection& section, const MachineRegisters& machine)
    : machine_(machine), records_(ident, section), index_(records_, !section.is_eh) {}

Rule FdeRules::At(uint64_t address, Reach reach) {
  const Function* const function = Find(address, reach);
  return function == nullptr ? Rule() : RuleIn(*function, std::min(address, function->end - 1));
}

bool FdeRules::Full(uint64_t address, Reach reach, CfiRow& row) {
  const Function* const function = Find(address, reach);
  Fde fde;
  if (function == nullptr || !records_.FdeAt(index_.OffsetOf(function->slot), fde)) return false;
  if (fde.program.size() > kMaxFullProgram) return false;
  const uint64_t inside = std::min(address, function->end - 1);
  bool found = false;
  records_.Run(fde, [&](uint64_t, uint64_t end, const CfiRow& at) {
    if (inside >= end) return true;
    row = at;
    found = true;
    return false;
  });
  return found && row.cfa.how != Recovery::kUnspecified;
}

std::optional<uint64_t> FdeRules::FunctionAt(uint64_t address, Reach reach) {
  const Function* const function = Find(address, reach);
  return function == nullptr ? std::nullopt : std::optional(function->begin);
}

std::optional<uint64_t> FdeRules::LandingJumpIn(uint64_t address) {
  const Function* const function = Find(address, Reach::kExact);
  for (uint32_t i = 0; function != nullptr && i < function->rows; ++i) {
    if (rules_[function->first + i].kind == RuleKind::kInstalls) return function->begin + starts_[function->first + i];
  }
  return std::nullopt;
}

const FdeRules::Function* FdeRules::Find(uint64_t address, Reach reach) {
  const size_t count = index_.CountUpTo(address);
  const size_t least = count < kLookBack ? 0 : count - kLookBack;
  for (size_t slot = count; slot-- > least;) {
    const Function& function = FunctionIn(slot);
    if (address < function.begin || function.begin == function.end) continue;
    if (address < function.end || (reach == Reach::kPadded && address - function.end < kPadding)) return &function;
  }
  return nullptr;
}

const FdeRules::Function& FdeRules::FunctionIn(size_t slot) {
  if (functions_.size() * 2 >= buckets_.size()) Grow();
  uint32_t& bucket = Bucket(static_cast<uint32_t>(slot));
  if (bucket != 0) return functions_[bucket - 1];
  if (heap_bytes() > kMaxHeap * records_.section().bytes.size() + (size_t{64} << 10)) {
    Forget();
    return FunctionIn(slot);
  }
  bucket = static_cast<uint32_t>(functions_.size() + 1);
  return Decode(slot);
}

const FdeRules::Function& FdeRules::Decode(size_t slot) {
  Function& function = functions_.emplace_back(
      Function{.begin = 0, .end = 0, .slot = static_cast<uint32_t>(slot), .first = 0, .rows = 0});
  Fde fde;
  if (!records_.FdeAt(index_.OffsetOf(slot), fde)) return function;
  if (fde.end - fde.begin > std::numeric_limits<uint32_t>::max()) return function;
  function.begin = fde.begin;
  function.end = fde.end;
  function.first = static_cast<uint32_t>(rules_.size());
  if (fde.begin == fde.end) return function;
  changes_.clear();
  if (!AppendUsualRules(fde, machine_, changes_)) {
    AppendRules(
        records_, fde, [this](const CfiRow& row) { return RuleFromRow(row, machine_); }, changes_);
  }
  for (const auto& [begin, rule] : changes_) {
    starts_.push_back(static_cast<uint32_t>(begin - fde.begin));
    rules_.push_back(rule);
  }
  function.rows = static_cast<uint32_t>(changes_.size());
  if (changes_.capacity() > kMaxChanges) changes_ = {};
  return function;
}

// An empty bucket always exists: at least half of them are empty.
uint32_t& FdeRules::Bucket(uint32_t slot) {
  const size_t mask = buckets_.size() - 1;
  size_t at = (slot * 0x9e3779b1u >> 8) & mask;
  while (buckets_[at] != 0 && functions_[buckets_[at] - 1].slot != slot) at = (at + 1) & mask;
  return buckets_[at];
}

void FdeRules::Grow() {
  buckets_.assign(std::max<size_t>(16, buckets_.size() * 2), 0);
  for (uint32_t i = 0; i < functions_.size(); ++i) Bucket(functions_[i].slot) = i + 1;
}

void FdeRules::Forget() {
  for (std::vector<uint32_t>* part : {&starts_, &buckets_}) *part = {};
  rules_ = {};
  functions_ = {};
}

// The last row that begins at or before `address`. The first row begins with the function.
Rule FdeRules::RuleIn(const Function& function, uint64_t address) const {
  const auto wanted = static_cast<uint32_t>(address - function.begin);
  const auto first = starts_.begin() + function.first;
  const auto after = std::upper_bound(first, first + function.rows, wanted);
  return rules_[static_cast<size_t>(after - starts_.begin()) - 1];
}

// A function may reach into the next one, whose changes then win.
template <class Append>
SectionChanges FdeRules::ChangesBy(const Append& append) {
  SectionChanges found;
  std::vector<RuleChange>& changes = found.changes;
  changes.reserve(records_.section().bytes.size() / kBytesOfChange);
  size_t first = 0;             // The index of the last function's first change.
  uint64_t begin = 0, end = 0;  // The last function's addresses; without meaning while there are no changes.
  const auto finish = [&](uint64_t next) {
    if (changes.empty()) return;
    const Rule last = changes.back().rule;
    while (changes.back().begin >= next) changes.pop_back();  // The first one begins before `next`.
    if (end < next) {
      found.padding.push_back(changes.size());
      changes.push_back({end, last});
    }
    if (end < next && next - end > kPadding) changes.push_back({end + kPadding, Rule()});
  };
  size_t budget = kMaxRuns * records_.section().bytes.size();
  Fde fde;
  for (size_t slot = 0; slot < index_.size(); ++slot) {
    if (!records_.FdeAt(index_.OffsetOf(slot), fde) || fde.begin == fde.end || fde.program.size() > budget) continue;
    if (fde.end - fde.begin > std::numeric_limits<uint32_t>::max()) continue;
    if (!changes.empty() && fde.begin < begin) continue;
    if (!changes.empty() && fde.begin == begin) {
      changes.resize(first);  // The later one wins, as in a lookup.
    } else {
      finish(fde.begin);
    }
    first = changes.size();
    begin = fde.begin;
    end = fde.end;
    append(fde, changes);
    budget -= fde.program.size();
  }
  finish(std::numeric_limits<uint64_t>::max());
  return found;
}

SectionChanges FdeRules::Changes(absl::FunctionRef<Rule(const CfiRow&, const Rule&)> slow) {
  const auto as = [&](const CfiRow& row) {
    const Rule rule = RuleFromRow(row, machine_);
    return rule.kind == RuleKind::kSlow ? slow(row, rule) : rule;
  };
  return ChangesBy([&](const Fde& fde, std::vector<RuleChange>& changes) {
    if (!AppendUsualRules(fde, machine_, changes)) AppendRules(records_, fde, as, changes);
  });
}

SectionChanges FdeRules::ChangesAs(absl::FunctionRef<Rule(const CfiRow&)> as) {
  return ChangesBy([&](const Fde& fde, auto& changes) { AppendRules(records_, fde, as, changes); });
}

size_t FdeRules::heap_bytes() const {
  return index_.heap_bytes() + functions_.capacity() * sizeof(Function) + rules_.capacity() * sizeof(Rule) +
         (starts_.capacity() + buckets_.capacity()) * sizeof(uint32_t);
}

}  // namespace perfkit::unwind
