// Finds the calls at an address. The index of units gives the unit, whose parts are decoded at their first use and kept
// in the shared cache: its functions, its line table, and the inlined calls of single functions. The innermost call has
// the line of the address; each outer call has the line of the inlined call's entry. Names are read from the entries'
// origins, which may be in other units or in dwz's shared file.
#include "src/symbolize/dwarf/module_lines.h"

#include <dwarf.h>

#include <utility>

#include "absl/strings/str_format.h"

namespace perfkit::symbolize::dwarf {
namespace {

// Maximum length of a chain of origins. An inlined call has an abstract origin, which may have a specification, in
// another unit or file. A longer chain is a cycle.
constexpr int kMaxOrigins = 16;
// Maximum number of calls. Compilers inline to a depth of some tens.
constexpr size_t kMaxCalls = 1000;

}  // namespace

ModuleLines::ModuleLines(const std::vector<DebugSection>& sections, const std::vector<DebugSection>& shared,
                         UnitCache& cache, Texts& texts)
    : cache_(cache), texts_(texts), main_{.info = DebugInfo(sections)}, shared_{.info = DebugInfo(shared)} {}

absl::Status ModuleLines::status() const {
  const Sections& sections = main_.info.sections;
  if (!sections.status.ok()) return sections.status;
  if (!shared_.info.sections.status.ok()) return shared_.info.sections.status;
  if (!sections.info.empty() && !sections.abbrev.empty()) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kNotFound, "it has no debug information");
}

// Compilers leave a skeleton in the object file, whose root entry names the .dwo file (DWARF 5, 3.1.2; before, GNU's
// extension DebugFission). It has no children, unless clang copied the inlined calls there (-fsplit-dwarf-inlining).
absl::Status ModuleLines::FindSplitUnits() {
  constexpr uint16_t kGnuDwoName = 0x2130;  // DW_AT_GNU_dwo_name
  main_.FindUnits();
  size_t split = 0;
  std::string example;
  for (size_t i = 0; i < main_.info.units.size(); ++i) {
    const UnitHeader& header = main_.info.units[i];
    // A skeleton of GNU's has addresses in .debug_addr, which no other unit before DWARF 5 has.
    const bool may_be_gnu = header.format.version < 5 && !main_.info.sections.addr.empty();
    if (header.type != DW_UT_skeleton && !may_be_gnu) continue;
    cache_.Trim();  // Here, because most units are left by `continue`.
    const LoadedUnit* const loaded = Load(main_, i);
    const Unit& unit = loaded->unit;
    const bool is_skeleton = unit.root().abbrev != nullptr && !unit.root().abbrev->children;
    const Value name = unit.RootValue(header.type == DW_UT_skeleton ? uint16_t{DW_AT_dwo_name} : kGnuDwoName);
    if (!is_skeleton || !name.known()) continue;
    if (split++ == 0) example = unit.Text(name);
  }
  if (split == 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("lines are known, but not the functions and inlined calls of %d of %d units: those are split "
                      "(-gsplit-dwarf) into "
                      "files like %s, which perfkit does not read. Remedy: compile without -gsplit-dwarf",
                      split, main_.info.units.size(), example));
}

void ModuleLines::File::FindUnits() {
  if (std::exchange(units_found, true)) return;
  info.FindUnits();
  loaded.resize(info.units.size());
}

// Many units of a file from dwz or a linker share one table.
std::shared_ptr<const AbbrevTable> ModuleLines::AbbrevsOf(File& file, const UnitHeader& header, size_t& bytes) {
  std::weak_ptr<const AbbrevTable>& known = file.abbrevs[header.abbrevs_at];
  std::shared_ptr<const AbbrevTable> table = known.lock();
  if (table != nullptr && table->format() == header.format) return table;
  // Its bytes count for the unit that read it first. It lives as long as any of its units, as `abbrevs` holds it
  // weakly.
  table = std::make_shared<AbbrevTable>(file.info.sections.abbrev, header.abbrevs_at, header.format);
  bytes += table->bytes();
  known = table;
  return table;
}

LoadedUnit* ModuleLines::Load(File& file, size_t index) {
  if (index >= file.loaded.size()) return nullptr;
  LoadedUnit*& slot = file.loaded[index];
  if (slot != nullptr) {
    cache_.Use(*slot);
    return slot;
  }
  const UnitHeader& header = file.info.units[index];
  size_t bytes = 0;
  auto abbrevs = AbbrevsOf(file, header, bytes);
  return cache_.Add(Unit(file.info, &shared_.info, header, std::move(abbrevs)), bytes, slot);
}

