// Fuzzes the ELF reader with files: everything that a file claims is looked at, and nothing outside it.
#include <elf.h>

#include "src/elf/image.h"
#include "src/elf/notes.h"
#include "src/elf/symbols.h"
#include "src/event/probe_location.h"
#include "src/symbolize/elf_functions.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {
namespace {

bool IsInside(base::Bytes part, base::Bytes whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Touches every byte, so that a sanitizer sees a view that reaches too far.
unsigned Sum(base::Bytes bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<unsigned>(byte);
  return sum;
}

void VisitParts(const elf::Image& image) {
  for (uint32_t i = 0; i < image.section_count(); ++i) {
    const std::optional<elf::Section> section = image.section(i);
    PERFKIT_FUZZ_CHECK(section.has_value());
    const base::Bytes contents = image.Contents(*section).value_or(base::Bytes());
    PERFKIT_FUZZ_CHECK(IsInside(contents, image.bytes()));
  }
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    PERFKIT_FUZZ_CHECK(segment.has_value());
    const std::optional<uint64_t> offset = image.FileOffset(segment->address);
    PERFKIT_FUZZ_CHECK(!offset || *offset < image.bytes().size());
  }
}

void VisitSymbols(const elf::Image& image) {
  for (const elf::SymbolTable table : {elf::SymbolTable::kStatic, elf::SymbolTable::kDynamic}) {
    uint64_t seen = 0;
    elf::ForEachSymbol(image, table, [&](const elf::Symbol& symbol) {
      PERFKIT_FUZZ_CHECK(IsInside(std::as_bytes(std::span(symbol.name)), image.bytes()));
      return ++seen < 1'000'000;
    });
    PERFKIT_FUZZ_CHECK(seen * sizeof(Elf64_Sym) <= image.bytes().size());
  }
}

// Names by address: never more than the file has room for, and each where it says.
void VisitFunctions(const elf::Image& image) {
  symbolize::SymbolTableBuilder builder(image.bytes().size());
  symbolize::AddFunctions(image, builder);
  symbolize::AddPltStubs(image, builder);
  const symbolize::SymbolTable table = std::move(builder).Build();
  PERFKIT_FUZZ_CHECK(table.size() <= image.bytes().size());
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1010}, uint64_t{0x1024}, ~uint64_t{0}}) {
    const auto found = table.Find(address);
    PERFKIT_FUZZ_CHECK(!found || (found->begin <= address && !found->name.empty()));
  }
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzElf) {
  const base::Bytes bytes = std::as_bytes(std::span(data, size));
  elf::ForEachNote(bytes, size % 2 == 0 ? 4 : 8,
                   [](const elf::Note& note) { return Sum(note.description) < 1u << 30; });
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(bytes);
  PERFKIT_FUZZ_CHECK(image.ok() || !image.status().message().empty());
  if (!image.ok()) return 0;
  VisitParts(*image);
  VisitSymbols(*image);
  VisitFunctions(*image);
  Sum(elf::BuildId(*image).value_or(base::Bytes()));
  const absl::StatusOr<uint64_t> place = event::FindCode(*image, "main");
  PERFKIT_FUZZ_CHECK(!place.ok() || *place < size);
  return 0;
}

}  // namespace perfkit
