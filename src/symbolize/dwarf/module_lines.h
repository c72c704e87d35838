// Source lines and inlined calls of one module.
//
//   address ─> unit ─> function ─> innermost inlined call ─> … ─> the function
//                 └──> row of the line table               where each is called is in the entry of the inlined one
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

// Texts that are made and not found: file paths. Each once, and for good.
class Texts {
 public:
  std::string_view Keep(std::string text) { return *texts_.insert(std::move(text)).first; }

 private:
  std::unordered_set<std::string> texts_;
};

class ModuleLines {
 public:
  // `cache` and `texts` are shared with other modules and outlive it. `shared`: no sections when there is no such file.
  ModuleLines(const std::vector<DebugSection>& sections, const std::vector<DebugSection>& shared, UnitCache& cache,
              Texts& texts);

  // NotFound when there is no debug information in it, or what unpacking it said.
  absl::Status status() const;
  // See LineSource.
  void Find(uint64_t address, std::vector<SourceCall>& calls);

 private:
  // A file's units that are in the cache; null where one is not.
  struct File {
    DebugInfo info;
    std::vector<LoadedUnit*> loaded;
    std::unordered_map<uint64_t, std::weak_ptr<const AbbrevTable>> abbrevs;
    bool units_found = false;

    void FindUnits();
  };

  LoadedUnit* Load(File& file, size_t index);
  std::shared_ptr<const AbbrevTable> AbbrevsOf(File& file, const UnitHeader& header, size_t& bytes);
  FunctionIndex& FunctionsOf(LoadedUnit& loaded);
  LineTable& LinesOf(LoadedUnit& loaded);
  InlineTree& InlinedIn(LoadedUnit& loaded, FunctionIndex::Function& function);
  const CallName& NameOf(const LoadedUnit& loaded, uint64_t entry, CallName& name);
  std::string_view PathOf(LoadedUnit& loaded, uint64_t file);

  UnitCache& cache_;
  Texts& texts_;
  File main_, shared_;
  bool indexed_ = false;
  base::FlatRanges units_;
};

}  // namespace perfkit::symbolize::dwarf
