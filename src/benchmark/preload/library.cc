// Finds functions of several versions of the benchmark library by their names in the Itanium C++ ABI. A name that is
// missing is no error: versions are told apart by what they export, and only then by the number that newer ones return.
#include "src/benchmark/preload/library.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace perfkit::preload {
namespace {

#define PERFKIT_STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

// A parameter by reference up to 1.9.4, by value since then. Both are passed as the addresses of the strings.
constexpr char kContextByReference[] = "_ZN9benchmark16AddCustomContextERK" PERFKIT_STRING "S7_";
constexpr char kContextByValue[] = "_ZN9benchmark16AddCustomContextE" PERFKIT_STRING "S5_";
constexpr char kVersion[] = "_ZN9benchmark19GetBenchmarkVersionB5cxx11Ev";
constexpr char kStart[] = "_ZN9benchmark5State16StartKeepRunningEv";
constexpr char kLabelChars[] = "_ZN9benchmark5State8SetLabelEPKc";                 // Up to 1.7.
constexpr char kLabelString[] = "_ZN9benchmark5State8SetLabelERK" PERFKIT_STRING;  // Since 1.8.

// Parses the number at `text`, and moves `text` past it and the dot that follows. Returns -1 if there is none.
long TakeNumber(const char*& text) {
  char* end = nullptr;
  const long number = *text >= '0' && *text <= '9' ? std::strtol(text, &end, 10) : -1;
  if (end != nullptr) text = *end == '.' ? end + 1 : end;
  return number;
}

// Of the help in 1.5.0 to 1.9.5.
constexpr std::string_view kHelp = "[--benchmark_list_tests={true|false}]";
// Larger programs are searched in part.
constexpr size_t kMaxSearched = size_t{64} << 20;

// A callback of dl_iterate_phdr, which begins with the program. Sets *`found` to whether its constants contain kHelp.
int SearchProgram(dl_phdr_info* program, size_t, void* found) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0 || (segment.p_flags & PF_W) != 0) continue;
    const auto* const start = reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
    const size_t size = std::min<size_t>(segment.p_filesz, kMaxSearched);
    if (memmem(start, size, kHelp.data(), kHelp.size()) != nullptr) *static_cast<bool*>(found) = true;
  }
  return 1;  // Not the libraries.
}

Library Ask() {
  if (Next<void()>(kStart) == nullptr) return {};
  std::string version;
  if (auto* const ask = Next<std::string()>(kVersion)) version = ask();
  const bool adds_context = Next<void()>(kContextByReference) != nullptr || Next<void()>(kContextByValue) != nullptr;
  return {.found = true, .why_not = WhyNotServed(version, adds_context)};
}

}  // namespace

void* LibraryOf(const void* caller) {
  static std::atomic<void*> latest{nullptr};
  Dl_info of_caller{}, own{};
  if (dladdr(caller, &of_caller) == 0 || dladdr(reinterpret_cast<const void*>(&LibraryOf), &own) == 0) return nullptr;
  if (of_caller.dli_fbase != own.dli_fbase) latest = dlopen(of_caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return latest;
}

std::string WhyNotServed(const std::string& version, bool adds_context) {
  if (!adds_context) return "this program's Google Benchmark is older than 1.5.3";
  if (version.empty()) return "";
  const char* text = version.c_str();
  if (*text == 'v') ++text;
  const long major = TakeNumber(text), minor = TakeNumber(text);
  if (major == 1 && minor >= 5 && minor <= 9) return "";
  return "this program's Google Benchmark has version '" + version + "', and perfkit supports 1.5.3 to 1.9.5";
}

const Library& ProgramLibrary() {
  static const Library& library = *new Library(Ask());
  return library;
}

bool HasStaticLibrary() {
  bool found = false;
  dl_iterate_phdr(SearchProgram, &found);
  return found;
}

void AddContext(const std::string& key, const std::string& value) {
  using ByReference = void(const std::string&, const std::string&);
  using ByValue = void(std::string, std::string);
  if (auto* const add = Next<ByReference>(kContextByReference)) return add(key, value);
  if (auto* const add = Next<ByValue>(kContextByValue)) add(key, value);
}

void SetLabel(void* state, const std::string& label) {
  static auto* const by_string = Next<void(void*, const std::string&)>(kLabelString);
  static auto* const by_chars = Next<void(void*, const char*)>(kLabelChars);
  if (by_string != nullptr) return by_string(state, label);
  if (by_chars != nullptr) by_chars(state, label.c_str());
}

}  // namespace perfkit::preload
