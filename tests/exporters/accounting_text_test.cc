// Sentences of a profile's accounting.
#include "src/exporters/accounting_text.h"

#include <catch2/catch.hpp>

#include "tests/profile/sample_profile.h"

namespace perfkit::exporters {
namespace {

std::string TextOf(const Profile& profile) {
  std::string text;
  for (const std::string& line : AccountingLines(profile)) text += line + "\n";
  return text;
}

TEST_CASE("the accounting says what became of each event's samples", "[exporters][accounting]") {
  Profile profile = profile::SampleProfile();
  profile.events[0].user_only = true;
  auto& kernel = profile.events[0].accounting;
  kernel.counted = 120'000'000, kernel.delivered = 100, kernel.lost = 7, kernel.throttled = 2;
  kernel.unsampled_ns = 13'000'000, kernel.stacks.delivered = 90, kernel.stacks.stale = 10;
  const std::string text = TextOf(profile);
  CHECK_THAT(text, Catch::Contains("cpu-clock: 100000000 nanoseconds in 100 samples, user space only\n"));
  CHECK_THAT(text, Catch::Contains("the kernel counted 120000000, samples: delivered 100, lost 7, times throttled 2, "
                                   "unsampled nanoseconds 13000000\n"));
  CHECK_THAT(text, Catch::Contains("cpu-clock: live stacks: delivered 90, stale 10\n"));
  CHECK_THAT(text, Catch::Contains("page-faults: has no count of the kernel's\n"));
  CHECK_THAT(text, Catch::Contains("stacks of samples: whole 99, part 5, leaf only 0, last known 1, none 0\n"));
  kernel.counted_is_lower_bound = true;
  CHECK_THAT(TextOf(profile), Catch::Contains("the kernel counted at least 120000000"));
}

TEST_CASE("the accounting says what is missing, and repeats the notes", "[exporters][accounting]") {
  Profile profile = profile::SampleProfile();
  CHECK_THAT(TextOf(profile), Catch::Contains("missing besides: nothing that is known\n"));
  CHECK_THAT(TextOf(profile), Catch::Contains("\nstacks: live\n3 samples lost\n"));
  profile.accounting.times_forgotten = 5;
  profile.accounting.side_band_lost = 6;
  CHECK_THAT(TextOf(profile),
             Catch::Contains("missing besides: samples merged without their times 5, records of mappings and "
                             "threads lost 6\n"));
  profile.accounting.zones_forgotten = 7;
  profile.accounting.zone_records_lost = 8;
  CHECK_THAT(TextOf(profile), Catch::Contains("zones and frames without times 7, begins and ends of zones lost 8, "));
  profile.accounting.task_parts_forgotten = 9;
  profile.accounting.task_records_lost = 10;
  CHECK_THAT(TextOf(profile), Catch::Contains("parts of tasks without times 9, switches of tasks lost 10, "));
}

}  // namespace
}  // namespace perfkit::exporters
