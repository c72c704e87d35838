// Calls at thousands of places, as addr2line has them, for each compiler and each packing.
#include <catch2/catch.hpp>
#include <initializer_list>

#include "tests/support/work.h"
#include "tests/symbolize/dwarf/support.h"

namespace perfkit {
namespace {

using testing::Agreement;
using testing::HoldToOthers;
using testing::RunCommand;
using testing::SelfPath;
using testing::TempFolder;

// Templates inside each other, lambdas, cold paths, static and external functions.
constexpr char kLinesProgram[] = R"(
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shop {
struct Item { std::string name; int price; };
template <class T> struct Box { T value; T Twice() const { return Add(value, value); } static T Add(T a, T b) { return a + b; } };
inline int Price(const Item& item) { return Box<int>{item.price}.Twice(); }
static int Total(const std::vector<Item>& items) {
  int sum = 0;
  for (const Item& item : items) sum += Price(item);
  return sum;
}
int Cheapest(std::vector<Item> items) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return Price(a) < Price(b); });
  if (items.empty()) throw std::string("nothing to buy");
  return items.front().price;
}
struct Shelf {
  std::map<std::string, std::vector<Item>> items;
  void Put(Item item) { items[item.name].push_back(item); }
  int All() const { int sum = 0; for (const auto& [name, list] : items) sum += Total(list); return sum; }
};
}
int main(int argc, char** argv) {
  shop::Shelf shelf;
  for (int i = 0; i < argc * 10; ++i) shelf.Put({argv[0] + std::to_string(i % 7), i});
  try { return shelf.All() + shop::Cheapest(shelf.items.begin()->second); } catch (const std::string&) { return 1; }
}
)";

// Whether it could be made: not every machine has every compiler.
bool Make(const std::string& compiler, const TempFolder& folder, const std::string& name) {
  folder.Write("/program.cc", kLinesProgram);
  return RunCommand("cd " + folder.path() + " && " + compiler + " -std=c++17 -O2 program.cc -o " + name).exit_code == 0;
}

// addr2line of binutils 2.40 takes the innermost function's name from the symbol table where it has no linkage name, so
// that an inlined one gets the name of what it is inlined into, and knows no files of GCC's line tables by number 0.
// The others decide who is right then.
void CheckAgreement(const Agreement& agreement) {
  INFO(agreement.equal << " of " << agreement.asked << " as addr2line, " << agreement.others << " as others have it");
  INFO(agreement.differences);
  CHECK(agreement.asked > 500);
  CHECK(agreement.right() >= 0.999);
  CHECK(agreement.inlined > agreement.asked / 8);  // clang with AddressSanitizer inlines less: 0.23 in this program
}

// Compiling takes most of the time: what always runs has the forms that are unlike each other.
using Compilers = std::initializer_list<const char*>;
constexpr const char* kDwarf4Types = "g++ -gdwarf-4 -fdebug-types-section -ffunction-sections -Wl,--gc-sections";

void CheckAsAddr2line(Compilers compilers) {
  const TempFolder folder;
  int made = 0;
  for (const char* const compiler : compilers) {
    if (!Make(compiler, folder, "program")) continue;
    INFO(compiler);
    const Agreement agreement = HoldToOthers(folder.path() + "/program", 1000);
    CheckAgreement(agreement);
    CHECK(agreement.equal >= agreement.asked * 9 / 10);
    ++made;
  }
  if (made == 0) SKIP_TEST("there is no compiler here");
}

TEST_CASE("calls are as addr2line has them, in either version of DWARF", "[lines]") {
  CheckAsAddr2line({"g++ -gdwarf-5 -gz", kDwarf4Types});
}

TEST_CASE("calls are as addr2line has them, by each compiler and in each form", "[.heavy]") {
  CheckAsAddr2line({"g++ -gdwarf-5", "g++ -gdwarf-4", "g++ -gdwarf-5 -gz", "g++ -gdwarf-4 -gz=zlib-gnu", kDwarf4Types,
                    "g++ -gdwarf-5 -flto", "clang++ -gdwarf-4 -fuse-ld=lld"});
}

// Of binutils 2.40, which reads neither lists of ranges by index nor, in 64-bit DWARF, line tables with 32-bit offsets.
void CheckAsOthers(Compilers compilers) {
  if (testing::LlvmSymbolizer().empty()) SKIP_TEST("there is no llvm-symbolizer here");
  const TempFolder folder;
  int made = 0;
  for (const char* const compiler : compilers) {
    if (!Make(compiler, folder, "program")) continue;
    INFO(compiler);
    CheckAgreement(HoldToOthers(folder.path() + "/program", 1000));
    ++made;
  }
  if (made == 0) SKIP_TEST("there is no compiler here");
}

TEST_CASE("calls that addr2line cannot read are as others have them", "[lines]") {
  CheckAsOthers({"clang++ -gdwarf-5"});
}

TEST_CASE("calls in each form that addr2line cannot read are as others have them", "[.heavy]") {
  CheckAsOthers({"g++ -gdwarf-5 -gdwarf64 -no-pie", "clang++ -gdwarf-5", "clang++ -gdwarf-5 -gz"});
}

TEST_CASE("calls are found in a separate debug file, whether zlib or zstd compressed it", "[lines]") {
  const TempFolder folder;
  if (!Make("g++ -g", folder, "full")) SKIP_TEST("there is no compiler here");
  const std::string full = folder.path() + "/full", path = folder.path() + "/program";
  const auto separate = [&](const std::string& method) {
    return RunCommand("cd " + folder.path() + " && rm -f program.debug" +
                      " && objcopy --only-keep-debug --compress-debug-sections=" + method + " full program.debug" +
                      " && strip -o program full && objcopy --add-gnu-debuglink=program.debug program")
               .exit_code == 0;
  };
  REQUIRE(separate("zlib"));
  CheckAgreement(HoldToOthers(path, 1000, full));
  if (!separate("zstd")) SKIP_TEST("binutils here cannot compress by zstd");
  CheckAgreement(HoldToOthers(path, 1000, full));
}

TEST_CASE("calls in this very program are as addr2line has them", "[lines]") {
  const Agreement agreement = HoldToOthers(SelfPath(), 3000);
  if (agreement.lines == 0) SKIP_TEST("this program was compiled without -g");
  CheckAgreement(agreement);
}

TEST_CASE("calls at 100,000 places of this program are as addr2line has them", "[.heavy]") {
  CheckAgreement(HoldToOthers(SelfPath(), 100'000));
}

}  // namespace
}  // namespace perfkit
