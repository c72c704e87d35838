// A module: a file that is mapped and executed, found again by what the kernel said of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/elf/image.h"
#include "src/sys/mapping.h"

namespace perfkit::proc {

// What the kernel says of a file when it is mapped. Two files are one module only when all of it is the same.
//
// What there is besides files: code that no file holds, under a name of the kernel's ("[vdso]", "//anon").
struct ModuleId {
  std::string path;
  uint64_t inode = 0;    // 0: not said
  std::string build_id;  // its bytes; "": not said
  pid_t pid = 0;         // somebody who has it mapped, through whose eyes the path can be looked at
  uint64_t device = 0;   // by the kernel's number, which stat need not give (btrfs, overlayfs); 0: not said
  // The memory that `pid` had it mapped at first, and when, by CLOCK_REALTIME; 0: not known.
  uint64_t begin = 0, end = 0;
  int64_t mapped_ns = 0;

  // Of memory of no file: the life of `pid` that it belongs to, which ends with exec.
  uint64_t life = 0;

  // What a JIT compiler may have made is called a path in some cases: memory that is shared, or mapped twice
  // (tools/perf/util/map.c, is_anon_memory).
  bool is_file() const {
    return path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/dev/zero") &&
           !path.starts_with("/SYSV") && !path.starts_with("/anon_hugepage") &&
           !path.starts_with("/memfd:doublemapper");
  }
  bool is_vdso() const { return path == "[vdso]"; }

  // What a place in it is counted from, where it is mapped at `address` from `file_offset` on: its file (the vDSO is
  // one in memory, mapped whole), or 0 where there is none, so that the place is the pc.
  uint64_t OffsetOf(uint64_t address, uint64_t file_offset) const {
    if (is_vdso()) return 0;
    return is_file() ? file_offset : address;
  }

  bool operator==(const ModuleId& other) const {
    return path == other.path && device == other.device && inode == other.inode && build_id == other.build_id &&
           life == other.life;
  }
};

// The bytes of a module, as long as this lives. The vDSO's are this process's own: all have the same.
class ModuleFile {
 public:
  // `proc` is a folder: "/proc". A file that was deleted or replaced is read by its mapping (/proc/PID/map_files) while
  // that is there, which takes CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. NotFound or the like when it cannot be opened
  // or is no file, FailedPrecondition when another file is there by now or, of a file without build-id, when it was
  // changed after it was mapped; what elf::Image::Parse says when it is no ELF file.
  static absl::StatusOr<ModuleFile> Open(const ModuleId& id, const std::string& proc);

  const elf::Image& image() const { return image_; }

 private:
  ModuleFile(sys::Mapping mapping, const elf::Image& image) : mapping_(std::move(mapping)), image_(image) {}
  static absl::StatusOr<ModuleFile> OpenAt(const std::string& path, const ModuleId& id);
  static absl::StatusOr<ModuleFile> OpenFile(const ModuleId& id, const std::string& proc);
  static absl::StatusOr<ModuleFile> OpenVdso(const ModuleId& id);

  sys::Mapping mapping_;  // holds nothing for the vDSO
  elf::Image image_;
};

// The build-id of a file that is mapped now, as `id` says without one; "" when it has none or cannot be read.
std::string ReadBuildId(const ModuleId& id, const std::string& proc);

// Where a file's code is loaded. By the segment that holds a place, as linkers need not lay out a file as the memory.
class LoadedCode {
 public:
  LoadedCode() = default;
  explicit LoadedCode(const elf::Image& image);

  // Where the byte at `offset` of the file is loaded, before relocation; nothing when that is no code.
  std::optional<uint64_t> AddressOf(uint64_t offset) const;

 private:
  std::vector<elf::Segment> segments_;
};

}  // namespace perfkit::proc
