// Sorts symbols, chooses one name for each address, and flattens. Symbol tables are made by people and tools of all
// kinds: functions have aliases, lie inside of one another, and may have no size. After three passes (one entry for
// each address, an end for each entry, no overlaps) all of that is gone, and a search is a search in a sorted list.
#include "src/symbolize/symbol_table.h"

#include <algorithm>
#include <limits>

#include "src/base/flatten.h"
#include "src/base/last_at.h"

namespace perfkit::symbolize {
namespace {

constexpr uint64_t kMaxNameBytes = std::numeric_limits<uint32_t>::max();

size_t Underscores(std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); }

}  // namespace

std::optional<SymbolTable::Found> SymbolTable::Find(uint64_t address) const {
  const Piece* const piece =
      base::LastAt(pieces_.data(), pieces_.size(), address, [](const Piece& each) { return each.begin; });
  if (piece == nullptr || address >= piece->end) return std::nullopt;
  return Found{std::string_view(names_).substr(piece->name_at, piece->name_size), piece->function_begin};
}

SymbolTableBuilder::SymbolTableBuilder(uint64_t max_name_bytes)
    : max_name_bytes_(std::min(max_name_bytes, kMaxNameBytes)) {}

bool SymbolTableBuilder::Add(std::string_view name, uint64_t begin, uint64_t size, Binding binding) {
  if (name.size() > max_name_bytes_ - names_.size()) return false;
  if (name.empty() || size > std::numeric_limits<uint64_t>::max() - begin) return true;
  entries_.push_back(
      {begin, begin + size, static_cast<uint32_t>(names_.size()), static_cast<uint32_t>(name.size()), binding});
  names_ += name;
  return true;
}

// perf's rule (tools/perf/util/symbol.c, choose_best_symbol), so that both tools print the same names. Prefers a name
// with a size, then by binding, then with fewer leading underscores, then the longer one. The last criterion is the
// alphabet, so that the order of the tables has no effect.
bool SymbolTableBuilder::IsBetter(const Entry& a, const Entry& b) const {
  const bool a_sized = a.end > a.begin, b_sized = b.end > b.begin;
  if (a_sized != b_sized) return a_sized;
  if (a.binding != b.binding) return a.binding > b.binding;
  const std::string_view x = NameOf(a), y = NameOf(b);
  if (Underscores(x) != Underscores(y)) return Underscores(x) < Underscores(y);
  if (x.size() != y.size()) return x.size() > y.size();
  return x < y;
}

// Keeps one entry for each address: its best name with the largest size.
void SymbolTableBuilder::MergeAliases() {
  std::sort(entries_.begin(), entries_.end(),
            [this](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : IsBetter(a, b); });
  size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (kept > 0 && entries_[kept - 1].begin == entry.begin) {
      entries_[kept - 1].end = std::max(entries_[kept - 1].end, entry.end);
    } else {
      entries_[kept++] = entry;
    }
  }
  entries_.resize(kept);
}

// An entry of unknown size inside a function of known size is a label, so it is removed. Other ones end at the next
// entry or bound.
void SymbolTableBuilder::EndOpenOnes() {
  std::sort(bounds_.begin(), bounds_.end());
  uint64_t covered_to = 0;
  size_t kept = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry entry = entries_[i];
    // `covered_to` is how far the functions of known size reach that began earlier.
    if (entry.end == entry.begin) {
      if (entry.begin < covered_to) continue;
      const auto bound = std::upper_bound(bounds_.begin(), bounds_.end(), entry.begin);
      const uint64_t next = i + 1 < entries_.size() ? entries_[i + 1].begin : std::numeric_limits<uint64_t>::max();
      if (bound == bounds_.end() && i + 1 == entries_.size()) continue;  // It has no end.
      entry.end = bound == bounds_.end() ? next : std::min(next, *bound);
    } else {
      covered_to = std::max(covered_to, entry.end);
    }
    entries_[kept++] = entry;
  }
  entries_.resize(kept);
}

SymbolTable SymbolTableBuilder::Build() && {
  MergeAliases();
  EndOpenOnes();
  SymbolTable table;
  base::Flatten(entries_, [&](uint64_t begin, uint64_t end, const Entry& entry) {
    table.pieces_.push_back({begin, end, entry.begin, entry.name_at, entry.name_size});
  });
  table.pieces_.shrink_to_fit();
  table.names_ = std::move(names_);
  return table;
}

}  // namespace perfkit::symbolize
