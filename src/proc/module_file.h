// A module: a file that is mapped as code, identified by what the kernel reports about it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/elf/image.h"
#include "src/sys/mapping.h"

namespace perfkit::proc {

struct MapLine;  // maps.h

// A process that was forked, in a life of it: what it had mapped, its child has, too.
struct ForkedFrom {
  pid_t pid = 0;
  uint64_t life = 0;
  std::shared_ptr<const ForkedFrom> parent;  // The process that it was forked from itself; nullptr means unknown.
  uint32_t depth = 1;                        // Number of processes from here on.
};

// What the kernel reports about a file when it is mapped. Two files are one module only if all fields are equal.
//
// Some modules are no files: code in memory under a name of the kernel's ("[vdso]", "//anon").
struct ModuleId {
  std::string path;
  uint64_t inode = 0;    // 0 means unknown.
  std::string build_id;  // Its bytes; "" means unknown.
  pid_t pid = 0;         // A process that has it mapped, and through whose root the path is resolved.
  uint64_t device = 0;   // The kernel's number, from which stat's may differ (btrfs, overlayfs); 0 means unknown.
  // The first mapping of it in `pid`, and its time by CLOCK_REALTIME; 0 means unknown.
  uint64_t begin = 0, end = 0;
  int64_t mapped_ns = 0;
  // The file has no build-id, was mapped before, and may have been changed in between: which contents ran is not known.
  bool uncertain = false;

  // For memory without a file: the life of `pid` that it belongs to, which ends with exec; and from whom that process
  // may have inherited the memory, or nullptr.
  uint64_t life = 0;
  std::shared_ptr<const ForkedFrom> parent;

  // Returns the identity of a mapped file, or of memory, without its build-id.
  static ModuleId Of(const MapLine& map, pid_t pid);
  static uint64_t DeviceOf(uint32_t major, uint32_t minor) { return uint64_t{major} << 32 | minor; }

  // Memory of JIT compilers has a path in some cases: if it is shared, or mapped twice (tools/perf/util/map.c,
  // is_anon_memory).
  bool is_file() const {
    return path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/dev/zero") &&
           !path.starts_with("/SYSV") && !path.starts_with("/anon_hugepage") &&
           !path.starts_with("/memfd:doublemapper");
  }
  bool is_vdso() const { return path == "[vdso]"; }
  // Whether it is memory in which a process may make code.
  bool may_be_made() const {
    return life != 0 && (!path.starts_with('[') || path.starts_with("[heap]") || path.starts_with("[anon"));
  }

  // Returns the offset by which code is identified, of memory at `address` that maps the file from `file_offset` on. It
  // counts from the start of the file (the vDSO is a file in memory, mapped whole), or from 0 if there is no file, so
  // that the offset is the pc.
  uint64_t OffsetOf(uint64_t address, uint64_t file_offset) const {
    if (is_vdso()) return 0;
    return is_file() ? file_offset : address;
  }

  bool operator==(const ModuleId& other) const {
    return path == other.path && device == other.device && inode == other.inode && build_id == other.build_id &&
           life == other.life;
  }
};

// The bytes of a module, valid as long as this lives. The vDSO's are this process's own: all processes have the same.
class ModuleFile {
 public:
  // Opens the file of `id`. `proc` is a folder: "/proc". A file that was deleted or replaced is read by its mapping
  // (/proc/PID/map_files) as long as that exists, which requires CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. Errors:
  // NotFound or another code by errno if it cannot be opened or is no file; FailedPrecondition if another file has its
  // path now, or if a file without build-id was changed after it was mapped; those of elf::Image::Parse.
  static absl::StatusOr<ModuleFile> Open(const ModuleId& id, const std::string& proc);

  const elf::Image& image() const { return image_; }

 private:
  ModuleFile(sys::Mapping mapping, const elf::Image& image) : mapping_(std::move(mapping)), image_(image) {}
  static absl::StatusOr<ModuleFile> OpenAt(const std::string& path, const ModuleId& id);
  static absl::StatusOr<ModuleFile> OpenFile(const ModuleId& id, const std::string& proc);
  static absl::StatusOr<ModuleFile> OpenVdso(const ModuleId& id);

  sys::Mapping mapping_;  // Empty for the vDSO.
  elf::Image image_;
};

// How the file of a module without build-id looks now.
enum class FileState : uint8_t {
  kUnchanged,  // Since before the module was mapped first.
  kChanged,
  kGone,  // Another file, or none, is at its path.
};
FileState StateOf(const ModuleId& id, const std::string& proc);

// Returns the build-id of a file that is mapped now, for an `id` without one; "" if it has none or cannot be read.
std::string ReadBuildId(const ModuleId& id, const std::string& proc);

// Maps file offsets of code to addresses, by the segment that contains the offset: linkers need not lay out a file as
// the memory.
class LoadedCode {
 public:
  LoadedCode() = default;
  explicit LoadedCode(const elf::Image& image);

  // Returns the address of the byte at `offset` of the file, before relocation; nullopt if it is no code.
  std::optional<uint64_t> AddressOf(uint64_t offset) const;

 private:
  std::vector<elf::Segment> segments_;
};

}  // namespace perfkit::proc
