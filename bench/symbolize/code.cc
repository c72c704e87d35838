// Finds modules through the dynamic linker.
#include "bench/symbolize/code.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string_view>

namespace bench {
namespace {

// Finds the first module whose path ends with `name`; "" is the program itself.
Code Find(std::string_view name) {
  struct Search {
    std::string_view name;
    Code code;
  } search{name, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name;
        if (wanted.name.empty() ? !path.empty() : path.find(wanted.name) == path.npos) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
          wanted.code = {std::string(path), begin, begin + segment.p_memsz, info->dlpi_addr};
        }
        return 1;
      },
      &search);
  return search.code;
}

}  // namespace

const Code& LargeLibrary() {
  static const Code code = [] {
    for (const char* name : {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM-16.so.1"}) {
      if (dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr) return Find(name);
    }
    return Find("libstdc++");
  }();
  return code;
}

const Code& ThisProgram() {
  static const Code code = [] {
    Code found = Find("");
    found.path = std::filesystem::read_symlink("/proc/self/exe").string();
    return found;
  }();
  return code;
}

}  // namespace bench
