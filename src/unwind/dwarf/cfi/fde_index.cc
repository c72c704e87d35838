// Searches the linker's table (.eh_frame_hdr) in place, or builds one from all records. The two have different entries,
// so each access asks first which table there is.
#include "src/unwind/dwarf/cfi/fde_index.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

namespace perfkit::unwind {
namespace {

// An entry of the linker's table: the addresses of the code and of its FDE, both from the table's header on.
struct Pair {
  int32_t begin;
  int32_t fde;
};

}  // namespace

FdeIndex::FdeIndex(CfiRecords& records, bool code_only) {
  if (UseHeader(records.section())) return;
  records.ForEachFde([&](uint64_t offset, const Fde& fde) {
    if (fde.begin != fde.end && (!code_only || fde.begin != 0)) own_.push_back({fde.begin, offset});
  });
  own_.shrink_to_fit();
  std::sort(own_.begin(), own_.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.offset < b.offset;
  });
  count_ = own_.size();
}

// Linkers write one form only: version 1, the count in four bytes, then pairs of four bytes relative to the header. All
// pairs are checked once, because a search in an unsorted table would find wrong code. That takes 0.1 ms for a hundred
// thousand.
bool FdeIndex::UseHeader(const CfiSection& section) {
  const base::Bytes header = section.header;
  if (header.size() < 4 || header[0] != std::byte{1} || header[2] != std::byte{DW_EH_PE_udata4} ||
      header[3] != std::byte{DW_EH_PE_datarel | DW_EH_PE_sdata4}) {
    return false;
  }
  base::DwarfReader reader(header.subspan(4));
  if (!ReadPointerAt(reader, static_cast<uint8_t>(header[1]), 0, 0)) return false;
  count_ = reader.Fixed<uint32_t>();
  table_ = reader.Block(count_ * sizeof(Pair));
  header_address_ = section.header_address;
  section_address_ = section.address;
  if (reader.ok() && count_ > 0 && IsSorted()) return true;
  table_ = {};
  count_ = 0;
  return false;
}

bool FdeIndex::IsSorted() const {
  int32_t last = std::numeric_limits<int32_t>::min();
  for (size_t slot = 0; slot < count_; ++slot) {
    const int32_t begin = HeaderBegin(slot);
    if (begin < last) return false;
    last = begin;
  }
  return true;
}

// Slots are valid: UseHeader has checked the table's size against the file.
int32_t FdeIndex::HeaderBegin(size_t slot) const {
  int32_t begin;
  std::memcpy(&begin, table_.data() + slot * sizeof(Pair), sizeof(begin));
  return begin;
}

size_t FdeIndex::CountUpTo(uint64_t address) const {
  if (!table_.empty()) return CountInHeader(address);
  const auto after = std::upper_bound(own_.begin(), own_.end(), address,
                                      [](uint64_t wanted, const Entry& entry) { return wanted < entry.begin; });
  return static_cast<size_t>(after - own_.begin());
}

size_t FdeIndex::CountInHeader(uint64_t address) const {
  const auto wanted = static_cast<int64_t>(address - header_address_);
  size_t first = 0;
  for (size_t left = count_; left > 0;) {
    const size_t half = left / 2;
    if (HeaderBegin(first + half) <= wanted) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return first;
}

uint64_t FdeIndex::OffsetOf(size_t slot) const {
  if (table_.empty()) return own_[slot].offset;
  Pair pair;
  std::memcpy(&pair, table_.data() + slot * sizeof(Pair), sizeof(pair));
  return header_address_ + static_cast<uint64_t>(int64_t{pair.fde}) - section_address_;
}

}  // namespace perfkit::unwind
