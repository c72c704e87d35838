// Reads the program headers of loaded modules in dl_iterate_phdr's callback, and copies their .eh_frame_hdr and
// .eh_frame. The dynamic linker holds its lock during the callback, so that no module is unloaded while it is read; the
// work is therefore kept to copying. Each copy becomes a small ELF file with two segments, so that Cfi reads it as any
// other module. A module is identified by its build-id; a hash of its .eh_frame_hdr and .eh_frame is added to one of
// less than 16 bytes, or stands for it.
#include "src/unwind/dwarf/live/loaded_modules.h"

#include <dwarf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "src/base/dwarf_reader.h"
#include "src/base/mix.h"
#include "src/elf/notes.h"
#include "src/sys/fork_registry.h"
#include "src/unwind/dwarf/cfi/cfi_sections.h"

namespace perfkit::unwind {
namespace {

#if defined(__aarch64__)
constexpr uint16_t kThisElfMachine = EM_AARCH64;
#else
constexpr uint16_t kThisElfMachine = EM_X86_64;
#endif

// A module in memory. Addresses are its own, before relocation by `bias`.
class LoadedImage {
 public:
  explicit LoadedImage(const dl_phdr_info& info)
      : bias_(info.dlpi_addr), headers_(info.dlpi_phdr, info.dlpi_phdr == nullptr ? 0 : info.dlpi_phnum) {}

  const ElfW(Phdr) * Find(uint32_t type) const {
    const auto found = std::find_if(headers_.begin(), headers_.end(), [&](const auto& h) { return h.p_type == type; });
    return found == headers_.end() ? nullptr : &*found;
  }
  std::span<const ElfW(Phdr)> headers() const { return headers_; }

  // Returns the memory from `address` to the end of what was loaded from the file; empty if it is not readable.
  base::Bytes From(uint64_t address) const {
    for (const ElfW(Phdr) & header : headers_) {
      const uint64_t skip = address - header.p_vaddr;
      if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0 || skip >= header.p_filesz) continue;
      return {reinterpret_cast<const std::byte*>(bias_ + address), header.p_filesz - skip};
    }
    return {};
  }
  base::Bytes Of(const ElfW(Phdr) & header) const {
    const base::Bytes bytes = From(header.p_vaddr);
    return bytes.first(std::min<uint64_t>(bytes.size(), header.p_filesz));
  }

