// THE table of floors, and its drawing.
#include "tests/tidy/floors.h"

#include <algorithm>

namespace perfkit::tidy {
namespace {

constexpr Room kRooms[] = {
    {"preload", 7, "a whole program's profile, by LD_PRELOAD"},
    {"session", 6, "start, stop, look: records to a profile, time off the CPU"},
    {"exporters", 6, "profiles as files of other viewers: perfkit::exporters"},
    {"doctor", 6, "capabilities, and every event with the reason why it can't be used"},
    {"benchmark", 6, "Google Benchmark's adapter: perfkit::benchmark, and its preload library"},
    {"testing", 6, "matchers: outcomes, limits, baselines; the wrapped malloc"},
    {"sample", 5, "samplers: which events where, accounting, budgets"},
    {"measure", 5, "what a region costs, for tests: backends, repetitions, statistics"},
    {"profile", 5, "a profile as a value: trees, reports, files of the core"},
    {"itt", 5, "tasks of ITT-annotated code as zones; library/: libperfkit_itt.so"},
    {"count", 4, "sets, read paths, scopes; frame/: FrameCounter and its parts"},
    {"symbolize", 4, "names of code; dwarf/: inlined calls and lines, perfkit::dwarf"},
    {"unwind/dwarf/sampled", 4, "stacks of samples: walker, caches, stitching, queue; perfkit::dwarf"},
    {"unwind/dwarf/live", 4, "a thread's own stack: frozen tables, live walk; perfkit::dwarf"},
    {"open", 3, "one perf_event_open with its retries, rings that are mapped"},
    {"unwind/dwarf/cfi", 3, "call frame information: sections, programs, rows, slow steps; perfkit::dwarf"},
    {"unwind", 2, "rules, and the step from a frame to its caller"},
    {"event", 2, "names to perf_event_attr"},
    {"proc", 2, "threads, mappings and symbols of processes"},
    {"step", 2, "instructions counted by the trap flag"},
    {"sys", 1, "the only system calls"},
    {"ring", 1, "rings, records and samples as views"},
    {"elf", 1, "a bounded reader of ELF files"},
    {"base", 0, "numbers and text"},
};

// The headers of include/perfkit/, without ".h", that a room implements. A header that has no functions to implement is
// in the lowest room of its subject.
struct RoomHeaders {
  std::string_view room, headers;
};
constexpr RoomHeaders kHeaders[] = {
    {"session", "blocked_threads keep_frames profile_collector session session_batch session_callback"},
    {"exporters", "exporters"},
    {"doctor", "capabilities"},
    {"benchmark", "benchmark benchmark_region"},
    {"testing", "testing"},
    {"sample", "live_stack sampler sampler_options thread_times"},
    {"measure", "measure off/measure"},
    {"itt", "itt"},
    {"profile", "profile profile_builder profile_difference profile_writer report slow_frames"},
    {"count",
     "annotations count counter detail/tracy_alone detail/tracy_beside format frame frame_counter metric metric_set "
     "optick scope task_boost_fiber task_counter task_coroutine task_job task_labels task_tbb thread_slots tracy warmup "
     "off/count off/counter off/frame_counter off/scope off/task_counter off/thread_slots off/warmup"},
    {"symbolize", "debuginfod dwarf_lines symbolizer"},
    {"unwind/dwarf/sampled", "unwinder"},
    {"unwind/dwarf/live", "live_unwinder"},
    {"open", "child target"},
    {"unwind", "kernel_frames stack_frame"},
    {"event", "event event_specs event_type measured_events pfm tracepoint off/event_spec off/event_specs off/reason"},
    {"ring",
     "call_chain data_source detail/sample_fields detail/sample_inline detail/user_page "
     "record ring_reader sample sampler_record sampler_stats"},
    {"base", "enable detail/library_only"},
};

// Returns true if there are rooms inside room `name`.
bool HasRooms(std::string_view name) {
  return std::any_of(std::begin(kRooms), std::end(kRooms),
                     [&](auto& r) { return r.name.starts_with(name) && r.name.substr(name.size()).starts_with('/'); });
}

}  // namespace

std::span<const Room> Rooms() { return kRooms; }

const Room* FindRoom(std::string_view name) {
  const auto* const room = std::find_if(std::begin(kRooms), std::end(kRooms), [&](auto& r) { return r.name == name; });
  return room == std::end(kRooms) ? nullptr : room;
}

const Room* RoomOf(std::string_view folder) {
  for (std::string_view name = folder;;) {
    if (const Room* const room = FindRoom(name); room != nullptr) {
      return name.size() < folder.size() && HasRooms(name) ? nullptr : room;
    }
    const size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return nullptr;
    name = name.substr(0, slash);
  }
}

const Room* RoomOfFile(std::string_view path) {
  constexpr std::string_view kSource = "src/", kInclude = "include/", kPublic = "perfkit/";
  if (const size_t slash = path.rfind('/'); path.starts_with(kSource) && slash > kSource.size()) {
    return RoomOf(path.substr(kSource.size(), slash - kSource.size()));
  }
  if (path.starts_with(kInclude)) path.remove_prefix(kInclude.size());
  if (!path.starts_with(kPublic) || !path.ends_with(".h")) return nullptr;
  const std::string header = " " + std::string(path.substr(kPublic.size(), path.rfind('.') - kPublic.size())) + " ";
  for (const auto& [room, headers] : kHeaders) {
    if ((" " + std::string(headers) + " ").find(header) != std::string::npos) return FindRoom(room);
  }
  return nullptr;
}

std::string DrawFloors() {
  constexpr size_t kColumn = 22;
  std::string text;
  int floor = -1;
  for (const Room& room : kRooms) {
    text += room.floor == floor ? "   " : " " + std::to_string(room.floor) + " ";
    floor = room.floor;
    text +=
        "  " + std::string(room.name) + std::string(kColumn - room.name.size(), ' ') + std::string(room.purpose) + "\n";
  }
  return text;
}

std::string WithDrawing(std::string_view page) {
  constexpr std::string_view kFence = "```\n";
  const size_t mark = page.find(kDrawingMark);
  const size_t begin = mark == std::string_view::npos ? mark : page.find(kFence, mark);
  const size_t end = begin == std::string_view::npos ? begin : page.find(kFence, begin + kFence.size());
  if (end == std::string_view::npos) return std::string(page);
  return std::string(page.substr(0, begin + kFence.size())) + DrawFloors() + std::string(page.substr(end));
}

}  // namespace perfkit::tidy
