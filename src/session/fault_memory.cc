// Mappings are kept as views of the text of /proc/self/maps, and enter the profile when a fault was in them.
#include "src/session/fault_memory.h"

#include <algorithm>
#include <optional>

#include "src/base/text.h"
#include "src/proc/maps.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/unwind/machine.h"

namespace perfkit::session {
namespace {

constexpr unsigned kSpRegister = unwind::ThisMachine::kPerf[unwind::ThisMachine::kSp];
constexpr uint64_t kCostFactor = 20, kMinPaceNs = 1'000'000;
constexpr size_t kMaxRanges = 16'384;  // some 2 MiB with their names; those beyond are not known

}  // namespace

TouchedMemory TouchedMemory::Of(const Sample& sample) {
  const uint64_t address = sample.address().value_or(0);
  if (address == 0) return {};
  return {.address = address, .stack_pointer = sample.user_registers()[kSpRegister].value_or(0)};
}

void FaultMemory::Read(uint64_t now_ns) {
  mappings_.clear();
  text_ = proc::ReadMaps(sys::kernel().getpid()).value_or("");
  base::ForEachPiece(text_, '\n', [this](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (map) mappings_.push_back({map->begin, map->end, map->path});
  });
  read_ns_ = now_ns;
  const uint64_t ended_ns = sys::ClockNs(CLOCK_MONOTONIC);
  next_read_ns_ = ended_ns + std::max(kCostFactor * (ended_ns - now_ns), kMinPaceNs);
}

// The kernel writes mappings in order of their addresses.
const FaultMemory::Mapping* FaultMemory::Find(uint64_t address) const {
  const auto after = std::ranges::upper_bound(mappings_, address, {}, &Mapping::from);
  return after == mappings_.begin() || (after - 1)->to <= address ? nullptr : &*(after - 1);
}

uint32_t FaultMemory::IndexOf(const TouchedMemory& touched, uint64_t time_ns, ProfileBuilder& builder) {
  const Mapping* mapping = Find(touched.address);
  if (time_ns >= read_ns_ || mapping == nullptr) {
    if (const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC); now_ns >= next_read_ns_) Read(now_ns);
    mapping = Find(touched.address);
  }
  if (mapping == nullptr) return ProfileSample::kNoMemory;
  const bool is_stack = mapping->name.empty() && Find(touched.stack_pointer) == mapping;
  const std::string_view name = is_stack ? ProfileMemory::kThreadStack : mapping->name;
  const auto [entry, is_new] = indexes_.try_emplace({mapping->from, mapping->to, std::string(name)}, 0);
  if (is_new) {
    const bool has_room = indexes_.size() <= kMaxRanges;
    entry->second =
        has_room ? builder.AddMemory({mapping->from, mapping->to, builder.String(name)}) : ProfileSample::kNoMemory;
  }
  return entry->second;
}

}  // namespace perfkit::session
