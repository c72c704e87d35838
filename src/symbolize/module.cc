// Takes the symbols of a module's file and of its separate debug file; then lets go of them.
#include "src/symbolize/module.h"

#include <utility>

#include "absl/status/statusor.h"
#include "src/symbolize/debug_file.h"
#include "src/symbolize/elf_functions.h"

namespace perfkit::symbolize {

const absl::Status& Module::Load(const std::string& proc, const std::string& debug_root) {
  if (loaded_) return status_;
  loaded_ = true;
  const absl::StatusOr<proc::ModuleFile> file = proc::ModuleFile::Open(id_, proc);
  if (!file.ok()) return status_ = file.status();
  const elf::Image& image = file->image();
  // The vDSO is the kernel's: no package has its debug file.
  const std::optional<DebugFile> debug =
      id_.is_file() ? FindDebugFile(image, id_.path, debug_root) : std::optional<DebugFile>();
  if (!debug) return TakeSymbols(image, nullptr), status_;
  debug_path_ = debug->path;
  const absl::StatusOr<elf::Image> debug_image = elf::Image::Parse(debug->bytes.bytes());
  TakeSymbols(image, debug_image.ok() ? &*debug_image : nullptr);
  return status_;
}

// Names take no more room than the files that they are from.
void Module::TakeSymbols(const elf::Image& image, const elf::Image* debug) {
  code_ = proc::LoadedCode(image);
  SymbolTableBuilder builder(image.bytes().size() + (debug == nullptr ? 0 : debug->bytes().size()));
  AddFunctions(image, builder);
  if (debug != nullptr) AddFunctions(*debug, builder);
  AddPltStubs(image, builder);
  table_ = std::move(builder).Build();
}

}  // namespace perfkit::symbolize
