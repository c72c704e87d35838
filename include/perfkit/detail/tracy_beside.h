// Tracy's macros of zones and frames, for Tracy and perfkit at once. Included by tracy.h; do not include it directly.
//
// A zone is one object, derived from Tracy's, so that Tracy's macros for its text, name, value and colour, and its
// member functions, work on it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "perfkit/annotations.h"

#ifndef TracyFunction
#define TracyFunction __FUNCTION__
#endif
#ifndef TracyFile
#define TracyFile __FILE__
#endif
#ifndef TracyLine
#define TracyLine __LINE__
#endif

// Newer versions of Tracy define TRACY_CALLSTACK; 0 means no call stack. In older versions a constructor that has a
// depth always captures a call stack, so the constructor without one is used.
#if defined(TRACY_CALLSTACK)
#define PERFKIT_TRACY_DEPTH TRACY_CALLSTACK
#else
#define PERFKIT_TRACY_DEPTH ::perfkit::detail::NoDepth()
#endif

namespace perfkit::detail {

struct NoDepth {};

// A zone of Tracy and of perfkit. perfkit's zone is inside of Tracy's: its counts become the text of Tracy's zone
// before that ends.
class TracyZone : public ::tracy::ScopedZone {
 public:
  TracyZone(const ::tracy::SourceLocationData* location, ZoneId id, int depth, bool is_active)
      : ::tracy::ScopedZone(location, depth, is_active), frames_(AnnotatedFramesIf(is_active)), zone_(frames_, id) {}
  // A zone with a name that is made at run time.
  TracyZone(uint32_t line, const char* file, const char* function, const char* name, int depth, bool is_active)
      : ::tracy::ScopedZone(line, file, std::strlen(file), function, std::strlen(function), name, std::strlen(name),
                            depth, is_active),
        frames_(AnnotatedFramesIf(is_active)),
        zone_(AnnotatedCopyZone(frames_, name)) {}
#if !defined(TRACY_CALLSTACK)
  TracyZone(const ::tracy::SourceLocationData* location, ZoneId id, NoDepth, bool is_active)
      : ::tracy::ScopedZone(location, is_active), frames_(AnnotatedFramesIf(is_active)), zone_(frames_, id) {}
  TracyZone(uint32_t line, const char* file, const char* function, const char* name, NoDepth, bool is_active)
      : ::tracy::ScopedZone(line, file, std::strlen(file), function, std::strlen(function), name, std::strlen(name),
                            is_active),
        frames_(AnnotatedFramesIf(is_active)),
        zone_(AnnotatedCopyZone(frames_, name)) {}
#endif
  ~TracyZone() {
    if (frames_ == nullptr || !IsActive()) return;
    FrameRecord counts;
    zone_.End(counts);
    std::array<char, 512> text;
    const size_t length = FormatCounts(*frames_, counts, text);
    if (length != 0) Text(text.data(), length);
  }
  TracyZone(const TracyZone&) = delete;
  TracyZone& operator=(const TracyZone&) = delete;

 private:
  FrameCounter* frames_;
  FrameCounter::Zone zone_;
};

}  // namespace perfkit::detail

#define PERFKIT_TRACY_LOCATION PERFKIT_CONCAT(perfkit_tracy_location_, __LINE__)
#define PERFKIT_TRACY_ZONE(variable, name, color, depth, is_active)                                             \
  static constexpr ::tracy::SourceLocationData PERFKIT_TRACY_LOCATION{name, TracyFunction, TracyFile,           \
                                                                      static_cast<uint32_t>(TracyLine), color}; \
  ::perfkit::detail::TracyZone variable(&PERFKIT_TRACY_LOCATION,                                                \
                                        ::perfkit::detail::AnnotatedZoneId(name, TracyFunction), depth, is_active)
// The name of the variable is Tracy's: ZoneText and others use it. Scopes in a scope hide it on purpose.
#define PERFKIT_TRACY_SCOPE(name, color, depth)                                 \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") \
      PERFKIT_TRACY_ZONE(___tracy_scoped_zone, name, color, depth, true);       \
  _Pragma("GCC diagnostic pop") static_assert(true)
#define PERFKIT_TRACY_TRANSIENT(variable, name, depth, is_active)                                                \
  ::perfkit::detail::TracyZone variable(static_cast<uint32_t>(TracyLine), TracyFile, TracyFunction, name, depth, \
                                        is_active)

namespace perfkit::detail {

// The end of a main frame: Tracy gets the counts of the frame that has ended as one plot for each event.
inline void MarkTracyFrame() noexcept {
  FrameMark;
  const MarkedFrame frame = MarkAnnotatedFrame();
  for (size_t i = 0; i < frame.names.size(); ++i) {
    if ((frame.record->missing >> i & 1) != 0) continue;
    TracyPlot(frame.names[i], static_cast<int64_t>(frame.record->values[i]));
  }
}

inline void MarkTracyFrame(const char* name) noexcept {
  FrameMarkNamed(name);
  MarkAnnotated(name);
}

inline void StartTracyFrame(const char* name) noexcept {
  FrameMarkStart(name);
  StartAnnotatedRun(name);
}

inline void EndTracyFrame(const char* name) noexcept {
  EndAnnotatedRun(name);
  FrameMarkEnd(name);
}

}  // namespace perfkit::detail

#undef FrameMark
#undef FrameMarkNamed
#undef FrameMarkStart
#undef FrameMarkEnd
#define FrameMark ::perfkit::detail::MarkTracyFrame()
#define FrameMarkNamed(name) ::perfkit::detail::MarkTracyFrame(name)
#define FrameMarkStart(name) ::perfkit::detail::StartTracyFrame(name)
#define FrameMarkEnd(name) ::perfkit::detail::EndTracyFrame(name)
