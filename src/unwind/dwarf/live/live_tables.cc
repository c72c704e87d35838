// Builds tables of all loaded code and publishes them. Maintain compares dl_iterate_phdr's counters with those of the
// last map. If they differ, it copies the call frame information of new modules while it holds the dynamic linker's
// lock, builds their tables without the lock, and repeats both until a copy leaves no module out. The new map replaces
// the old one by an atomic exchange; the old one is freed when no walk can read it (base::Published). Modules are
// identified by address and build-id, so a map shares the tables of unchanged modules with the one before.
#include "src/unwind/dwarf/live/live_tables.h"

#include <link.h>
#include <sys/auxv.h>

#include <exception>
#include <set>

#include "src/base/text.h"
#include "src/proc/maps.h"
#include "src/proc/module_file.h"
#include "src/sys/kernel.h"
#include "src/sys/own_memory.h"
#include "src/unwind/dwarf/cfi/cfi.h"

namespace perfkit::unwind {
namespace {

using Machine = ThisMachine;

constexpr MachineRegisters kTheseRegisters = Machine::kLinkRegister ? kArmRegisters : kX86Registers;
// Maximum of .eh_frame bytes that are copied at once, while the dynamic linker is locked. clang's are 10 MiB.
constexpr size_t kMaxCopied = size_t{16} << 20;
// Maximum number of attempts. A program that changes modules faster than their tables are built is left to the next
// call.
constexpr int kMaxRounds = 64;

bool HasCode(const LoadedModule& module, uint64_t address) {
  return std::any_of(module.code.begin(), module.code.end(),
                     [&](const auto& range) { return address - range.begin < range.end - range.begin; });
}

// Returns true for modules that are never unloaded: the program, the dynamic linker, the vDSO, and the libraries that
// this code itself uses.
bool Stays(const LoadedModule& module) {
  const uint64_t own[] = {getauxval(AT_ENTRY), reinterpret_cast<uint64_t>(&LookAtLoaded),
                          reinterpret_cast<uint64_t>(&dl_iterate_phdr), reinterpret_cast<uint64_t>(&std::terminate)};
  const bool holds = std::any_of(std::begin(own), std::end(own), [&](uint64_t at) { return HasCode(module, at); });
  const uint64_t bias = module.bias;
  return holds || (bias != 0 && (bias == getauxval(AT_BASE) || bias == getauxval(AT_SYSINFO_EHDR)));
}

// Returns the address at which the kernel or the dynamic linker started the module, before relocation; 0 for libraries.
uint64_t EntryOf(const LoadedModule& module) {
  const uint64_t entry = getauxval(AT_ENTRY);
  if (HasCode(module, entry)) return entry - module.bias;
  // The kernel maps the dynamic linker, whose addresses begin at 0, there. It stays.
  if (module.bias == 0 || module.bias != getauxval(AT_BASE)) return 0;
  return reinterpret_cast<const ElfW(Ehdr)*>(module.bias)->e_entry;
}

void Freeze(Cfi cfi, uint64_t entry, LiveModule& module) {
  module.entry = EntryCode(cfi, entry);
  std::vector<uint64_t> jumps;
  module.rows = FrozenCfiRows(cfi, kTheseRegisters, Machine::kPreserved, module.rules,
                              [&](uint64_t jump) { jumps.push_back(jump); });
  for (const uint64_t jump : jumps) {
    const uint64_t size = std::min(kMaxInstallCode, jump - cfi.FunctionAt(jump).value_or(jump));
    std::vector<std::byte> before(size);
    if (!sys::CopyOwn(module.bias + jump - size, before.data(), size)) before.clear();
    module.installs.push_back(InstallCode(cfi, jump, before));
  }
}

size_t CodeBytes(const LoadedModule& module) {
  size_t bytes = 0;
  for (const LoadedModule::Range& range : module.code) bytes += range.end - range.begin;
  return bytes;
}

std::shared_ptr<LiveModule> MakeWithoutTables(const LoadedModule& loaded) {
  auto module = std::make_shared<LiveModule>();
  module->identity = loaded.identity;
  module->bias = loaded.bias;
  module->mark = loaded.mark;
  module->stays = Stays(loaded);
  module->is_ready = false;
  return module;
}

std::shared_ptr<const LiveModule> Make(const LoadedModule& loaded) {
  std::shared_ptr<LiveModule> module = MakeWithoutTables(loaded);
  module->is_ready = true;
  if (module->stays) module->functions = loaded.functions;
  const uint64_t entry = EntryOf(loaded);
  module->entry = {entry, entry + (entry == 0 ? 0 : kMaxEntryCode)};
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(loaded.image);
  if (image.ok()) Freeze(Cfi(*image), entry, *module);
  if (module->rules.rows() != 0 || loaded.build_id.empty()) return module;
  // .debug_frame is not loaded: reads the file.
  const std::string path = loaded.path.empty() ? "/proc/self/exe" : loaded.path;
  const auto file = proc::ModuleFile::Open({.path = path, .build_id = loaded.build_id}, "/proc");
  if (file.ok()) Freeze(Cfi(file->image()), entry, *module);
  return module;
}

std::shared_ptr<const LiveModule> FindSame(const std::vector<std::shared_ptr<const LiveModule>>& modules,
                                           const LoadedModule& loaded) {
  for (const auto& module : modules) {
    if (module->is_ready && module->bias == loaded.bias && module->identity == loaded.identity) return module;
  }
  return nullptr;
}

}  // namespace

LiveTables::LiveTables(size_t brief_code_bytes)
    : brief_code_bytes_(brief_code_bytes), map_(std::make_unique<LiveMap>()) {}

absl::Status LiveTables::MaintainUpTo(size_t code_bytes) {
  FindStacks();
  const bool same_code = !FindOtherCode();
  const bool is_enough = all_ready_ || code_bytes != kAllCode;
  if (same_code && is_enough && CountLoaded() == counts_) return map_.Collect(), absl::OkStatus();
  Modules made;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (Renew(made, code_bytes)) return absl::OkStatus();
  }
  return absl::Status(absl::StatusCode::kUnavailable,
                      "modules are loaded and unloaded faster than their call frame information can be read. Remedy: "
                      "call Maintain again");
}

