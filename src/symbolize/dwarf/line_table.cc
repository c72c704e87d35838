// Reads the headers of line programs of versions 2 to 5, and runs the programs. A program generates rows of address,
// file, line and column by changing a few registers; an end_sequence opcode closes a contiguous range of code. Rows are
// kept sorted by sequence, so that a lookup finds the sequence in a flat index and then the row by binary search.
// Programs may be hostile: each row takes at least one byte, and rows without an end are dropped.
#include "src/symbolize/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>

#include "src/base/flatten.h"
#include "src/base/last_at.h"

namespace perfkit::symbolize::dwarf {

struct LineTable::Header {
  uint8_t min_instruction_bytes = 1, max_operations = 1;
  int8_t line_base = 0;
  uint8_t line_range = 1, opcode_base = 1;
  uint8_t operands[256] = {};  // Number of operands by standard opcode.
  uint8_t address_bytes = 8;
};

namespace {

// The registers of the line program's machine.
struct State {
  uint64_t address = 0, file = 1, column = 0;
  uint32_t line = 1;
  uint64_t operation = 0;
};

// DWARF 5, 6.2.5.1. Only VLIW machines have several operations in one instruction.
void Advance(State& state, uint64_t operations, uint8_t instruction_bytes, uint8_t max_operations) {
  if (max_operations <= 1) {
    state.address += instruction_bytes * operations;
    return;
  }
  const uint64_t sum = state.operation + operations;
  state.address += instruction_bytes * (sum / max_operations);
  state.operation = sum % max_operations;
}

}  // namespace

LineTable::LineTable(const Unit& unit) : comp_dir_(unit.Text(unit.root().comp_dir)) {
  if (unit.root().line_program.kind != Value::Kind::kNumber) return;
  base::DwarfReader reader(unit.sections().line, unit.root().line_program.number);
  Header header;
  if (ReadHeader(unit, reader, header)) Run(reader, header);
  rows_.shrink_to_fit();
  Flatten();
}

// DWARF 5, 6.2.4. Leaves the reader at the program, bounded by the end of this table.
bool LineTable::ReadHeader(const Unit& unit, base::DwarfReader& reader, Header& header) {
  uint32_t offset_bytes = 0;
  const uint64_t length = reader.InitialLength(&offset_bytes);
  if (!reader.ok() || length > unit.sections().line.size()) return false;
  reader.EndAt(reader.at() + length);
  version_ = reader.U16();
  if (version_ < 2 || version_ > 5) return false;
  if (version_ >= 5) {
    header.address_bytes = reader.U8();
    reader.U8();  // The size of a segment selector, which no supported machine has.
  }
  const uint64_t header_bytes = reader.Sized(offset_bytes);
  base::DwarfReader program = reader;
  program.Skip(header_bytes);
  header.min_instruction_bytes = reader.U8();
  if (version_ >= 4) header.max_operations = reader.U8();
  reader.U8();  // default_is_stmt: not used, because any row may be the nearest one.
  header.line_base = static_cast<int8_t>(reader.U8());
  // It is divided by: a damaged file may have 0.
  header.line_range = std::max<uint8_t>(reader.U8(), 1);
  header.opcode_base = reader.U8();
  for (int opcode = 1; opcode < header.opcode_base; ++opcode) header.operands[opcode] = reader.U8();
  if (version_ >= 5) {
    // The assembler writes this section, so its size of offsets may differ from the unit's.
    const Format format{version_, header.address_bytes, static_cast<uint8_t>(offset_bytes)};
    ReadList(unit, reader, format, false);
    ReadList(unit, reader, format, true);
  } else {
    ReadOldLists(reader);
  }
  reader = program;
  return reader.ok();
}

// Before version 5, files and folders are numbered from 1. Folder 0 is the compiler's working directory.
void LineTable::ReadOldLists(base::DwarfReader& reader) {
  folders_.emplace_back();
  for (std::string_view folder = reader.Text(); !folder.empty(); folder = reader.Text()) folders_.push_back(folder);
  files_.emplace_back();
  for (std::string_view name = reader.Text(); !name.empty(); name = reader.Text()) {
    files_.push_back({name, reader.Uleb()});
    reader.Uleb();  // Time of the last change.
    reader.Uleb();  // Size.
  }
}

// Since version 5, the encoding of the entries comes first, then the entries, numbered from 0.
void LineTable::ReadList(const Unit& unit, base::DwarfReader& reader, Format format, bool files) {
  AttributeSpec formats[256];
  const int count = reader.U8();
  for (int i = 0; i < count; ++i) {
    formats[i].attribute = static_cast<uint16_t>(reader.Uleb());
    formats[i].form = static_cast<uint16_t>(reader.Uleb());
  }
  const uint64_t entries = reader.Uleb();
  for (uint64_t i = 0; i < entries && reader.ok(); ++i) {
    const uint64_t begin = reader.at();
    File file;
    for (int f = 0; f < count; ++f) {
      if (formats[f].attribute == DW_LNCT_path && formats[f].form == DW_FORM_string) {
        file.name = reader.Text();
        continue;
      }
      const Value value = unit.ReadValue(formats[f], reader, format);
      if (formats[f].attribute == DW_LNCT_path) file.name = unit.Text(value);
      if (formats[f].attribute == DW_LNCT_directory_index) file.folder = value.number;
    }
    if (!reader.ok() || reader.at() == begin) return;  // Entries without bytes: their number is not bounded.
    if (files) {
      files_.push_back(file);
    } else {
      folders_.push_back(file.name);
    }
  }
}

// A row takes at least one byte of the program, which bounds their number.
void LineTable::Run(base::DwarfReader& reader, const Header& header) {
  State state;
  size_t first = 0;
  const auto add_row = [&] {
    const auto file = static_cast<uint16_t>(std::min<uint64_t>(state.file, kNoFile));
    const auto column = static_cast<uint16_t>(state.column > 0xffff ? 0 : state.column);
    rows_.push_back({state.address, state.line, file, column});
  };
  const auto advance = [&](uint64_t by) { Advance(state, by, header.min_instruction_bytes, header.max_operations); };
  const auto extended = [&] {
    const uint64_t length = reader.Uleb();
    base::DwarfReader inside = reader;
    reader.Skip(length);
    const uint8_t opcode = length == 0 ? 0 : inside.U8();
    if (opcode == DW_LNE_set_address) {
      state.address = inside.Sized(static_cast<uint32_t>(std::min<uint64_t>(length - 1, 9)));
      state.operation = 0;
    } else if (opcode == DW_LNE_end_sequence) {
      EndSequence(first, state.address);
      first = rows_.size();
      state = State();
    }
  };
  const auto standard = [&](uint8_t opcode) {
    switch (opcode) {
      case DW_LNS_copy: return add_row();
      case DW_LNS_advance_pc: return advance(reader.Uleb());
      case DW_LNS_advance_line: state.line += static_cast<uint32_t>(reader.Sleb()); return;
      case DW_LNS_set_file: state.file = reader.Uleb(); return;
      case DW_LNS_set_column: state.column = reader.Uleb(); return;
      // The advance of special opcode 255 (DWARF 5, 6.2.5.2).
      case DW_LNS_const_add_pc: return advance((255 - header.opcode_base) / header.line_range);
      case DW_LNS_fixed_advance_pc: state.address += reader.U16(), state.operation = 0; return;
      default:
        for (int i = 0; i < header.operands[opcode]; ++i) reader.Uleb();
    }
  };
  while (!reader.done()) {
    const uint8_t opcode = reader.U8();
    if (opcode >= header.opcode_base) {
      const uint8_t adjusted = opcode - header.opcode_base;
      advance(adjusted / header.line_range);
      state.line += static_cast<uint32_t>(header.line_base + adjusted % header.line_range);
      add_row();
    } else if (opcode == 0) {
      extended();
    } else {
      standard(opcode);
    }
  }
  rows_.resize(first);  // Rows without an end of their sequence.
}

// If several rows have the same address, the last one counts: the others cover no instruction.
void LineTable::EndSequence(size_t first, uint64_t end) {
  const auto begin = rows_.begin() + static_cast<ptrdiff_t>(first);
  const auto before = [](const Row& a, const Row& b) { return a.address < b.address; };
  if (!std::is_sorted(begin, rows_.end(), before)) std::stable_sort(begin, rows_.end(), before);
  size_t kept = first;
  for (size_t i = first; i < rows_.size(); ++i) {
    if (kept > first && rows_[kept - 1].address == rows_[i].address) --kept;
    rows_[kept++] = rows_[i];
  }
  rows_.resize(kept);
  // A sequence at 0 is of code that the linker removed.
  if (kept == first || rows_[first].address == 0 || kept > ~uint32_t{0}) return rows_.resize(first);
  sequences_.push_back({rows_[first].address, end, static_cast<uint32_t>(first), static_cast<uint32_t>(kept)});
}

void LineTable::Flatten() {
  base::FlatRanges ranges;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    ranges.Add(sequences_[i].begin, sequences_[i].end, static_cast<uint32_t>(i));
  }
  ranges.Build();
  std::vector<Sequence> flat;
  flat.reserve(ranges.ranges().size());
  for (const auto& [begin, end, id] : ranges.ranges()) {
    flat.push_back({begin, end, sequences_[id].first, sequences_[id].last});
  }
  sequences_ = std::move(flat);
}

const LineTable::Row* LineTable::Find(uint64_t address) const {
  const Sequence* const sequence =
      base::LastAt(sequences_.data(), sequences_.size(), address, [](const Sequence& at) { return at.begin; });
  if (sequence == nullptr || address >= sequence->end) return nullptr;
  return base::LastAt(rows_.data() + sequence->first, sequence->last - sequence->first, address,
                      [](const Row& row) { return row.address; });
}

std::string LineTable::PathOf(uint64_t number) const {
  if (number >= files_.size() || files_[number].name.empty()) return "";
  const File& file = files_[number];
  const std::string_view folder = file.folder < folders_.size() ? folders_[file.folder] : std::string_view();
  std::string path(file.name);
  // Up to the first absolute part.
  for (const std::string_view above : {folder, comp_dir_}) {
    if (path.starts_with('/')) break;
    if (!above.empty()) path = std::string(above) + "/" + path;
  }
  return path;
}

size_t LineTable::bytes() const {
  return folders_.capacity() * sizeof(folders_[0]) + files_.capacity() * sizeof(File) + rows_.capacity() * sizeof(Row) +
         sequences_.capacity() * sizeof(Sequence);
}

}  // namespace perfkit::symbolize::dwarf
