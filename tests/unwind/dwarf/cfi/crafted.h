// Builds call frame information byte by byte, and modules around it, with any contents that a test needs.
#pragma once

#include <dwarf.h>
#include <elf.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tests/elf/elf_builder.h"

namespace perfkit::testing {

// Numbers as DWARF writes them.
template <class T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline std::string Uleb(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

inline std::string Sleb(int64_t value) {
  std::string text;
  for (; value < -64 || value > 63; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value & 0x7f);
}

inline std::string Ops(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// The CIEs of GCC and Clang for x86-64, and those for aarch64.
inline const std::string kX86Start = Ops({DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1});
inline const std::string kArmStart = Ops({DW_CFA_def_cfa, 31, 0});

// All opcodes that a program can use for the CFA and the registers.
inline const std::string kEveryRecipe = Ops({DW_CFA_def_cfa_expression, 2, DW_OP_breg10, 0}) +  //
                                        Ops({DW_CFA_offset | 3, 4}) +                           //
                                        Ops({DW_CFA_register, 12, 13}) +                        //
                                        Ops({DW_CFA_val_offset, 14, 2}) +                       //
                                        Ops({DW_CFA_same_value, 15}) +                          //
                                        Ops({DW_CFA_undefined, 0}) +                            //
                                        Ops({DW_CFA_expression, 6, 2, DW_OP_breg5, 0x70}) +     //
                                        Ops({DW_CFA_val_expression, 1, 1, DW_OP_lit7}) +        //
                                        Ops({DW_CFA_offset_extended_sf, 2, 0x7f}) +             //
                                        Ops({DW_CFA_offset_extended, 40, 1}) +                  //
                                        Ops({DW_CFA_GNU_args_size, 16});

// A section of records, as .eh_frame has them (addresses are absolute in 8 bytes unless `encoding` says otherwise) or
// as .debug_frame does.
class Records {
 public:
  explicit Records(bool is_eh = true, uint64_t address = 0x4000) : is_eh_(is_eh), address_(address) {}

  // Returns its offset; FDEs after it belong to it.
  size_t Cie(const std::string& program = kX86Start, char return_register = 16, std::string_view augmentation = "zR",
             uint8_t encoding = DW_EH_PE_absptr) {
    encoding_ = encoding;
    std::string body(1, is_eh_ ? 1 : 3);
    if (!is_eh_) augmentation = "";
    body += std::string(augmentation) + '\0' + Uleb(1) + Sleb(-8) + return_register;
    if (!augmentation.empty()) body += Uleb(1) + static_cast<char>(encoding);
    return cie_ = Add(Raw<uint32_t>(is_eh_ ? 0 : ~0u) + body + program);
  }

  size_t Fde(uint64_t begin, uint64_t length, const std::string& program = "") {
    const size_t at = bytes_.size();
    const auto cie = static_cast<uint32_t>(is_eh_ ? at + 4 - cie_ : cie_);
    std::string range = Raw(begin) + Raw(length);
    if (encoding_ == (DW_EH_PE_pcrel | DW_EH_PE_sdata4)) {
      range = Raw(static_cast<int32_t>(begin - (address_ + at + 8))) + Raw(static_cast<uint32_t>(length));
    }
    Add(Raw(cie) + range + (is_eh_ ? std::string(1, '\0') : "") + program);
    table_ +=
        Raw(static_cast<int32_t>(begin - kHeaderAddress)) + Raw(static_cast<int32_t>(address_ + at - kHeaderAddress));
    ++fdes_;
    return at;
  }

  // The search table for all FDEs so far, in the order in which they were added.
  std::string Header() const {
    return Ops({1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4}) +
           Raw(static_cast<int32_t>(address_ - (kHeaderAddress + 4))) + Raw(fdes_) + table_;
  }

  // With the end mark.
  std::string bytes() const { return bytes_ + (is_eh_ ? Raw(0) : ""); }
  uint64_t address() const { return address_; }

  static constexpr uint64_t kHeaderAddress = 0x3000;

 private:
  size_t Add(std::string body) {
    const size_t at = bytes_.size();
    body.resize((body.size() + 4 + 7) / 8 * 8 - 4, DW_CFA_nop);
    bytes_ += Raw(static_cast<uint32_t>(body.size())) + body;
    return at;
  }

  bool is_eh_;
  uint64_t address_;
  std::string bytes_, table_;
  size_t cie_ = 0;
  uint32_t fdes_ = 0;
  uint8_t encoding_ = 0;
};

// The parts of a module that contain its records.
struct Shape {
  bool header = true;         // has .eh_frame_hdr and its program header
  bool header_after = false;  // .eh_frame_hdr comes after .eh_frame in the section headers
  bool sections = true;       // has section headers
  uint16_t machine = EM_X86_64;
};

// A module whose .eh_frame and .eh_frame_hdr are loaded where Records says.
inline std::string Module(const Records& records, const Shape& shape = {}) {
  ElfBuilder builder;
  builder.header.e_machine = shape.machine;
  const std::string header = shape.header ? records.Header() : "";
  const uint64_t segments = shape.header ? 3 : 1, first = sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr);
  const uint64_t eh_at = first + (shape.header_after ? 0 : header.size());
  const uint64_t header_at = first + (shape.header_after ? records.bytes().size() : 0);
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R,
                      .p_offset = eh_at,
                      .p_vaddr = records.address(),
                      .p_paddr = 0,
                      .p_filesz = records.bytes().size(),
                      .p_memsz = records.bytes().size(),
                      .p_align = 1});
  if (shape.header) {
    Elf64_Phdr at{.p_type = PT_LOAD,
                  .p_flags = PF_R,
                  .p_offset = header_at,
                  .p_vaddr = Records::kHeaderAddress,
                  .p_paddr = 0,
                  .p_filesz = header.size(),
                  .p_memsz = header.size(),
                  .p_align = 1};
    builder.AddSegment(at);
    at.p_type = PT_GNU_EH_FRAME;
    builder.AddSegment(at);
  }
  const auto add = [&](const char* name, uint64_t address, const std::string& bytes) {
    builder.AddSection(name, {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addr = address}, bytes);
  };
  if (shape.header && !shape.header_after) add(".eh_frame_hdr", Records::kHeaderAddress, header);
  add(".eh_frame", records.address(), records.bytes());
  if (shape.header && shape.header_after) add(".eh_frame_hdr", Records::kHeaderAddress, header);
  std::string file = builder.Build();
  if (!shape.sections) std::memset(file.data() + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
  return file;
}

}  // namespace perfkit::testing
