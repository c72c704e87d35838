// Asks the loader: the program headers of each loaded module map addresses to offsets in its file. A uprobe is placed
// in a file, not in a process (kernel/events/uprobes.c: uprobe_register), so an address has to be turned into an
// offset.
#include "src/doctor/own_code.h"

#include <link.h>

#include "src/sys/fork_registry.h"

namespace perfkit::doctor {
namespace {

struct Search {
  uintptr_t address;
  const std::string& proc;
  std::optional<FileLocation> found;
};

// A callback of dl_iterate_phdr: returning 1 stops the iteration.
int LookInModule(dl_phdr_info* module, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& header = module->dlpi_phdr[i];
    const uintptr_t start = module->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || search.address < start || search.address - start >= header.p_filesz) continue;
    // The program itself has no name here; p_filesz leaves out .bss, which is in no file.
    const bool is_program = module->dlpi_name == nullptr || module->dlpi_name[0] == '\0';
    search.found = {is_program ? search.proc + "/self/exe" : module->dlpi_name,
                    search.address - start + header.p_offset};
    return 1;
  }
  return 0;
}

}  // namespace

std::optional<FileLocation> FileLocationOf(const void* code, const std::string& proc) {
  Search search{reinterpret_cast<uintptr_t>(code), proc, std::nullopt};
  const sys::ForkBlocker fork_blocker;  // dl_iterate_phdr holds a lock that fork does not reset in a child.
  dl_iterate_phdr(LookInModule, &search);
  return search.found;
}

}  // namespace perfkit::doctor
