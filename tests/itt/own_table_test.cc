// The end of counting for the table of libperfkit_itt.so.
#include "src/itt/library/own_table.h"

#include <catch2/catch.hpp>
#include <thread>

#include "src/itt/library/report.h"

namespace perfkit::itt {
namespace {

TEST_CASE("itt report: tasks that begin after the table was taken are not those of a pause", "[itt]") {
  uint64_t late = 0, paused = 0;
  std::string text;
  std::thread([&] {
    static auto* const table = new OwnTable({.path = "/dev/null", .events = {"page-faults"}});  // As in the library.
    Collector& collector = table->collector();
    const Domain domain{.flags = 1, .name = "app"};
    const auto tasks = [&](int count) {
      for (int i = 0; i < count; ++i) {
        collector.Begin(&domain, OpenKind::kTask, {}, KeyKind::kHandle, nullptr);
        collector.End(&domain, OpenKind::kTask, {});
      }
    };
    tasks(3);
    collector.SetPaused(true);
    tasks(5);
    collector.SetPaused(false);
    table->Finish();
    tasks(7);
    late = collector.uncounted().late;
    paused = collector.uncounted().paused;
    FrameCounter frames({.events = {"page-faults"}});
    text = FormatTable(frames, count::FrameCounterImpl::Of(frames)->plan(), {}, collector.uncounted(), 0);
  }).join();
  CHECK(late == 7);
  CHECK(paused == 5);
  CHECK_THAT(text, Catch::Contains("7 tasks begun after the table was taken: not counted\n") &&
                       Catch::Contains("5 tasks begun while collection was paused: not counted\n"));
}

}  // namespace
}  // namespace perfkit::itt
