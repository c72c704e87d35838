// A stub of Tracy's header, not Tracy: the macros of its manual that a test uses, which note what they were called
// with. Written for these tests after the manual; it shows that perfkit's header compiles with these macros and calls
// them.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#define TracyFunction __FUNCTION__
#define TracyFile __FILE__
#define TracyLine __LINE__
#define TRACY_CALLSTACK 0

namespace tracy {

// What this thread has told, in words.
inline std::vector<std::string>& Told() {
  thread_local std::vector<std::string> told;
  return told;
}
inline void Tell(const char* what, const std::string& text) { Told().push_back(std::string(what) + " " + text); }

struct SourceLocationData {
  const char* name;
  const char* function;
  const char* file;
  uint32_t line;
  uint32_t color;
};

class ScopedZone {
 public:
  explicit ScopedZone(const SourceLocationData* location, int32_t depth = -1, bool is_active = true)
      : is_active_(is_active) {
    if (is_active_)
      Tell("begin", Name(*location) + " " + std::to_string(location->color) + " " + std::to_string(depth));
  }
  ScopedZone(uint32_t, const char*, size_t, const char*, size_t, const char* name, size_t name_size, int32_t depth,
             bool is_active = true)
      : is_active_(is_active) {
    if (is_active_) Tell("begin", std::string(name, name_size) + " " + std::to_string(depth));
  }
  ~ScopedZone() {
    if (is_active_) Tell("end", "");
  }
  ScopedZone(const ScopedZone&) = delete;
  ScopedZone& operator=(const ScopedZone&) = delete;

  void Text(const char* text, size_t size) {
    if (is_active_) Tell("text", std::string(text, size));
  }
  void Value(uint64_t value) {
    if (is_active_) Tell("value", std::to_string(value));
  }
  void Color(uint32_t color) {
    if (is_active_) Tell("color", std::to_string(color));
  }
  bool IsActive() const { return is_active_; }

 private:
  static std::string Name(const SourceLocationData& location) {
    return location.name != nullptr ? location.name : location.function;
  }

  bool is_active_;
};

inline void SetThreadName(const char* name) { Tell("thread", name); }

}  // namespace tracy

#define ZoneScoped ::tracy::no_macro_of_the_stub
#define ZoneText(text, size) ___tracy_scoped_zone.Text(text, size)
#define ZoneTextV(variable, text, size) variable.Text(text, size)
#define ZoneValue(value) ___tracy_scoped_zone.Value(value)
#define ZoneIsActive ___tracy_scoped_zone.IsActive()
#define ZoneIsActiveV(variable) variable.IsActive()
#define FrameMark ::tracy::Tell("frame", "")
#define FrameMarkNamed(name) ::tracy::Tell("frame", name)
#define FrameMarkStart(name) ::tracy::Tell("start", name)
#define FrameMarkEnd(name) ::tracy::Tell("end", name)
#define TracyPlot(name, value) ::tracy::Tell("plot", std::string(name) + " " + std::to_string(value))
#define TracyMessage(text, size) ::tracy::Tell("message", std::string(text, size))
#define TracyLockable(type, variable) type variable
#define LockableBase(type) type
