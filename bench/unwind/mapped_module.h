// The files of a process in the form that the peers need: open, mapped, with the distance from their link-time
// addresses.
#pragma once

#include <gelf.h>

#include <algorithm>
#include <vector>

#include "bench/unwind/capture_file.h"
#include "bench/unwind/file_bytes.h"

namespace bench {

struct MappedModule {
  std::string path;
  FileBytes file;
  std::vector<GElf_Phdr> segments;
  uint64_t bias = 0;

  // Returns the file's bytes from `address` to the end of its segment; empty if it is not loaded.
  std::span<const std::byte> At(uint64_t address) const {
    for (const GElf_Phdr& segment : segments) {
      const uint64_t into = address - bias - segment.p_vaddr;
      if (segment.p_type == PT_LOAD && into < segment.p_filesz) {
        return file.bytes().subspan(segment.p_offset, segment.p_filesz).subspan(into);
      }
    }
    return {};
  }
  // Returns the range of loaded addresses.
  uint64_t begin() const { return Extent().first; }
  uint64_t end() const { return Extent().second; }

 private:
  std::pair<uint64_t, uint64_t> Extent() const {
    std::pair<uint64_t, uint64_t> extent(UINT64_MAX, 0);
    for (const GElf_Phdr& segment : segments) {
      if (segment.p_type != PT_LOAD) continue;
      extent.first = std::min(extent.first, bias + segment.p_vaddr);
      extent.second = std::max(extent.second, bias + segment.p_vaddr + segment.p_memsz);
    }
    return extent;
  }
};

// Returns each file once, by address. Omits the vDSO, JIT code and deleted files.
inline std::vector<MappedModule> ModulesOf(const Capture& capture) {
  elf_version(EV_CURRENT);
  std::vector<MappedModule> modules;
  for (const MappedFile& mapped : capture.files()) {
    const auto same = [&](const MappedModule& module) { return module.path == mapped.path; };
    if (!mapped.path.starts_with('/') || std::any_of(modules.begin(), modules.end(), same)) continue;
    std::optional<FileBytes> file = FileBytes::Map(mapped.path);
    if (!file) continue;
    // libelf does not write to the bytes.
    Elf* const elf =
        elf_memory(reinterpret_cast<char*>(const_cast<std::byte*>(file->bytes().data())), file->bytes().size());
    MappedModule module{mapped.path, std::move(*file), {}, 0};
    size_t count = 0;
    if (elf != nullptr) elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
      // Mappings begin at page boundaries.
      const uint64_t page = segment.p_offset & ~uint64_t{4095};
      const bool here = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && mapped.offset >= page &&
                        mapped.offset < segment.p_offset + segment.p_filesz;
      if (here) module.bias = mapped.begin - (segment.p_vaddr + mapped.offset - segment.p_offset);
      module.segments.push_back(segment);
    }
    elf_end(elf);
    if (!module.segments.empty()) modules.push_back(std::move(module));
  }
  std::sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.begin() < b.begin(); });
  return modules;
}

}  // namespace bench
