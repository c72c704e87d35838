// Randomly damaged debug information: a result comes in bounded time, and all texts are from inside the sections.
#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "src/symbolize/line_source.h"
#include "tests/support/work.h"
#include "tests/symbolize/dwarf/support.h"

namespace perfkit {
namespace {

using symbolize::DebugSection;
using symbolize::SourceCall;
using testing::RunCommand;
using testing::TempFolder;

// Small, with what there is of forms: ranges in pieces, inlined calls in each other, specifications, declarations.
constexpr char kHostileProgram[] = R"(
struct Pair { int a, b; int Sum() const; template <class T> T As() const { return T(a) * T(b); } };
static inline int Half(int x) { if (x > 1000) __builtin_abort(); return x / 2; }
static inline int Quarter(int x) { return Half(Half(x)) + (x > 77 ? Half(x + 3) : 1); }
int Pair::Sum() const { return a + Quarter(b); }
__attribute__((noinline)) int Loop(Pair* pairs, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += pairs[i].Sum() + Quarter(pairs[i].As<short>()) + pairs[i].As<long>();
  return sum;
}
int main(int argc, char** argv) { Pair pairs[2] = {{argc, 1}, {2, argc}}; return Loop(pairs, 2) + (argv == 0); }
)";

struct Section {
  std::string name;
  std::unique_ptr<char[]> bytes;  // of exactly this size, so that a sanitizer sees the byte after it
  size_t size = 0;

  Section(std::string_view called, base::Bytes from) : name(called), bytes(new char[from.size() + 1]) {
    Take(std::string_view(reinterpret_cast<const char*>(from.data()), from.size()));
  }
  void Take(std::string_view from) {
    bytes.reset(new char[from.size()]);
    size = from.size();
    from.copy(bytes.get(), size);
  }
};

std::vector<Section> SectionsOf(const std::string& path) {
  std::vector<Section> sections;
  const absl::StatusOr<sys::Mapping> file = sys::MapFile(path);
  if (!file.ok()) return sections;
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  for (uint32_t i = 0; image.ok() && i < image->section_count(); ++i) {
    const elf::Section section = *image->section(i);
    if (section.name.starts_with(".debug_")) sections.emplace_back(section.name, *image->Contents(section));
  }
  return sections;
}

// How many calls are known at these addresses. Touches every text.
size_t AskAll(const std::vector<Section>& sections, const std::vector<uint64_t>& addresses) {
  std::vector<DebugSection> views;
  for (const Section& section : sections) {
    views.push_back({section.name, std::as_bytes(std::span(section.bytes.get(), section.size)), false});
  }
  const std::unique_ptr<symbolize::LineSource> source = DwarfLines(1 << 20);
  size_t known = 0;
  if (!source->Open(1, views, views).ok()) return known;
  std::vector<SourceCall> calls;
  for (const uint64_t address : addresses) {
    calls.clear();
    source->Find(1, address, calls);
    CHECK(calls.size() <= 1001);
    for (const SourceCall& call : calls) {
      known += !call.function.empty() && std::string(call.function).size() + std::string(call.file).size() > 0;
    }
  }
  return known;
}

// A few bytes are others, or bytes that numbers end at go on, or the end is missing.
void Damage(Section& section, std::mt19937_64& random) {
  if (section.size == 0) return;
  if (random() % 16 == 0) {
    const std::string whole(section.bytes.get(), section.size);
    section.Take(std::string_view(whole).substr(0, random() % whole.size()));
    return;
  }
  constexpr unsigned char kNasty[] = {0x00, 0xff, 0x80, 0x7f, 0x01, 0xfe};
  for (uint64_t i = 0, count = 1 + random() % 8; i < count; ++i) {
    const size_t at = random() % section.size;
    const bool nasty = random() % 2 == 0;
    section.bytes[at] = static_cast<char>(nasty ? kNasty[random() % sizeof(kNasty)] : random());
  }
}

void DamageAll(const std::string& compiler, int times) {
  const TempFolder folder;
  folder.Write("/program.cc", kHostileProgram);
  const std::string path = folder.path() + "/program";
  if (RunCommand("cd " + folder.path() + " && " + compiler + " -O2 program.cc -o program").exit_code != 0) return;
  const std::vector<Section> whole = SectionsOf(path);
  const std::vector<uint64_t> addresses = testing::AddressesIn(path, 40);
  REQUIRE(AskAll(whole, addresses) > 30);
  std::mt19937_64 random(7);
  size_t known = 0;
  for (int i = 0; i < times; ++i) {
    std::vector<Section> damaged;
    for (const Section& section : whole) {
      damaged.emplace_back(section.name, std::as_bytes(std::span(section.bytes.get(), section.size)));
    }
    for (uint64_t count = 1 + random() % 3; count > 0; --count) Damage(damaged[random() % damaged.size()], random);
    const uint64_t begun = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    known += AskAll(damaged, addresses);
    CHECK(testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - begun < 10'000'000'000);  // milliseconds, in each case
  }
  CHECK(known > 0);  // some damage is in unused bytes
}

TEST_CASE("damaged debug information costs answers, never more", "[hostile][law]") {
  for (const char* compiler : {"g++ -gdwarf-5", "g++ -gdwarf-4", "clang++ -gdwarf-5", "clang++ -gdwarf-4"}) {
    DamageAll(compiler, 1500);
  }
}

TEST_CASE("50,000 damaged files cost answers, never more", "[.heavy][law]") {
  for (const char* compiler : {"g++ -gdwarf-5", "g++ -gdwarf-4", "clang++ -gdwarf-5", "clang++ -gdwarf-4"}) {
    DamageAll(compiler, 12'500);
  }
}

}  // namespace
}  // namespace perfkit
