// The benchmark library of the program that we were loaded into: its functions, and whether its State is one we know.
#pragma once

#include <dlfcn.h>

#include <string>

namespace perfkit::preload {

// The function that would have been called without us; null when the program has none.
template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// "": the layout of State is one that preload.cc may look into. Else why not.
//
// `version` is what the library says of itself ("v1.9.5"; since 1.8.4) or "". `adds_context`: it has AddCustomContext
// (since 1.5.3). What preload.cc reads of a State lies at the same places in 1.5.0 to 1.9.5.
std::string WhyNotServed(const std::string& version, bool adds_context);

// The same for this program's library, asked for once. Nothing at all is said where there is no such library.
struct Library {
  bool found = false;
  std::string why_not;
  bool served() const { return found && why_not.empty(); }
};
const Library& ProgramLibrary();

// Puts a line into the head of the report, before main.
void AddContext(const std::string& key, const std::string& value);
void SetLabel(void* state, const std::string& label);

}  // namespace perfkit::preload
