// The calls at an address by libdw's own walk, a millisecond each: a second reader of the same DWARF.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

namespace perfkit::testing {

struct Call {
  std::string function, file;
  uint32_t line = 0;
  bool operator==(const Call&) const = default;
};
using Calls = std::vector<Call>;

class LibdwOracle {
 public:
  explicit LibdwOracle(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), dwarf_(dwarf_begin(fd_, DWARF_C_READ)) {}
  ~LibdwOracle() {
    dwarf_end(dwarf_);
    close(fd_);
  }
  LibdwOracle(const LibdwOracle&) = delete;
  LibdwOracle& operator=(const LibdwOracle&) = delete;

  // As eu-addr2line -i does it: the entries around the pc, then those around the innermost call as they are nested in
  // the file.
  Calls CallsAt(uint64_t address) const {
    Dwarf_Die unit;
    if (dwarf_ == nullptr || !FindUnit(address, &unit)) return {};
    const std::string comp_dir = Text(&unit, DW_AT_comp_dir);
    Call call;
    if (Dwarf_Line* const row = dwarf_getsrc_die(&unit, address)) {
      int line = 0;
      dwarf_lineno(row, &line);
      call.line = static_cast<uint32_t>(line);
      call.file = Full(comp_dir, dwarf_linesrc(row, nullptr, nullptr));
    }
    Dwarf_Die *around = nullptr, *nested = nullptr;
    const int found = dwarf_getscopes(&unit, address, &around);
    const int depth = found > 0 ? dwarf_getscopes_die(&around[0], &nested) : 0;
    Calls calls;
    for (int i = 0; i < depth; ++i) {
      const int tag = dwarf_tag(&nested[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      call.function = Name(&nested[i]);
      calls.push_back(call);
      if (tag == DW_TAG_subprogram) break;
      call = {"", FileOf(&unit, comp_dir, Number(&nested[i], DW_AT_call_file)),
              static_cast<uint32_t>(Number(&nested[i], DW_AT_call_line))};
    }
    if (calls.empty() && !call.file.empty()) calls.push_back(call);
    free(around);
    free(nested);
    return calls;
  }

 private:
  // clang writes no .debug_aranges, without which libdw finds no unit.
  bool FindUnit(uint64_t address, Dwarf_Die* unit) const {
    if (dwarf_addrdie(dwarf_, address, unit) != nullptr) return true;
    for (Dwarf_CU* cu = nullptr; dwarf_get_units(dwarf_, cu, &cu, nullptr, nullptr, unit, nullptr) == 0;) {
      if (dwarf_haspc(unit, address) == 1) return true;
    }
    return false;
  }
  static std::string Text(Dwarf_Die* die, unsigned attribute) {
    Dwarf_Attribute found;
    const char* const text = dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));
    return text == nullptr ? "" : text;
  }
  static uint64_t Number(Dwarf_Die* die, unsigned attribute) {
    Dwarf_Attribute found;
    Dwarf_Word number = 0;
    dwarf_formudata(dwarf_attr(die, attribute, &found), &number);
    return number;
  }
  static std::string Name(Dwarf_Die* die) {
    for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
      if (std::string name = Text(die, attribute); !name.empty()) return name;
    }
    return "";
  }
  static std::string Full(const std::string& comp_dir, const char* path) {
    if (path == nullptr) return "";
    return *path == '/' || comp_dir.empty() ? path : comp_dir + "/" + path;
  }
  static std::string FileOf(Dwarf_Die* unit, const std::string& comp_dir, uint64_t index) {
    Dwarf_Files* files = nullptr;
    size_t count = 0;
    if (dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count) return "";
    return Full(comp_dir, dwarf_filesrc(files, index, nullptr, nullptr));
  }

  int fd_;
  Dwarf* dwarf_;
};

}  // namespace perfkit::testing
