// Fuzzes the reader of sysfs: one byte picks a file of a PMU, the others are what it holds.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "perfkit/event.h"
#include "src/event/catalog.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {
namespace {

constexpr const char* kFiles[] = {"type",     "cpus",           "cpumask",       "format/event", "format/flag",
                                  "events/e", "events/e.scale", "events/e.unit", "events/f"};

// A PMU in a folder that goes with the program.
class FuzzedPmu {
 public:
  FuzzedPmu() {
    char path[] = "/tmp/perfkit_fuzz_XXXXXX";
    PERFKIT_FUZZ_CHECK(::mkdtemp(path) != nullptr);
    roots_ = {.sysfs = path, .tracefs = "/nonexistent", .proc = "/nonexistent"};
    for (const char* folder : {"format", "events"}) std::filesystem::create_directories(Folder() + folder);
    Write("type", "33\n");
    Write("format/event", "config:0-7,32-35\n");
    Write("format/flag", "config1:8\n");
    Write("events/e", "event=0x11,flag\n");
    Write("events/f", "e\n");
  }
  ~FuzzedPmu() { std::filesystem::remove_all(roots_.sysfs); }

  const EventRoots& roots() const { return roots_; }
  void Write(const std::string& file, std::string_view text) const {
    // A new file each time: ext4 waits for the disk when an old one is cut short and written again.
    std::filesystem::remove(Folder() + file);
    std::ofstream(Folder() + file, std::ios::binary) << text;
  }
  std::string Read(const std::string& file) const {
    std::ifstream in(Folder() + file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  bool Has(const std::string& file) const { return std::filesystem::exists(Folder() + file); }
  void Remove(const std::string& file) const { std::filesystem::remove(Folder() + file); }

 private:
  std::string Folder() const { return roots_.sysfs + "/bus/event_source/devices/p/"; }
  EventRoots roots_;
};

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzSysfs) {
  static const FuzzedPmu pmu;
  if (size == 0) return 0;
  const std::string file = kFiles[data[0] % std::size(kFiles)];
  const bool existed = pmu.Has(file);
  const std::string before = existed ? pmu.Read(file) : "";
  pmu.Write(file, {reinterpret_cast<const char*>(data) + 1, size - 1});
  for (const char* text : {"p/e/", "p/f/u", "p/event=3,flag/", "e", "p"}) {
    const absl::StatusOr<EventConfig> event = ParseEvent(text, pmu.roots());
    PERFKIT_FUZZ_CHECK(event.ok() ? event->parts.size() == 1 && event->scale > 0
                                  : event.status().message().size() < 4000);
  }
  event::ForEachKnownEvent(pmu.roots(),
                           [](const event::KnownEvent& known) { PERFKIT_FUZZ_CHECK(!known.name.empty()); });
  existed ? pmu.Write(file, before) : pmu.Remove(file);
  return 0;
}

}  // namespace perfkit
