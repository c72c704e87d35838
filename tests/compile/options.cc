// Structs that callers fill, each as far as it concerns them: g++ must not warn of the members that they leave out.
#include <perfkit/benchmark.h>
#include <perfkit/capabilities.h>
#include <perfkit/counter.h>
#include <perfkit/format.h>
#include <perfkit/frame_counter.h>
#include <perfkit/measure.h>
#include <perfkit/sampler.h>
#include <perfkit/symbolizer.h>
#include <perfkit/task_coroutine.h>
#include <perfkit/thread_slots.h>

namespace {

template <class... Options>
void Use(const Options&...) {}

[[maybe_unused]] void FillPartly() {
  Use(perfkit::CounterOptions{.user_only = true}, perfkit::ListOptions{.probe_tracepoints = true});
  Use(perfkit::FrameOptions{.events = {"task-clock"}}, perfkit::FrameOptions{.max_zones = 8});
  Use(perfkit::TaskOptions{.events = {"task-clock"}}, perfkit::TaskOptions{.max_zones = 8});
  Use(perfkit::ThreadSlots::Options{.max_threads = 4});
  Use(perfkit::SampledEvent{.event = "page-faults"}, perfkit::SamplerOptions{.side_band = true});
  Use(perfkit::EventRoots{.sysfs = "/sys"}, perfkit::EventRoots{.proc = "/proc"});
  Use(perfkit::EventConfig{.name = "a"}, perfkit::EventConfig::Part{.type = 1}, perfkit::EventType{.config = 1});
  Use(perfkit::NamedCount{.name = "cycles"}, perfkit::TableRow{.name = "cycles"}, perfkit::TableRow{.scale = 2});
  Use(perfkit::Count{.value = 1}, perfkit::Target{.id = 1});
}

}  // namespace
