// Finds functions of several versions of the benchmark library by their names in the Itanium C++ ABI. A name that is
// missing is no error: versions are told apart by what they export, and only then by the number that newer ones return.
#include "src/benchmark/preload/library.h"

#include <atomic>
#include <cstdlib>

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