FunctionIndex& ModuleLines::FunctionsOf(LoadedUnit& loaded) {
  if (!loaded.functions) {
    loaded.functions.emplace(loaded.unit);
    cache_.Use(loaded, loaded.functions->bytes());
  }
  return *loaded.functions;
}

LineTable& ModuleLines::LinesOf(LoadedUnit& loaded) {
  if (!loaded.lines) {
    loaded.lines.emplace(loaded.unit);
    cache_.Use(loaded, loaded.lines->bytes());
  }
  return *loaded.lines;
}

uint32_t ModuleLines::FindInlined(LoadedUnit& loaded, FunctionIndex::Function& function, uint64_t address) {
  if (!function.inlined_known) {
    const size_t before = loaded.functions->bytes();
    loaded.functions->ReadInlined(loaded.unit, function);
    cache_.Use(loaded, loaded.functions->bytes() - before);
  }
  return loaded.functions->FindInlined(function, address);
}

// Returns the first linkage name in the chain of origins; without one, the first name.
const CallName& ModuleLines::NameOf(const LoadedUnit& loaded, uint64_t at, CallName& name) {
  if (name.known) return name;  // Written once only: names are shared by later lookups.
  name.known = true;
  const Unit* unit = &loaded.unit;
  for (int i = 0; i < kMaxOrigins; ++i) {
    base::DwarfReader reader = unit->At(at);
    Entry entry;
    if (!unit->Read(reader, entry) || entry.abbrev == nullptr) return name;
    if (entry.linkage_name.known()) {
      name.text = unit->Text(entry.linkage_name);
      name.linkage = true;
      return name;
    }
    if (name.text.empty()) name.text = unit->Text(entry.name);
    at = entry.origin.number;
    if (entry.origin.kind == Value::Kind::kEntry && at >= unit->header().at && at < unit->header().end) continue;
    const bool in_shared = entry.origin.kind == Value::Kind::kSharedEntry;
    if (!in_shared && entry.origin.kind != Value::Kind::kEntry) return name;
    File& file = in_shared || &unit->sections() == &shared_.info.sections ? shared_ : main_;
    file.FindUnits();
    const LoadedUnit* const other = Load(file, file.info.UnitAt(at));
    if (other == nullptr) return name;
    unit = &other->unit;
  }
  return name;
}

std::string_view ModuleLines::PathOf(LoadedUnit& loaded, uint64_t file) {
  constexpr uint64_t kMaxFiles = 1 << 16;
  if (file >= kMaxFiles) return {};
  if (file >= loaded.paths.size()) {
    const size_t before = loaded.paths.capacity();
    loaded.paths.resize(file + 1);
    cache_.Use(loaded, (loaded.paths.capacity() - before) * sizeof(loaded.paths[0]));
  }
  std::optional<std::string_view>& path = loaded.paths[file];
  if (!path) path = texts_.Keep(LinesOf(loaded).PathOf(file));
  return *path;
}

void ModuleLines::Find(uint64_t address, std::vector<SourceCall>& calls) {
  // Here only: later in a lookup, units are in use.
  cache_.Trim();
  if (!std::exchange(indexed_, true)) {
    main_.FindUnits();
    units_ = IndexUnits(main_.info, &shared_.info);
  }
  LoadedUnit* const loaded = Load(main_, units_.Find(address));
  if (loaded == nullptr) return;
  FunctionIndex& functions = FunctionsOf(*loaded);
  const uint32_t index = functions.Find(address);
  FunctionIndex::Function* const function = index != FunctionIndex::kNone ? &functions.function(index) : nullptr;
  // Before the line is looked up, so that the CPU waits for both at the same time.
  const uint32_t innermost = function != nullptr ? FindInlined(*loaded, *function, address) : FunctionIndex::kNone;
  SourceCall call;
  if (const LineTable::Row* const row = LinesOf(*loaded).Find(address)) {
    call.file = PathOf(*loaded, row->file);
    call.line = row->line;
    call.column = row->column;
  }
  if (function == nullptr) {
    if (!call.file.empty()) calls.push_back(call);
    return;
  }
  const auto push = [&](uint64_t entry, CallName& name) {
    NameOf(*loaded, entry, name);
    call.function = name.text;
    call.linkage = name.linkage;
    calls.push_back(call);
  };
  for (uint32_t i = innermost; i != FunctionIndex::kNone && calls.size() < kMaxCalls;) {
    FunctionIndex::InlinedCall& inlined = functions.call(i);
    push(inlined.entry, inlined.name);
    // The next call outwards is at the place where this one was inlined.
    call.file = PathOf(*loaded, inlined.file);
    call.line = inlined.line;
    call.column = inlined.column;
    i = inlined.parent;
  }
  push(function->entry, function->name);
}

}  // namespace perfkit::symbolize::dwarf
