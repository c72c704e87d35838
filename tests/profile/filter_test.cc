// Filters, against the plain way: each sample judged on its own.
#include <fnmatch.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/profile/random_profile.h"
#include "tests/profile/sample_profile.h"

namespace perfkit::profile {
namespace {

constexpr uint32_t kFilterSeeds = 15;

bool Matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool IsKept(const Profile& profile, const Profile::Filter& filter, const ProfileSample& sample) {
  const std::vector<uint32_t>& threads = filter.threads;
  if (!threads.empty() && std::find(threads.begin(), threads.end(), sample.thread) == threads.end()) return false;
  const std::string& name = profile.strings[profile.threads[sample.thread].name];
  if (!filter.thread_name.empty() && !Matches(filter.thread_name, name)) return false;
  if (!filter.label.empty() && (sample.label == 0 || !Matches(filter.label, profile.strings[sample.label])))
    return false;
  if (!filter.task.empty() && (sample.task == 0 || !Matches(filter.task, profile.strings[sample.task]))) return false;
  if (!filter.function.empty()) {
    const std::vector<std::string> names = NamesOf(profile, sample.stack);
    const auto matches = [&](const std::string& function) { return Matches(filter.function, function); };
    if (std::none_of(names.begin(), names.end(), matches)) return false;
  }
  const bool by_time = filter.from_ns != 0 || filter.to_ns != UINT64_MAX || !filter.zone.empty();
  if (!by_time) return true;
  if (sample.merged() || sample.time_ns < filter.from_ns || sample.time_ns >= filter.to_ns) return false;
  return filter.zone.empty() || std::any_of(profile.zones.begin(), profile.zones.end(), [&](const ProfileZone& zone) {
           return zone.thread == sample.thread && Matches(filter.zone, profile.strings[zone.name]) &&
                  zone.from_ns <= sample.time_ns && sample.time_ns < zone.to_ns;
         });
}

void CheckFilter(const Profile& profile, const Profile::Filter& filter) {
  Profile expected = profile;
  std::erase_if(expected.samples, [&](const ProfileSample& sample) { return !IsKept(profile, filter, sample); });
  const Profile filtered = profile.Filtered(filter);
  CHECK(filtered.Check() == absl::OkStatus());
  CHECK(filtered.samples.size() == expected.samples.size());
  CHECK(SumsByStack(filtered) == SumsByStack(expected));
}

TEST_CASE("a filter keeps the samples that meet all conditions", "[profile][filter]") {
  size_t kept = 0, all = 0;
  for (uint32_t seed = 0; seed < kFilterSeeds; ++seed) {
    const Profile profile = RandomProfile(seed).Make();
    const Profile::Filter filters[] = {
        {},
        {.threads = {1}},
        {.threads = {0, 2, 99}},
        {.thread_name = "worker*"},
        {.thread_name = "[mw]*", .function = "f?"},
        {.from_ns = 1200, .to_ns = 1700},
        {.to_ns = 1300},
        {.function = "f[0-3]*"},
        {.function = "*T>(int)"},
        {.function = "\\[libz.so\\]*"},
        {.label = "label *"},
        {.task = "task [12]"},
        {.label = "label 1", .task = "*"},
        {.label = "*1", .zone = "zone 1"},
        {.zone = "zone *"},
        {.thread_name = "worker 1", .from_ns = 1100, .function = "f*", .label = "label [01]", .zone = "*"},
    };
    for (const Profile::Filter& filter : filters) {
      CheckFilter(profile, filter);
      kept += profile.Filtered(filter).samples.size();
      all += profile.samples.size();
    }
  }
  CHECK(kept > all / 10);
  CHECK(kept < all / 2);
}

TEST_CASE("filtered by each thread and merged again, a profile is whole", "[profile][filter]") {
  for (uint32_t seed = 0; seed < kFilterSeeds; ++seed) {
    Profile profile = RandomProfile(seed).Make();
    for (ProfileThread& thread : profile.threads) thread.on_ns = 10, thread.off_ns = 20;
    profile.counters.push_back({.name = 1, .points = {{1, 1}, {2, 2}}});
    profile.counters.push_back({.name = 1, .thread = 1, .points = {{1, 1}, {2, 2}}});
    Profile merged;
    for (uint32_t i = static_cast<uint32_t>(profile.threads.size()); i-- > 0;) {
      merged.Merge(profile.Filtered({.threads = {i}}));
    }
    CHECK(merged.Check() == absl::OkStatus());
    CHECK(SumsByStack(merged) == SumsByStack(profile));
    CHECK(merged.zones.size() == profile.zones.size());
    REQUIRE(merged.counters.size() == 2);
    CHECK(merged.counters[0].points.size() == 2);
    CHECK(merged.counters[1].points.size() == 2);
    REQUIRE(merged.threads.size() == profile.threads.size());
    for (const ProfileThread& thread : merged.threads) {
      CHECK(thread.on_ns == 10);
      CHECK(thread.off_ns == 20);
    }
  }
}

TEST_CASE("the filter of the documents", "[profile][filter]") {
  Profile profile = SampleProfile();
  profile.zones[1].thread = 1;
  const perfkit::Profile workers = profile.Filtered({.thread_name = "worker*", .zone = "physics"});
  CHECK(workers.Total(0) == Profile::Sum{10'000'000, 10});
}

TEST_CASE("a filter by time says what it can't tell", "[profile][filter]") {
  const Profile profile = RandomProfile(3).Make();
  CHECK(profile.Filtered({.threads = {0}}).accounting.notes.empty());
  const Profile filtered = profile.Filtered({.from_ns = 1500, .to_ns = 1600});
  REQUIRE(filtered.accounting.notes.size() == 1);
  CHECK_THAT(filtered.accounting.notes[0], Catch::Contains("merged without their times"));
  CHECK(filtered.from_ns == 1500);
  CHECK(filtered.to_ns == 1600);
}

TEST_CASE("a filter by time counts the merged samples that nothing else leaves out", "[profile][filter]") {
  Profile profile = SampleProfile();
  profile.accounting.notes.clear();
  uint64_t merged = 0;
  for (ProfileSample& sample : profile.samples) {
    sample.time_ns = 0;
    merged += sample.thread == 1 ? sample.samples : 0;
  }
  REQUIRE(merged != 0);
  const Profile filtered = profile.Filtered({.threads = {1}, .from_ns = 1});
  CHECK(filtered.samples.empty());
  REQUIRE(filtered.accounting.notes.size() == 1);
  CHECK_THAT(filtered.accounting.notes[0], Catch::StartsWith(std::to_string(merged) + " samples were merged"));
  CHECK(profile.Filtered({.from_ns = 1, .label = "of no sample"}).accounting.notes.empty());
}

TEST_CASE("parts of tasks are filtered by thread, time, task and zone", "[profile][filter]") {
  Profile profile = SampleProfile();
  const uint64_t from_ns = profile.zones[1].from_ns, to_ns = profile.zones[1].to_ns;
  profile.strings.push_back("path");
  const auto path = static_cast<uint32_t>(profile.strings.size() - 1);
  profile.task_parts = {{.from_ns = from_ns, .to_ns = to_ns, .number = 1, .thread = 0, .name = path, .task = path},
                        {.from_ns = to_ns + 10, .to_ns = to_ns + 20, .number = 2, .thread = 1}};
  profile.zones[1].thread = 0;
  const auto numbers = [&](const Profile::Filter& filter) {
    std::vector<uint64_t> kept;
    for (const ProfileTaskPart& part : profile.Filtered(filter).task_parts) kept.push_back(part.number);
    return kept;
  };
  using Numbers = std::vector<uint64_t>;
  CHECK(numbers({}) == Numbers{1, 2});
  CHECK(numbers({.threads = {1}}) == Numbers{2});
  CHECK(numbers({.to_ns = to_ns + 10}) == Numbers{1});
  CHECK(numbers({.from_ns = to_ns + 5}) == Numbers{2});
  CHECK(numbers({.task = "p*"}) == Numbers{1});
  CHECK(numbers({.zone = "physics"}) == Numbers{1});
}

TEST_CASE("a filter by the time of a frame keeps none of the frames beside it", "[profile][filter]") {
  Profile profile = SampleProfile();
  for (const uint64_t from_ns : {1000u, 2000u, 3000u}) {
    profile.zones.push_back({.from_ns = from_ns, .to_ns = from_ns + 1000, .is_frame = true});
    profile.task_parts.push_back({.from_ns = from_ns, .to_ns = from_ns + 1000});
  }
  profile.zones.push_back({.from_ns = 2000, .to_ns = 2000});
  const Profile filtered = profile.Filtered({.from_ns = 2000, .to_ns = 3000});
  CHECK(filtered.zones.size() == 2);  // The frame, and the zone without a length.
  CHECK(filtered.task_parts.size() == 1);
}

TEST_CASE("a frame of which a filter leaves out a part is not whole", "[profile][filter]") {
  ProfileBuilder builder;
  const uint16_t clock = builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  const uint32_t main = builder.AddThread(1, 1, "main"), worker = builder.AddThread(1, 2, "worker");
  for (const uint64_t from_ns : {1000u, 2000u, 3000u}) {
    for (const uint32_t thread : {main, worker}) {
      builder.AddZone({.from_ns = from_ns, .to_ns = from_ns + 1000, .thread = thread, .is_frame = true});
    }
  }
  // The worker does something else in the second frame.
  for (uint64_t time_ns = 1000; time_ns < 4000; time_ns += 100) {
    const bool other = time_ns / 1000 == 2;
    builder.AddSample(
        {.time_ns = time_ns, .weight = 1, .thread = main, .label = builder.String("draw"), .event = clock});
    builder.AddSample({.time_ns = time_ns,
                       .weight = 1,
                       .thread = worker,
                       .label = builder.String(other ? "load" : "draw"),
                       .event = clock});
  }
  Profile profile = builder.Take();
  profile.from_ns = 1000, profile.to_ns = 4000;
  // By thread and frame, "main 1, 2, 3; worker 1, 2, 3": '+' whole, '-' not, ' ' left out.
  const auto frames = [&](const Profile::Filter& filter) {
    std::string found(6, ' ');
    for (const ProfileZone& zone : profile.Filtered(filter).zones) {
      found[3 * zone.thread + zone.from_ns / 1000 - 1] = zone.is_whole ? '+' : '-';
    }
    return found;
  };
  CHECK(frames({}) == "++++++");
  CHECK(frames({.from_ns = 2000}) == " ++ ++");
  CHECK(frames({.from_ns = 1999}) == "-++-++");
  CHECK(frames({.to_ns = 3000}) == "++ ++ ");
  CHECK(frames({.from_ns = 1000, .to_ns = 3001}) == "++-++-");
  CHECK(frames({.threads = {main}}) == "+++   ");
  CHECK(frames({.label = "draw"}) == "++++-+");
  CHECK(frames({.label = "load"}) == "----+-");
  CHECK(frames({.function = "nothing"}) == "------");
  profile.samples.clear();  // A frame that slept has none to miss.
  CHECK(frames({.from_ns = 1999}) == "-++-++");
  CHECK(frames({.to_ns = 3001}) == "++-++-");
}

TEST_CASE("zones and counters are filtered by thread, time and zone", "[profile][filter]") {
  Profile profile = SampleProfile();
  profile.counters[0].thread = 0;
  const auto zones = [&](const Profile::Filter& filter) { return profile.Filtered(filter).zones.size(); };
  const auto points = [&](const Profile::Filter& filter) {
    const Profile filtered = profile.Filtered(filter);
    return filtered.counters.empty() ? 0 : filtered.counters[0].points.size();
  };
  CHECK(zones({}) == 2);
  CHECK(zones({.threads = {1}}) == 0);
  CHECK(zones({.from_ns = 1'060'000'000}) == 1);
  CHECK(zones({.to_ns = 1'005'000'000}) == 1);
  CHECK(zones({.zone = "physics"}) == 1);
  CHECK(zones({.zone = "frame"}) == 2);
  CHECK(points({}) == 3);
  CHECK(points({.threads = {1}}) == 0);
  CHECK(points({.from_ns = 1'050'000'000}) == 2);
  CHECK(points({.zone = "physics"}) == 0);
  CHECK(points({.zone = "frame"}) == 2);
  profile.counters[0].thread = ProfileCounter::kWholeProcess;
  CHECK(points({.threads = {1}}) == 3);
  CHECK(points({.zone = "frame"}) == 2);
}

}  // namespace
}  // namespace perfkit::profile
