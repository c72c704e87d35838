// A module: a file that is mapped and executed, with the names of its functions. Read when the first name is asked for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/elf/image.h"
#include "src/symbolize/symbol_table.h"

namespace perfkit::symbolize {

// What the kernel says of a file when it is mapped. Two files are one module only when all of it is the same.
struct ModuleId {
  std::string path;
  uint64_t inode = 0;    // 0: not said
  std::string build_id;  // its bytes; "": not said
  pid_t pid = 0;         // somebody who has it mapped, through whose eyes the path can be looked at

  bool operator==(const ModuleId& other) const {
    return path == other.path && inode == other.inode && build_id == other.build_id;
  }
};

// What there is besides files: code that no file holds, under a name of the kernel's ("[vdso]", "//anon"). It has no
// names, but for the vDSO's.
class Module {
 public:
  explicit Module(ModuleId id) : id_(std::move(id)) {}

  const std::string& name() const { return id_.path; }
  bool is_file() const { return id_.path.starts_with('/') && !id_.path.starts_with("//"); }
  bool is_vdso() const { return id_.path == "[vdso]"; }

  // What a place in it is counted from, where it is mapped at `address` from `file_offset` on: its file (the vDSO is
  // one in memory, mapped whole), or 0 where there is none, so that the place is the pc.
  uint64_t OffsetOf(uint64_t address, uint64_t file_offset) const {
    if (is_vdso()) return 0;
    return is_file() ? file_offset : address;
  }

  // Reads the file, once; every later call gives the same answer. `proc` and `debug_root` are folders, as in
  // SymbolizerOptions. NotFound or the like when it cannot be opened, FailedPrecondition when another file is there by
  // now, what elf::Image::Parse says when it is no ELF file.
  const absl::Status& Load(const std::string& proc, const std::string& debug_root);
  bool loaded() const { return loaded_; }
  const absl::Status& status() const { return status_; }
  const std::string& debug_path() const { return debug_path_; }
  size_t symbols() const { return table_.size(); }

  // After Load. Where the byte at `offset` of the file is loaded, before relocation; nothing when that is no code.
  std::optional<uint64_t> AddressOf(uint64_t offset) const;
  std::optional<SymbolTable::Found> Find(uint64_t address) const { return table_.Find(address); }

 private:
  absl::Status LoadFile(const std::string& proc, const std::string& debug_root);
  absl::Status LoadVdso();
  absl::Status CheckBuild(const elf::Image& image) const;
  void TakeSymbols(const elf::Image& image, const elf::Image* debug);

  ModuleId id_;
  bool loaded_ = false;
  absl::Status status_;
  std::string debug_path_;
  std::vector<elf::Segment> code_;  // what is loaded and executed
  SymbolTable table_;
};

}  // namespace perfkit::symbolize
