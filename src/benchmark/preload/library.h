// The benchmark library of the program: its functions, and whether the layout of its State is known.
#pragma once

#include <dlfcn.h>

#include <string>

namespace perfkit::preload {

// Returns the next function of that name after this library's; nullptr if the program has none.
template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
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

// Adds a line to the head of the report, before main.
void AddContext(const std::string& key, const std::string& value);
void SetLabel(void* state, const std::string& label);

}  // namespace perfkit::preload
