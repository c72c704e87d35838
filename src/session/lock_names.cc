// Variables have names in the same symbol tables as functions. But the Symbolizer only knows mappings of code. So this
// reads the mappings, once for all new locks, and visits the symbols of each file once.
//
//   /proc/self/maps    game.elf r-x   game.elf rw- (.data)   "" rw- (.bss)      .bss follows the file's last mapping
#include "src/session/lock_names.h"

#include <elf.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/elf/symbols.h"
#include "src/proc/maps.h"
#include "src/proc/module_file.h"
#include "src/profile/base_name.h"
#include "src/symbolize/demangle.h"
#include "src/sys/kernel.h"
#include "src/sys/own_memory.h"

namespace perfkit::session {
namespace {

constexpr size_t kMaxNames = 64 << 10;  // bounds the memory for a program that keeps creating locks

// The first mapping of a loaded file, the end of its last one, and the locks in all of its mappings, in order.
struct MappedFile {
  std::string_view path;
  uint64_t begin = 0, end = 0, file_offset = 0, inode = 0, device = 0;
  std::vector<uint64_t> locks;
};

// Returns true if a mapping belongs to the file loaded before it. A file may be mapped several times, because programs
// also map it to read it. Each time that it is loaded, its first mapping has its ELF header, which is not writable.
bool Continues(const MappedFile& file, const proc::MapLine& line) {
  return line.path == file.path && (line.file_offset != 0 || line.writable);
}

std::vector<MappedFile> FilesOf(std::string_view maps, std::span<const uint64_t> addresses) {
  std::vector<MappedFile> files;
  std::vector<uint64_t> locks(addresses.begin(), addresses.end());
  std::ranges::sort(locks);
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  std::string_view path;  // of the mapping before this one
  uint64_t end = 0;
  for (size_t at = 0; at < maps.size();) {
    const size_t newline = std::min(maps.find('\n', at), maps.size());
    const std::optional<proc::MapLine> line = proc::ParseMapLine(maps.substr(at, newline - at));
    at = newline + 1;
    if (!line) continue;
    const bool is_bss = line->path.empty() && line->begin == end;
    if (!is_bss) path = line->path.starts_with('/') ? line->path : "";
    end = line->end;
    if (path.empty()) continue;
    if (!is_bss && (files.empty() || !Continues(files.back(), *line))) {
      const uint64_t device = proc::ModuleId::DeviceOf(line->device_major, line->device_minor);
      files.push_back({path, line->begin, line->end, line->file_offset, line->inode, device, {}});
    }
    files.back().end = line->end;
    for (auto lock = std::ranges::lower_bound(locks, line->begin); lock != locks.end() && *lock < line->end; ++lock) {
      files.back().locks.push_back(*lock);
    }
  }
  return files;
}

// Returns what to subtract from an address in memory for the address in the file; nullopt if the mapping is none of its
// segments.
std::optional<uint64_t> BiasOf(const elf::Image& image, const MappedFile& file) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    if (!segment || segment->type != PT_LOAD) continue;
    if (sys::PageOf(segment->offset) == file.file_offset) return file.begin - sys::PageOf(segment->address);
  }
  return std::nullopt;
}

// Returns true if an address of the file is in a segment. Anonymous memory right after a module's .bss may belong to
// something else, because the kernel merges adjacent mappings.
bool IsInSegment(const elf::Image& image, uint64_t address) {
  for (uint32_t i = 0; i < image.segment_count(); ++i) {
    const std::optional<elf::Segment> segment = image.segment(i);
    if (!segment || segment->type != PT_LOAD) continue;
    if (address >= segment->address && address - segment->address < segment->memory_bytes) return true;
  }
  return false;
}

// Names the locks that are in variables. `locks`: in order.
void NameBySymbols(const elf::Image& image, uint64_t bias, std::string_view path, std::span<const uint64_t> locks,
                   LockNamesByAddress& names) {
  const auto visit = [&](const elf::Symbol& symbol) {
    if (symbol.type != STT_OBJECT || !symbol.defined() || symbol.name.empty()) return true;
    const uint64_t begin = symbol.address + bias;
    for (auto lock = std::lower_bound(locks.begin(), locks.end(), begin); lock != locks.end(); ++lock) {
      if (*lock - begin >= symbol.size_bytes) break;
      const std::string offset = *lock == begin ? "" : absl::StrFormat("+0x%x", *lock - begin);
      names[*lock].name =
          absl::StrFormat("%s%s in %s", symbolize::Demangle(symbol.name), offset, profile::BaseName(path));
    }
    return true;
  };
  if (!elf::ForEachSymbol(image, elf::SymbolTable::kStatic, visit)) {
    elf::ForEachSymbol(image, elf::SymbolTable::kDynamic, visit);
  }
}

std::string KeyOf(const MappedFile& file) { return absl::StrFormat("%s\n%d\n%x", file.path, file.inode, file.begin); }

// Forgets those of `addresses` that are not in their module any more. `files`: those that have any of them now.
void ForgetMoved(std::span<const MappedFile> files, std::span<const uint64_t> addresses, LockNamesByAddress& names) {
  std::unordered_map<uint64_t, std::string> modules;
  for (const MappedFile& file : files) {
    const std::string key = KeyOf(file);
    for (const uint64_t lock : file.locks) modules[lock] = key;
  }
  for (const uint64_t address : addresses) {
    const auto found = names.find(address);
    if (found != names.end() && found->second.module != modules[address]) names.erase(found);
  }
}

}  // namespace

void LockNames::LookUp(std::span<const uint64_t> addresses) {
  if (addresses.empty()) return;
  const auto pid = sys::kernel().getpid();
  const absl::StatusOr<std::string> maps = proc::ReadMaps(pid);
  if (!maps.ok() || names_.size() > kMaxNames) names_.clear();
  if (!maps.ok()) return;
  std::vector<MappedFile> files = FilesOf(*maps, addresses);
  ForgetMoved(files, addresses, names_);
  for (MappedFile& file : files) std::erase_if(file.locks, [&](uint64_t lock) { return names_.contains(lock); });
  for (const uint64_t address : addresses) names_.try_emplace(address);
  for (const MappedFile& file : files) {
    if (file.locks.empty()) continue;
    const std::string key = KeyOf(file);
    for (const uint64_t lock : file.locks) {
      names_[lock] = {.name = {}, .module = key, .module_begin = file.begin, .module_end = file.end};
    }
    const proc::ModuleId id{.path = std::string(file.path), .inode = file.inode, .pid = pid, .device = file.device};
    const absl::StatusOr<proc::ModuleFile> module = proc::ModuleFile::Open(id, "/proc");
    if (!module.ok()) continue;
    const elf::Image& image = module->image();
    const std::optional<uint64_t> bias = BiasOf(image, file);
    if (!bias) continue;
    std::vector<uint64_t> own;
    for (const uint64_t lock : file.locks) {
      if (!IsInSegment(image, lock - *bias)) continue;
      own.push_back(lock);
      names_[lock].name = absl::StrFormat("%s+0x%x", profile::BaseName(file.path), lock - *bias);
    }
    NameBySymbols(image, *bias, file.path, own, names_);
  }
}

const LockName& LockNames::Find(uint64_t address) const {
  const auto found = names_.find(address);
  return found == names_.end() ? unknown_ : found->second;
}

}  // namespace perfkit::session