// `code_bytes`: the bytes of code that may be unloaded that may get tables now, in the linker's order. Other modules
// are not ready.
bool LiveTables::Renew(Modules& made, size_t& code_bytes) {
  const auto find = [&](const LoadedModule& loaded) {
    const auto found = FindSame(map_.value().modules, loaded);
    return found != nullptr ? found : FindSame(made, loaded);
  };
  std::vector<bool> is_later;  // of each loaded module
  size_t left = code_bytes;    // for the modules that follow
  const auto wanted = [&](const LoadedModule& module) {
    const bool is_known = find(module) != nullptr;
    const size_t bytes = is_known || Stays(module) ? 0 : CodeBytes(module);
    is_later.push_back(bytes > left);
    if (is_later.back()) return false;
    left -= left == kAllCode ? 0 : bytes;
    return !is_known;
  };
  const LoadedModules loaded = LookAtLoaded(wanted, kMaxCopied);
  auto map = std::make_unique<LiveMap>();
  bool all_ready = true;
  for (size_t i = 0; i < loaded.modules.size(); ++i) {
    const LoadedModule& each = loaded.modules[i];
    std::shared_ptr<const LiveModule> module = find(each);
    if (module == nullptr && is_later[i]) {
      module = MakeWithoutTables(each);
      all_ready = false;
    }
    if (module == nullptr && each.image.empty() && !loaded.whole) continue;
    if (module == nullptr) {
      module = made.emplace_back(Make(each));
      if (code_bytes != kAllCode && !Stays(each)) code_bytes -= CodeBytes(each);
    }
    for (const LoadedModule::Range& range : each.code) map->ranges.push_back({range.begin, range.end, module.get()});
    map->modules.push_back(std::move(module));
  }
  if (!loaded.whole) return false;
  AddOtherCode(*map);
  std::sort(map->ranges.begin(), map->ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  map_.Publish(std::move(map));
  all_ready_ = all_ready;
  changes_ += counts_ != loaded.counts;
  counts_ = loaded.counts;
  return true;
}

// Requests the bounds of the calling thread's stack, too: a thread that calls Maintain probably walks.
void LiveTables::FindStacks() {
  (void)stacks_.EndAbove(reinterpret_cast<uint64_t>(__builtin_frame_address(0)), sys::ThisTid());
  if (!stacks_.Wants()) return;
  const absl::StatusOr<std::string> maps = proc::ReadMaps(sys::kernel().getpid());
  if (maps.ok()) stacks_.Learn(*maps);
}

// Looks only if a walk has come to unknown code, and less often each time that nothing new is found: damaged stacks
// lead to arbitrary addresses.
bool LiveTables::FindOtherCode() {
  if (!backoff_.IsOver(unknown_code_)) return false;
  const absl::StatusOr<std::string> maps = proc::ReadMaps(sys::kernel().getpid());
  if (!maps.ok()) return false;
  std::vector<LiveMap::Range> found;
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (map && map->executable) found.push_back({map->begin, map->end});
  });
  const bool changed = found != executable_;
  backoff_.Found(changed);
  executable_ = std::move(found);
  return changed;
}

void LiveTables::AddOtherCode(LiveMap& map) const {
  const size_t modules = map.ranges.size();
  for (const LiveMap::Range& other : executable_) {
    const auto end = map.ranges.begin() + static_cast<ptrdiff_t>(modules);
    const bool covered = std::any_of(map.ranges.begin(), end, [&](const LiveMap::Range& range) {
      return range.begin < other.end && other.begin < range.end;
    });
    if (!covered) map.ranges.push_back(other);
  }
}

LiveStats LiveTables::stats() const {
  LiveStats stats{.table_bytes = sizeof(*this) + executable_.capacity() * sizeof(executable_[0])};
  std::set<const LiveModule*> counted;
  const auto count = [&](const LiveMap& map) {
    size_t fresh = 0;
    for (const auto& module : map.modules) {
      if (!counted.insert(module.get()).second) continue;
      ++fresh;
      stats.table_bytes += module->bytes();
    }
    stats.table_bytes += map.bytes();
    return fresh;
  };
  stats.modules = count(map_.value());
  for (const auto& module : map_.value().modules) {
    stats.not_ready += !module->is_ready;
    stats.bare += module->is_ready && module->rules.rows() == 0;
  }
  map_.ForEachOld([&](const LiveMap& old) { stats.retired += count(old); });
  stats.changes = changes_;
  return stats;
}

}  // namespace perfkit::unwind
