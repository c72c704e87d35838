// The benchmark library of the program: its functions, and whether the layout of its State is known.
#pragma once

#include <dlfcn.h>

#include <string>

namespace perfkit::preload {

// Returns the library that has the address `caller`, kept loaded; if that is this one (a call by a jump), the one that
// the last call returned. nullptr if there is none.
void* LibraryOf(const void* caller);

// Returns the next function of that name after this library's. Without one, that of LibraryOf(caller), or of a library
// that this one needs: a library that dlopen has loaded for itself (RTLD_LOCAL), with its Google Benchmark, is not
// found otherwise. nullptr if there is none.
template <class Function>
Function* Next(const char* name, const void* caller = nullptr) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return reinterpret_cast<Function*>(next);
  void* const library = caller == nullptr ? nullptr : LibraryOf(caller);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// Returns "" if preload.cc may use the layout of State; else why not.
//
// `version` is the library's own ("v1.9.5"; since 1.8.4) or "". `adds_context`: it has AddCustomContext (since 1.5.3).
// The members of State that preload.cc reads have the same offsets in 1.5.0 to 1.9.5. Later 1.9.x are expected to keep
// them: a patch release keeps its ABI.
std::string WhyNotServed(const std::string& version, bool adds_context);

struct Library {
  bool found = false;
  std::string why_not;  // Of WhyNotServed.
  bool served() const { return found && why_not.empty(); }
};
// Returns this program's library, looked up once. Not `found` if the program has none.
const Library& ProgramLibrary();

// Returns true if the program itself contains Google Benchmark, linked as a static library: it has the text of its help.
bool HasStaticLibrary();

// Adds a line to the head of the report, before main.
void AddContext(const std::string& key, const std::string& value);
void SetLabel(void* state, const std::string& label);

}  // namespace perfkit::preload
