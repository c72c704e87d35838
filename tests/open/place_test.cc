// Places of targets on the live machine.
#include "src/open/place.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/work.h"

namespace perfkit::open {
namespace {

TEST_CASE("a thread is one place, whatever its number", "[place]") {
  CHECK(*PlacesOf(Target::ThisThread()) == std::vector<Place>{{0, -1}});
  CHECK(*PlacesOf(Target::Thread(123)) == std::vector<Place>{{123, -1}});
}

TEST_CASE("all threads are as many places as threads", "[place]") {
  pid_t first = 0;
  std::thread([&] { first = gettid(); }).join();  // a sanitizer starts a thread of its own with our first
  testing::AwaitEnd(first);
  const size_t before = PlacesOf(Target::AllThreads())->size();
  std::atomic<bool> stop{false};
  std::thread other([&] { stop.wait(false); });
  CHECK(PlacesOf(Target::AllThreads())->size() == before + 1);
  CHECK(PlacesOf(Target::Process(getpid()))->size() == before + 1);
  stop = true;
  stop.notify_all();
  other.join();
}

TEST_CASE("the system is every CPU that is online", "[place]") {
  const auto places = PlacesOf(Target::System());
  REQUIRE(places.ok());
  CHECK(static_cast<long>(places->size()) == sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(std::all_of(places->begin(), places->end(), [](const Place& place) { return place.pid == -1; }));
  CHECK(*PlacesOf(Target::Cpu(0)) == std::vector<Place>{{-1, 0}});
  CHECK(*PlacesOf(Target::System(), {0}) == std::vector<Place>{{-1, 0}});
}

TEST_CASE("what is not there is not found, by name", "[place]") {
  CHECK(absl::IsNotFound(PlacesOf(Target::Process(1 << 22)).status()));
  const auto cpu = PlacesOf(Target::Cpu(60'000));
  CHECK(absl::IsNotFound(cpu.status()));
  CHECK(std::string(cpu.status().message()).find("CPU 60000") != std::string::npos);
  CHECK(absl::IsNotFound(PlacesOf(Target::System(), {60'000}).status()));
}

}  // namespace
}  // namespace perfkit::open