 private:
  uint64_t bias_;
  std::span<const ElfW(Phdr)> headers_;
};

// The addresses and bytes of .eh_frame_hdr and .eh_frame.
struct EhFrame {
  uint64_t header_address = 0, address = 0;
  base::Bytes header, records;
};

// Returns the bytes up to and including the record of length 0 that ends .eh_frame. Memory has no other sign of its
// size.
base::Bytes RecordsOf(base::Bytes bytes) {
  uint64_t at = 0;
  for (;;) {
    const auto length = base::ReadAt<uint32_t>(bytes, at);
    if (!length) return bytes;
    const auto wide = *length == UINT32_MAX ? base::ReadAt<uint64_t>(bytes, at + 4) : std::optional<uint64_t>(*length);
    const uint64_t next = at + (*length == UINT32_MAX ? 12 : 4) + wide.value_or(UINT64_MAX / 2);
    if (next < at || next > bytes.size()) return bytes;
    if (*length == 0) return bytes.first(next);
    at = next;
  }
}

EhFrame FindLoadedEhFrame(const LoadedImage& module) {
  EhFrame found;
  const ElfW(Phdr)* const segment = module.Find(PT_GNU_EH_FRAME);
  if (segment == nullptr) return found;
  const base::Bytes header = module.Of(*segment);
  if (header.size() < 8 || header[0] != std::byte{1}) return found;
  base::DwarfReader reader(header.subspan(4));
  const auto encoding = static_cast<uint8_t>(header[1]);
  const auto address = ReadPointerAt(reader, encoding, segment->p_vaddr + 4, segment->p_vaddr);
  if (!address) return found;
  return {segment->p_vaddr, *address, header, RecordsOf(module.From(*address))};
}

// Returns an empty table if it has another form than the one that linkers write.
FunctionTable FunctionsOf(base::Bytes header) {
  constexpr size_t kEntriesAt = 12;
  const auto is = [&](size_t at, unsigned encoding) { return header[at] == static_cast<std::byte>(encoding); };
  if (header.size() < kEntriesAt || !is(0, 1) || !is(1, DW_EH_PE_pcrel | DW_EH_PE_sdata4) || !is(2, DW_EH_PE_udata4) ||
      !is(3, DW_EH_PE_datarel | DW_EH_PE_sdata4)) {
    return {};
  }
  const uint64_t count = *base::ReadAt<uint32_t>(header, 8);
  if (count > (header.size() - kEntriesAt) / sizeof(FunctionTable::Entry)) return {};
  const std::byte* const entries = header.data() + kEntriesAt;
  return {reinterpret_cast<const FunctionTable::Entry*>(entries), count, reinterpret_cast<uint64_t>(header.data())};
}

uint64_t HashOf(base::Bytes bytes, uint64_t hash) {
  for (uint64_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    hash = base::Mix(hash ^ word);
    hash ^= hash >> 29;
  }
  return hash;
}

base::Bytes BuildIdOf(const LoadedImage& module) {
  base::Bytes id;
  for (const ElfW(Phdr) & header : module.headers()) {
    if (header.p_type != PT_NOTE) continue;
    elf::ForEachNote(module.Of(header), header.p_align, [&](const elf::Note& note) {
      if (note.type == NT_GNU_BUILD_ID && note.owner == "GNU") id = note.description;
      return id.empty();
    });
  }
  return id;
}

std::string Text(base::Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void Identify(const LoadedImage& image, const EhFrame& frames, LoadedModule& module) {
  const base::Bytes build_id = BuildIdOf(image);
  module.build_id = Text(build_id);
  module.identity = module.build_id;
  base::Bytes mark = build_id;
  if (build_id.size() < ModuleMark::kBytes && !frames.header.empty()) {
    const uint64_t hash = HashOf(frames.records, HashOf(frames.header, build_id.size()));
    module.identity.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
    mark = frames.header.subspan(4);  // The address of .eh_frame, the number of functions, the first one.
    module.mark.records = reinterpret_cast<uint64_t>(frames.records.data());
    module.mark.record_words = std::min(frames.records.size() / sizeof(uint64_t), ModuleMark::kMaxRecordWords);
    module.mark.records_hash = ModuleMark::HashAt(module.mark.records, module.mark.record_words);
  }
  if (mark.size() < ModuleMark::kBytes) return;
  module.mark.address = reinterpret_cast<uint64_t>(mark.data());
  std::memcpy(module.mark.words.data(), mark.data(), ModuleMark::kBytes);
}

// Returns an ELF file with two segments.
std::vector<std::byte> CopyOf(const EhFrame& frames) {
  struct Head {
    ElfW(Ehdr) elf{};
    ElfW(Phdr) header{}, records{};
  } head;
  constexpr unsigned char kIdent[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  std::copy(std::begin(kIdent), std::end(kIdent), head.elf.e_ident);
  head.elf.e_type = ET_DYN;
  head.elf.e_machine = kThisElfMachine;
  head.elf.e_version = EV_CURRENT;
  head.elf.e_ehsize = sizeof(head.elf);
  head.elf.e_phoff = offsetof(Head, header);
  head.elf.e_phentsize = sizeof(ElfW(Phdr));
  head.elf.e_phnum = 2;
  // Addresses stay those of the module, so that its rules need no translation.
  const auto place = [](ElfW(Phdr) & segment, uint32_t type, uint64_t offset, uint64_t address, size_t size) {
    segment.p_type = type;
    segment.p_flags = PF_R;
    segment.p_offset = offset;
    segment.p_vaddr = address;
    segment.p_filesz = segment.p_memsz = size;
  };
  const uint64_t records_at = sizeof(head) + frames.header.size();
  place(head.header, PT_GNU_EH_FRAME, sizeof(head), frames.header_address, frames.header.size());
  place(head.records, PT_LOAD, records_at, frames.address, frames.records.size());
  std::vector<std::byte> image(records_at + frames.records.size());
  std::memcpy(image.data(), &head, sizeof(head));
  std::copy(frames.header.begin(), frames.header.end(), image.begin() + sizeof(head));
  std::copy(frames.records.begin(), frames.records.end(), image.begin() + static_cast<ptrdiff_t>(records_at));
  return image;
}

// The state of dl_iterate_phdr's callback.
struct Looking {
  absl::FunctionRef<bool(const LoadedModule&)> wanted;
  size_t max_bytes;
  size_t copied = 0;
  LoadedModules found{};

  void Look(const dl_phdr_info& info) {
    found.counts = {info.dlpi_adds, info.dlpi_subs};
    const LoadedImage image(info);
    const EhFrame frames = FindLoadedEhFrame(image);
    LoadedModule& module = found.modules.emplace_back();
    module.path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
    module.bias = info.dlpi_addr;
    bool readable = true;
    for (const ElfW(Phdr) & header : image.headers()) {
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0 || header.p_memsz == 0) continue;
      const uint64_t begin = info.dlpi_addr + header.p_vaddr;
      module.code.push_back({begin, begin + header.p_memsz});
      readable &= (header.p_flags & PF_R) != 0;
    }
    if (readable) module.functions = FunctionsOf(frames.header);
    Identify(image, frames, module);
    if (!wanted(module) || frames.records.empty()) return;
    const size_t size = frames.header.size() + frames.records.size();
    found.whole &= copied == 0 || copied + size <= max_bytes;
    if (!found.whole) return;
    copied += size;
    module.image = CopyOf(frames);
  }
};

}  // namespace

// dl_iterate_phdr holds a lock of the dynamic linker that fork does not reset in a child (glibc 2.36): a child that was
// forked meanwhile would wait for it for ever.
LinkerCounts CountLoaded() {
  const sys::ForkBlocker fork_blocker;
  LinkerCounts counts;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<LinkerCounts*>(to) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &counts);
  return counts;
}

LoadedModules LookAtLoaded(absl::FunctionRef<bool(const LoadedModule&)> wanted, size_t max_bytes) {
  Looking looking{wanted, max_bytes};
  const sys::ForkBlocker fork_blocker;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        static_cast<Looking*>(to)->Look(*info);
        return 0;
      },
      &looking);
  return std::move(looking.found);
}

}  // namespace perfkit::unwind
