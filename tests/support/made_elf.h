// Shared libraries and programs that are made without a compiler: their functions touch memory, and the order of the
// functions, their names and the build-id are the caller's.
#pragma once

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace perfkit::testing {

// Describes a file to make.
struct MadeElf {
  std::vector<std::string> functions;  // In the order of their code.
  std::string build_id;                // Its bytes; "" for none.
  uint64_t lead = 0;                   // Bytes of padding before the first function.
};

// In a program, function `k` touches the byte at this address.
inline constexpr uint64_t ProgramByte(size_t k) { return 0x2000'0000 + k * 0x1'0000; }

namespace made {

inline constexpr uint64_t kFunctionBytes = 32, kProgramText = 0x1000'0000;

#if defined(__x86_64__)
inline constexpr uint16_t kMachine = EM_X86_64;
inline constexpr uint64_t kStoreInProgram = 0;  // Bytes from the start of a function to the instruction that stores.
inline std::string TouchArgument() { return std::string("\xc6\x07\x01\xc3", 4); }  // movb $1,(%rdi); ret
inline std::string TouchByte(uint32_t address) {                                   // movb $1,address
  std::string code("\xc6\x04\x25....\x01", 8);
  std::memcpy(&code[3], &address, sizeof(address));
  return code + std::string(kFunctionBytes - code.size(), '\x90');
}
inline std::string Exit() { return std::string("\xb8\x3c\0\0\0\x31\xff\x0f\x05", 9); }
#else
inline std::string Words(std::initializer_list<uint32_t> words) {
  std::string code;
  for (const uint32_t word : words) code.append(reinterpret_cast<const char*>(&word), sizeof(word));
  return code;
}
inline constexpr uint64_t kStoreInProgram = 4;
#if defined(__aarch64__)
inline constexpr uint16_t kMachine = EM_AARCH64;
inline constexpr uint32_t kNop = 0xd503201f;
inline std::string TouchArgument() { return Words({0x3900001f, 0xd65f03c0}); }  // strb wzr,[x0]; ret
inline std::string TouchByte(uint32_t address) {                                // movz x0,#high,lsl #16; strb wzr,[x0]
  return Words({0xd2a00000 | address >> 16 << 5, 0x3900001f, kNop, kNop, kNop, kNop, kNop, kNop});
}
inline std::string Exit() { return Words({0xd2800ba8, 0xd2800000, 0xd4000001}); }
#else
inline constexpr uint16_t kMachine = EM_RISCV;
inline constexpr uint32_t kNop = 0x00000013;
inline std::string TouchArgument() { return Words({0x00050023, 0x00008067}); }  // sb zero,0(a0); ret
inline std::string TouchByte(uint32_t address) {                                // lui a0,high; sb zero,0(a0)
  return Words({address >> 12 << 12 | 10 << 7 | 0x37, 0x00050023, kNop, kNop, kNop, kNop, kNop, kNop});
}
inline std::string Exit() { return Words({0x05d00893, 0x00000513, 0x00000073}); }
#endif
#endif

template <class T>
void Append(std::string& file, const T& value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline std::string NoteBytes(const std::string& build_id) {
  std::string note;
  if (build_id.empty()) return note;
  Append(note, Elf64_Nhdr{4, static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID});
  note.append("GNU\0", 4).append(build_id);
  note.resize((note.size() + 7) / 8 * 8);
  return note;
}

// The parts that programs and libraries have in common, at their offsets.
class Layout {
 public:
  Layout(const MadeElf& made, bool is_program)
      : page_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))), made_(made), is_program_(is_program) {
    text_address_ = is_program ? kProgramText : 4 * page_;
    for (size_t k = 0; k < made.functions.size(); ++k) AddFunction(k);
    if (is_program) text_ += Exit();
    names_ = std::string(1, '\0');
    AddSymbols();
  }

  std::string Build() const {
    constexpr uint64_t kHeaders = sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr);
    const std::string note = NoteBytes(made_.build_id), hash = HashBytes();
    const uint64_t hash_at = kHeaders + note.size(), symbols_at = hash_at + hash.size(),
                   names_at = symbols_at + symbols_.size(), dynamic_at = (names_at + names_.size() + 15) / 16 * 16;
    const std::string dynamic = DynamicBytes(hash_at, symbols_at, names_at);
    const uint64_t data_end = dynamic_at + dynamic.size();
    std::string file = HeaderBytes(text_at() + text_.size());
    const Elf64_Word data_flags = is_program_ ? PF_R : PF_R | PF_W, note_type = note.empty() ? PT_NULL : PT_NOTE;
    Append(file, Elf64_Phdr{PT_LOAD, data_flags, 0, base(), base(), data_end, data_end, page_});
    Append(file, Elf64_Phdr{PT_LOAD, PF_R | PF_X, text_at(), text_address_, text_address_, text_.size(), text_.size(),
                            page_});
    Append(file, Elf64_Phdr{PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16});
    Append(file,
           Elf64_Phdr{note_type, PF_R, kHeaders, base() + kHeaders, base() + kHeaders, note.size(), note.size(), 4});
    Append(file, is_program_ ? BytesSegment()
                             : Elf64_Phdr{PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_at, dynamic_at, dynamic.size(),
                                          dynamic.size(), 8});
    file += note + hash + symbols_ + names_;
    file.resize(dynamic_at);
    file += dynamic;
    file.resize(text_at());
    file += text_;
    AppendSections(file, symbols_at, names_at);
    return file;
  }

 private:
  uint64_t base() const { return is_program_ ? kProgramText - 2 * page_ : 0; }
  // Of a library, addresses of code differ from offsets.
  uint64_t text_at() const { return 2 * page_; }

  void AddFunction(size_t k) {
    text_.resize(std::max<size_t>(text_.size(), made_.lead));
    starts_.push_back(text_address_ + text_.size());
    text_ += is_program_ ? TouchByte(static_cast<uint32_t>(ProgramByte(k))) : TouchArgument();
    text_.resize(made_.lead + (k + 1) * kFunctionBytes);
  }

  void AddSymbols() {
    Append(symbols_, Elf64_Sym{});
    for (size_t k = 0; k < starts_.size(); ++k) {
      Append(symbols_, Elf64_Sym{static_cast<Elf64_Word>(names_.size()), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 STV_DEFAULT, 3, starts_[k], kFunctionBytes});
      names_ += made_.functions[k] + '\0';
    }
    names_.resize((names_.size() + 7) / 8 * 8);
  }

  // One bucket: a chain of all symbols.
  std::string HashBytes() const {
    const auto symbols = static_cast<uint32_t>(starts_.size() + 1);
    std::string hash;
    for (const uint32_t word : {1u, symbols, 1u, 0u}) Append(hash, word);
    for (uint32_t i = 1; i < symbols; ++i) Append(hash, i + 1 < symbols ? i + 1 : 0u);
    hash.resize((hash.size() + 7) / 8 * 8);
    return hash;
  }

  std::string DynamicBytes(uint64_t hash_at, uint64_t symbols_at, uint64_t names_at) const {
    std::string dynamic;
    if (is_program_) return dynamic;
    const std::array<std::pair<Elf64_Sxword, uint64_t>, 6> entries{{{DT_HASH, hash_at},
                                                                    {DT_SYMTAB, symbols_at},
                                                                    {DT_STRTAB, names_at},
                                                                    {DT_STRSZ, names_.size()},
                                                                    {DT_SYMENT, sizeof(Elf64_Sym)},
                                                                    {DT_NULL, 0}}};
    for (const auto& [tag, value] : entries) Append(dynamic, Elf64_Dyn{tag, {value}});
    return dynamic;
  }

  std::string HeaderBytes(uint64_t sections_at) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = is_program_ ? ET_EXEC : ET_DYN;
    header.e_machine = kMachine;
    header.e_version = EV_CURRENT;
    header.e_entry = is_program_ ? starts_.front() : 0;
    header.e_phoff = header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_shoff = (sections_at + 7) / 8 * 8;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 5;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 4;
    std::string file;
    Append(file, header);
    return file;
  }

  // The memory that a program touches.
  Elf64_Phdr BytesSegment() const {
    return {PT_LOAD, PF_R | PF_W, 0, ProgramByte(0), ProgramByte(0), 0, ProgramByte(starts_.size()) - ProgramByte(0),
            page_};
  }

  // Sections have no names: no table says where those would be.
  void AppendSections(std::string& file, uint64_t symbols_at, uint64_t names_at) const {
    file.resize((file.size() + 7) / 8 * 8);
    Append(file, Elf64_Shdr{});
    Append(file, Elf64_Shdr{0, SHT_DYNSYM, SHF_ALLOC, base() + symbols_at, symbols_at, symbols_.size(), 2, 1, 8,
                            sizeof(Elf64_Sym)});
    Append(file, Elf64_Shdr{0, SHT_STRTAB, SHF_ALLOC, base() + names_at, names_at, names_.size(), 0, 0, 1, 0});
    Append(file,
           Elf64_Shdr{0, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text_address_, text_at(), text_.size(), 0, 0, 16, 0});
  }

  const uint64_t page_;
  const MadeElf& made_;
  const bool is_program_;
  uint64_t text_address_ = 0;
  std::vector<uint64_t> starts_;
  std::string text_, symbols_, names_;
};

}  // namespace made

// Returns the bytes of a shared library. Each function is a `void f(volatile char*)` that stores a byte, with its first
// instruction.
inline std::string MakeLibrary(const MadeElf& made) { return made::Layout(made, false).Build(); }

// Returns the bytes of a program that touches ProgramByte(k) in function k, one after the other, and ends with code 0.
inline std::string MakeProgram(const MadeElf& made) { return made::Layout(made, true).Build(); }

}  // namespace perfkit::testing
