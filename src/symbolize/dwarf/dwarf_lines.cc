// A LineSource whose modules share one cache, so that its bound is one of the whole symbolizer. Texts outlive the
// cache: names and paths that were returned stay valid when their unit is dropped.
#include "perfkit/dwarf_lines.h"

#include <unordered_map>

#include "src/symbolize/dwarf/mini_debug_info.h"
#include "src/symbolize/dwarf/module_lines.h"

namespace perfkit {
namespace {

using symbolize::DebugSection;

class DwarfSource final : public symbolize::LineSource {
 public:
  explicit DwarfSource(size_t cache_bytes) : cache_(cache_bytes) {}

  absl::Status Open(uint32_t module, const std::vector<DebugSection>& sections,
                    const std::vector<DebugSection>& shared) override {
    auto lines = std::make_unique<symbolize::dwarf::ModuleLines>(sections, shared, cache_, texts_);
    absl::Status status = lines->status();
    if (status.ok()) modules_[module] = std::move(lines);
    return status;
  }

  absl::Status FindGaps(uint32_t module) override {
    const auto found = modules_.find(module);
    return found == modules_.end() ? absl::OkStatus() : found->second->FindSplitUnits();
  }

  void Find(uint32_t module, uint64_t address, std::vector<symbolize::SourceCall>& calls) override {
    const auto found = modules_.find(module);
    if (found != modules_.end()) found->second->Find(address, calls);
  }

  absl::StatusOr<std::string> UnpackMini(base::Bytes packed) override { return symbolize::dwarf::UnpackMini(packed); }

 private:
  symbolize::dwarf::UnitCache cache_;
  symbolize::dwarf::Texts texts_;
  std::unordered_map<uint32_t, std::unique_ptr<symbolize::dwarf::ModuleLines>> modules_;
};

}  // namespace

std::unique_ptr<symbolize::LineSource> DwarfLines(size_t cache_bytes) {
  return std::make_unique<DwarfSource>(cache_bytes);
}

}  // namespace perfkit
