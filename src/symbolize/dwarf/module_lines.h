// The source lines and inlined calls of one module.
//
//   address ─> unit ─> function ─> innermost inlined call ─> … ─> the function
//                 └──> row of the line table                 an inlined call's entry has the line of the call
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/symbolize/dwarf/unit_cache.h"
#include "src/symbolize/dwarf/unit_index.h"

namespace perfkit::symbolize::dwarf {

// Owns file paths, which the debug information has in pieces only. Equal paths are stored once; a view is valid as long
// as this object.
class Texts {
 public:
  std::string_view Keep(std::string text) { return *texts_.insert(std::move(text)).first; }

 private:
  std::unordered_set<std::string> texts_;
};

class ModuleLines {
 public:
  // `cache` and `texts` are shared with other modules and must outlive this. `shared` is empty without a shared file.
  ModuleLines(const std::vector<DebugSection>& sections, const std::vector<DebugSection>& shared, UnitCache& cache,
              Texts& texts);

  // Returns NotFound if there is no debug information, or the error of decompressing a section.
  absl::Status status() const;
  // Returns OK, or NotFound with the number of units whose functions and inlined calls are in .dwo files, which are not
  // read. Reads all headers of units.
  absl::Status FindSplitUnits();
  // As LineSource::Find.
  void Find(uint64_t address, std::vector<SourceCall>& calls);

 private:
  // The units of a file. `loaded` has those that are in the cache, by index; the others are null.
  struct File {
    DebugInfo info;
    std::vector<LoadedUnit*> loaded;
    std::unordered_map<uint64_t, std::weak_ptr<const AbbrevTable>> abbrevs;
    bool units_found = false;

    void FindUnits();
  };

  // Returns a unit, reading it if necessary; nullptr if there is no such unit.
  LoadedUnit* Load(File& file, size_t index);
  std::shared_ptr<const AbbrevTable> AbbrevsOf(File& file, const UnitHeader& header, size_t& bytes);
  // Return parts of a unit, decoding them at the first call.
  FunctionIndex& FunctionsOf(LoadedUnit& loaded);
  LineTable& LinesOf(LoadedUnit& loaded);
  // Returns the innermost call that was inlined at `address` of a function, or FunctionIndex::kNone.
  uint32_t FindInlined(LoadedUnit& loaded, FunctionIndex::Function& function, uint64_t address);
  // Returns the name of the entry at offset `entry`: `name`, which is looked up at the first call.
  const CallName& NameOf(const LoadedUnit& loaded, uint64_t entry, CallName& name);
  std::string_view PathOf(LoadedUnit& loaded, uint64_t file);

  UnitCache& cache_;
  Texts& texts_;
  File main_, shared_;
  bool indexed_ = false;
  base::FlatRanges units_;  // From addresses to indices of units.
};

}  // namespace perfkit::symbolize::dwarf
