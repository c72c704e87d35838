// Tests the rules: each finds planted violations, and nothing in correct text.
#include "tests/tidy/rules.h"

#include <catch2/catch.hpp>

#include "tests/tidy/classes.h"
#include "tests/tidy/floors.h"
#include "tests/tidy/vocabulary.h"

namespace perfkit::tidy {
namespace {

Tree One(std::string path, std::string text) { return {{std::move(path), std::move(text)}}; }

std::vector<size_t> LinesOf(const Findings& findings) {
  std::vector<size_t> lines;
  for (const Finding& finding : findings) lines.push_back(finding.line);
  return lines;
}

using Where = std::vector<size_t>;

TEST_CASE("comments and literals are blank, and everything stays where it was", "[tidy]") {
  CHECK(CodeOnly("a; // b\nc") == "a;     \nc");
  CHECK(CodeOnly("a /* b\n */ c") == "a     \n    c");
  CHECK(CodeOnly(R"(f("x\"y", 'z', 1'000);)") == R"(f(      ,    , 1'000);)");
  CHECK(CodeOnly("R\"q(a)\" b)q\" c") == "             c");
  CHECK(CodeOnly("\"never ends") == "           ");
  CHECK(CommentsOnly("a; // b\nc \"//d\" /* e */") == "   // b\n        /* e */");
}

TEST_CASE("a room includes lower floors only", "[tidy]") {
  CHECK(CheckFloors(One("src/count/a.cc", "#include \"src/sys/fd.h\"\n#include \"src/count/b.h\"\n")).empty());
  CHECK(LinesOf(CheckFloors(One("src/sys/a.cc", "\n#include \"src/count/b.h\"\n"))) == Where{2});
  CHECK(LinesOf(CheckFloors(One("src/sys/a.h", "#include \"src/elf/image.h\"\n"))) == Where{1});
  CHECK(LinesOf(CheckFloors(One("src/sys/a.h", "#  include \"src/attic/x.h\" // why\n"))) == Where{1});
  CHECK(LinesOf(CheckFloors(One("src/attic/a.h", "\n"))) == Where{1});
}

TEST_CASE("rooms inside a room have floors of their own", "[tidy]") {
  const auto lines = [](const char* folder, const char* includes) {
    return LinesOf(CheckFloors(One("src/" + std::string(folder) + "/a.cc", includes)));
  };
  constexpr const char* kSampled = "unwind/dwarf/sampled";
  CHECK(lines(kSampled, "#include \"src/unwind/dwarf/cfi/b.h\"\n#include \"src/unwind/b.h\"\n").empty());
  CHECK(lines(kSampled, "#include \"src/unwind/dwarf/sampled/b.h\"\n").empty());
  CHECK(lines(kSampled, "\n#include \"src/unwind/dwarf/live/b.h\"\n") == Where{2});
  CHECK(lines("unwind/dwarf/live", "#include \"src/unwind/dwarf/sampled/b.h\"\n") == Where{1});
  CHECK(lines("unwind/dwarf/cfi", "#include \"src/unwind/dwarf/live/b.h\"\n") == Where{1});
  CHECK(lines("unwind", "#include \"src/unwind/dwarf/cfi/b.h\"\n") == Where{1});
  CHECK(lines("session/dwarf", "#include \"src/unwind/dwarf/live/b.h\"\n#include \"src/session/b.h\"\n").empty());
  // Between a room and those inside it is none.
  CHECK(lines("unwind/dwarf", "") == Where{1});
  CHECK(lines(kSampled, "#include \"src/unwind/dwarf/b.h\"\n") == Where{1});
}

TEST_CASE("public headers are on the floors of the rooms that implement them", "[tidy]") {
  const auto lines = [](std::string path, const char* includes) {
    return LinesOf(CheckFloors(One(std::move(path), includes)));
  };
  CHECK(lines("src/count/a.cc", "#include \"perfkit/count.h\"\n#include \"perfkit/event.h\"\n").empty());
  CHECK(lines("src/count/a.cc", "\n#include \"perfkit/sampler.h\"\n") == Where{2});
  CHECK(lines("src/unwind/dwarf/live/a.cc", "#include \"perfkit/unwinder.h\"\n") == Where{1});
  CHECK(lines("include/perfkit/count.h", "#include \"perfkit/event.h\"\n#include \"perfkit/session.h\"\n") == Where{2});
  CHECK(lines("include/perfkit/detail/user_page.h", "#include \"perfkit/event.h\"\n") == Where{1});
  CHECK(lines("include/perfkit/attic.h", "") == Where{1});
  CHECK(lines("src/count/a.cc", "#include \"perfkit/attic.h\"\n") == Where{1});
}

TEST_CASE("the core includes nothing of a component", "[tidy]") {
  const auto lines = [](std::string path, const char* includes) {
    return LinesOf(
        CheckComponents({{"CMakeLists.txt",
                          "perfkit_component(dwarf FOUND ${x} SOURCES src/unwind/dwarf src/session/dwarf\n"
                          "  LIBRARIES Libdw::dw HEADERS debuginfod.h unwinder.h)\n"
                          "perfkit_component(pfm FOUND ON SOURCES src/event/pfm HEADERS pfm.h)\n"},
                         {"cmake/CoreSources.cmake", "set(PERFKIT_COMPONENT_FOLDERS unwind/dwarf preload)\n"},
                         {std::move(path), includes}}));
  };
  constexpr const char* kUnwinder = "#include \"src/unwind/a.h\"\n#include \"perfkit/unwinder.h\"\n";
  CHECK(lines("src/session/a.cc", kUnwinder) == Where{2});
  CHECK(lines("src/unwind/a.h", kUnwinder) == Where{2});
  CHECK(lines("include/perfkit/a.h", kUnwinder) == Where{2});
  CHECK(lines("src/session/dwarf/a.cc", kUnwinder).empty());
  CHECK(lines("src/preload/a.cc", kUnwinder) == Where{2});
  CHECK(lines("include/perfkit/debuginfod.h", kUnwinder).empty());
  CHECK(lines("src/session/a.cc", "\n#include \"src/unwind/dwarf/cfi/a.h\"\n#include \"src/preload/a.h\"\n") ==
        Where{2, 3});
  CHECK(lines("include/perfkit/pfm.h", "#include \"perfkit/debuginfod.h\"\n") == Where{1});
}

TEST_CASE("the floors are drawn from their table, and design.md has that drawing", "[tidy]") {
  CHECK(FindRoom("count") != nullptr);
  CHECK(FindRoom("attic") == nullptr);
  CHECK(DrawFloors().find(" 0   base                  numbers and text\n") != std::string::npos);
  const std::string page = "Text\n" + std::string(kDrawingMark) + "\n```\nan old drawing\n```\nmore\n";
  CHECK(LinesOf(CheckDrawing(One("docs/design.md", page))) == Where{2});
  CHECK(CheckDrawing(One("docs/design.md", WithDrawing(page))).empty());
  CHECK(WithDrawing(page).ends_with("```\nmore\n"));
  CHECK(LinesOf(CheckDrawing(One("docs/design.md", "no drawing\n"))) == Where{1});
}

TEST_CASE("design.md names the tests of each room", "[tidy]") {
  Tree tree = {{"docs/design.md", ""}, {"tests/count/a_test.cc", ""}, {"tests/unwind/dwarf/cfi/b_test.cc", ""}};
  std::string& page = tree[0].text;
  for (const Room& room : Rooms()) page += "| `" + std::string(room.name) + "/` | numbers | `count_test` |\n";
  CHECK(CheckRoomTests(tree).empty());
  const std::string whole = page;
  page = whole + "| `count/frame/` | zones | `count_test`, `unwind_dwarf_test` |\n";
  CHECK(CheckRoomTests(tree).empty());
  for (const char* row : {"| `count/frame/` | `count_test` | none |\n", "| `count/frame/` | zones | `no_test` |\n",
                          "| `attic/` | boxes | `count_test` |\n"}) {
    page = whole + row;
    CHECK(LinesOf(CheckRoomTests(tree)) == Where{Rooms().size() + 1});
  }
  page = whole.substr(whole.find('\n') + 1);
  CHECK(LinesOf(CheckRoomTests(tree)) == Where{1});
}

TEST_CASE("test cases that have to do with time say of what kind they are", "[tidy]") {
  const auto lines = [](const std::string& text) {
    return LinesOf(CheckKinds({{"tests/a/b_test.cc", "#include \"tests/a/h.h\"\n" + text},
                               {"tests/a/h.h",
                                "struct Worker { int x = 1; std::thread t{[] { Sleep(1); }}; };\n"
                                "inline void Twice() { HoldsOnceInThree([] { return true; }); }\n"}}));
  };
  CHECK(lines("TEST_CASE(\"pure\") { CHECK(1 == 1); }\n").empty());
  CHECK(lines("TEST_CASE(\"a clock\") { CHECK(NowNs() > 0); }\n") == Where{2});
  CHECK(lines("TEST_CASE(\"a clock\", \"[x][law]\") { CHECK(NowNs() > 0); }\n").empty());
  CHECK(lines("int Busy() {\n  return Spin(1);\n}\nTEST_CASE(\"by a helper\",\n  \"[x]\") { Busy(); }\n") == Where{5});
  CHECK(lines("TEST_CASE(\"by a header\") {\n  Worker worker;\n}\n") == Where{2});
  CHECK(lines("TEST_CASE(\"a fake's clock\") { fake.clock_gettime = Fake; }\n").empty());
  CHECK(lines("TEST_CASE(\"in a comment\") { /* Sleep(1) */ Log(\"Sleep(1)\"); }\n").empty());
  CHECK(lines("TEST_CASE(\"both\", \"[law][measurement]\") { Twice(); }\n") == Where{2, 2});
  CHECK(lines("TEST_CASE(\"once\", \"[measurement]\") { Sleep(1); }\n") == Where{2});
  CHECK(lines("TEST_CASE(\"a share\", \"[measurement]\") { Twice(); }\n").empty());
  CHECK(lines("TEST_CASE(\"a share\", \"[law]\") { Twice(); }\n") == Where{2});
  CHECK(lines("TEST_CASE(\"a share\") { Twice(); }\n") == Where{2});
}

TEST_CASE("files that comments and documents name exist", "[tidy]") {
  const auto lines = [](std::string path, const char* text) {
    return LinesOf(CheckFileNames({{"src/count/a.h", ""}, {std::move(path), text}}));
  };
  CHECK(lines("src/b.cc", "// a.h, count/a.h (src/count/a.h); <x.h> linux/x.h kernel/x.c \"x.cc\"\nf(\"c.h\");\n")
            .empty());
  CHECK(lines("src/b.cc", "int x;  // as c.h\n// sys/a.h, src/a.h\n") == Where{1, 2});
  CHECK(lines("cmake/b.cmake", "include(c.cmake)\n# as c.cmake\n") == Where{2});
  CHECK(lines("docs/b.md", "b.md\nc.md\n") == Where{2});
}

TEST_CASE("lines end without blanks, and files with a newline", "[tidy]") {
  CHECK(CheckWhiteSpace(One("src/a.h", "int x;\n\nint y;\n")).empty());
  CHECK(LinesOf(CheckWhiteSpace(One("src/a.h", "int x; \nint y;\t\nint z;\r\n"))) == Where{1, 2, 3});
  CHECK(LinesOf(CheckWhiteSpace(One("src/a.h", "int x;\nint y;"))) == Where{2});
}

TEST_CASE("users see nothing of src", "[tidy]") {
  CHECK(CheckPublic(One("include/perfkit/a.h", "#include \"perfkit/b.h\"\n")).empty());
  CHECK(LinesOf(CheckPublic(One("include/perfkit/a.h", "#include \"src/base/b.h\"\n"))) == Where{1});
  const std::string needs_library = "#include \"perfkit/detail/library_only.h\"\n";
  CHECK(CheckPublic(One("include/perfkit/a.h", needs_library + "#include <string>\n")).empty());
  CHECK(LinesOf(CheckPublic(One("include/perfkit/a.h", "#include <string>\n" + needs_library))) == Where{2});
  CHECK(LinesOf(CheckPublic(One("examples/a.cc", "#include \"src/base/b.h\"\n"))) == Where{1});
}

TEST_CASE("a hot header reaches no Abseil, by no way", "[tidy]") {
  Tree tree = {{"include/perfkit/count.h", "#include \"perfkit/b.h\"\n"},
               {"include/perfkit/b.h", "#include \"perfkit/count.h\"\n#include <span>\n"}};
  CHECK(CheckHotHeaders(tree).empty());
  tree[1].text += "#include \"absl/status/status.h\"\n";
  REQUIRE(CheckHotHeaders(tree).size() == 1);
  CHECK(CheckHotHeaders(tree)[0].message.find("b.h -> absl/status/status.h") != std::string::npos);
}

TEST_CASE("only src/sys calls Linux", "[tidy]") {
  const auto lines = [](const char* text) { return LinesOf(CheckSystemCalls(One("src/count/a.cc", text))); };
  CHECK(lines("kernel().read(fd, b, 1);\nx->close();\nring::poll(1);\nreread(1);\n// mmap()\nf(\"::open(\");").empty());
  CHECK(lines("bool open(int fd);\nvoid Source::read(Snapshot& now) {}\n").empty());
  CHECK(lines("\n  ::open(path, 0);") == Where{2});
  CHECK(lines("x = mmap(nullptr, 1);\nreturn read(fd);\nif (::ioctl (fd)) {}") == Where{1, 2, 3});
  CHECK(lines("int x;\n#include <sys/mman.h>\n#include <time.h>\n") == Where{2});
  CHECK(CheckSystemCalls(One("src/sys/a.cc", "::open(path, 0);\n#include <unistd.h>\n")).empty());
}

TEST_CASE("each name of std has its header, directly or by a header of ours", "[tidy]") {
  const SourceFile header{"src/base/b.h", "#include <vector>\n"};
  const auto lines = [&](const char* text) { return LinesOf(CheckStandardHeaders({header, {"src/base/a.cc", text}})); };
  CHECK(lines("#include <string>\nstd::string a;  // not std::vector\n").empty());
  CHECK(lines("#include \"src/base/b.h\"\nstd::vector<int> a;\n").empty());
  CHECK(lines("#include <string>\n\nstd::vector<std::string> a;\nstd::vector<int> b;\n") == Where{3});
  CHECK(lines("#include \"src/base/b.h\"\nstd::optional<int> a;\n") == Where{2});
}

TEST_CASE("the core neither throws nor streams", "[tidy]") {
  const auto lines = [](const char* text) { return LinesOf(CheckLanguage(One("src/count/a.cc", text))); };
  CHECK(lines("// we throw nothing\nint entry_count;\n").empty());
  CHECK(lines("throw 1;\n") == Where{1});
  CHECK(lines("\nauto* p = dynamic_cast<A*>(q);\n") == Where{2});
  CHECK(lines("#include <iostream>\n") == Where{1});
}

TEST_CASE("functions are found with their lengths", "[tidy]") {
  const SourceFile file{"src/a.cc",
                        "namespace a {\n"                   // 1
                        "int F() { return 1; }\n"           // 2
                        "struct S {\n"                      // 3
                        "  S(int x)\n"                      // 4
                        "      : x_{x}, y_(2) {\n"          // 5
                        "    if (x) { x_ = 0; }\n"          // 6
                        "  }\n"                             // 7
                        "  int x_{0};\n"                    // 8
                        "};\n"                              // 9
                        "const S kTable[] = {{1}, {2}};\n"  // 10
                        "#define OPEN {\n"                  // 11
                        "auto G(S s) -> int {\n"            // 12
                        "  auto l = [] {\n"                 // 13
                        "    return '}';\n"                 // 14
                        "  };\n"                            // 15
                        "  return l();\n"                   // 16
                        "}\n"                               // 17
                        "}\n"};
  const std::vector<Function> functions = Functions(file);
  REQUIRE(functions.size() == 3);
  CHECK((functions[0].line == 2 && functions[0].lines == 1));
  CHECK((functions[1].line == 4 && functions[1].lines == 4));
  CHECK((functions[2].line == 12 && functions[2].lines == 6));
}

TEST_CASE("data members are counted, whatever their declarations look like", "[tidy]") {
  const SourceFile file{"src/a.h",
                        "namespace a::b {\n"
                        "class S final : public T<int, int> {\n"
                        " public:\n"
                        "  explicit S(int x) : x_{x}, fn_(nullptr) { int y, z; }\n"
                        "  S& operator=(S&&) = default;\n"
                        "  template <class A, class B> bool Has(A a, B b = {}) const;\n"
                        "  friend bool operator==(const S&, const S&) = default;\n"
                        "  [[gnu::noinline]] std::function<void(int, int)> F(int (*g)(int), int h = 1);\n"
                        "  static constexpr int kA = 1, kB = 2;\n"
                        "  using Map = std::map<int, int>;\n"
                        "  enum class Kind : int { kOne, kTwo };\n"
                        "  struct Inner { int a = 0; int b[2] = {1, 2}; };\n"
                        "  struct Later;\n"
                        " private:\n"
                        "  int x_, y_ = 3, z_{4};                 // 3\n"
                        "  std::function<void(int, int)> call_;   // 4\n"
                        "  void (*fn_)(int, int) = nullptr;       // 5\n"
                        "  std::map<int, std::pair<int, int>> m_; // 6\n"
                        "  alignas(64) std::array<int, 2> a_{{1, 2}};  // 7\n"
                        "  struct { int u, v; };                  // 9\n"
                        "  struct { int w; } named_[2], other_;   // 11\n"
                        "  unsigned bit_ : 1, bits_ : 2;          // 13\n"
                        "  int T::*member_ = nullptr;             // 14\n"
                        "  Listener listener_{[](void* self) { F(self); return; }, this};  // 15\n"
                        "  std::array<int, size_t{1} << kBits> a1_{}, a2_;  // 17\n"
                        "  int sized_[F(2)];                                // 18\n"
                        "};\n"
                        "struct Record { int a, b; bool F(int) const { return a; } static int G(); friend bool "
                        "operator==(const Record&, const Record&) = default; };\n"
                        "}\n"};
  const std::map<std::string, ClassShape> classes = Classes({file});
  REQUIRE(classes.contains("a::b::S"));
  CHECK(classes.at("a::b::S").data_members == 18);
  CHECK(classes.at("a::b::S").line == 2);
  CHECK_FALSE(classes.at("a::b::S").is_record);
  REQUIRE(classes.contains("a::b::S::Inner"));
  CHECK(classes.at("a::b::S::Inner").data_members == 2);
  CHECK(classes.at("a::b::S::Inner").is_record);
  REQUIRE(classes.contains("a::b::Record"));
  CHECK(classes.at("a::b::Record").data_members == 2);
  CHECK(classes.at("a::b::Record").is_record);
  CHECK(classes.size() == 3);
}

TEST_CASE("the files that define a class's functions are found", "[tidy]") {
  const Tree tree = {
      {"src/a.h", "namespace a { class S { void F(); struct In; }; class T { void F(); }; void G(); }\n"},
      {"src/a.cc",
       "namespace a {\nstd::vector<int> S::F(int x) const { T::F(); }\n"
       "int T::*S::G() { return b::F(); }\nvoid b::H() {}\n}\n"},
      {"src/b.cc", "a::S::S(S&&) = default;\nnamespace a {\nS::operator bool() const {}\nint x = T::F();\n}\n"},
      {"src/c.cc", "namespace a {\nstruct S::In { void F(); };\nvoid S::In::F() {}\n}\n"},
      {"tests/d.cc", "namespace a { void S::H() {} }\n"}};
  const std::map<std::string, ClassShape> classes = Classes(tree);
  CHECK(classes.at("a::S").cc_files == std::set<std::string>{"src/a.cc", "src/b.cc"});
  CHECK(classes.at("a::T").cc_files.empty());
  CHECK(classes.at("a::S::In").cc_files == std::set<std::string>{"src/c.cc"});
}

std::string Repeat(const std::string& line, int times) {
  std::string text;
  while (times-- > 0) text += line;
  return text;
}

TEST_CASE("files and functions have limits", "[tidy]") {
  CHECK(CheckLengths(One("src/a.h", Repeat("int x;\n", 400))).empty());
  CHECK(LinesOf(CheckLengths(One("src/a.h", Repeat("int x;\n", 401)))) == Where{1});
  CHECK(CheckLengths(One("src/a.cc", "void F() {\n" + Repeat("f();\n", 58) + "}\n")).empty());
  CHECK(LinesOf(CheckLengths(One("src/a.cc", "\nvoid F() {\n" + Repeat("f();\n", 59) + "}\n"))) == Where{2});
  CHECK(CheckLengths(One("CMakeLists.txt", Repeat("#\n", 200))).empty());
  CHECK(LinesOf(CheckLengths(One("CMakeLists.txt", Repeat("#\n", 201)))) == Where{1});
}

TEST_CASE("classes have limits, records have none", "[tidy]") {
  const auto lines = [](const std::string& text) { return LinesOf(CheckClasses(One("src/a.h", text))); };
  const std::string open = "namespace a {\nclass S {\n  S();\n";
  CHECK(lines(open + Repeat("  int x;\n", 20) + "};\n}\n").empty());
  CHECK(lines(open + Repeat("  int x;\n", 21) + "};\n}\n") == Where{2});
  CHECK(lines("struct S {\n  void F() {}\n" + Repeat("  int x, y, z;\n", 7) + "};\n") == Where{1});
  CHECK(lines("struct S {\n  bool F() const;\n" + Repeat("  int x;\n", 21) + "};\n").empty());
  CHECK(CheckClasses(One("tests/a.h", open + Repeat("  int x;\n", 21) + "};\n}\n")).empty());
  Tree tree = {
      {"src/a.h", "\nclass S { void F(); };\n"}, {"src/a.cc", "void S::F() {}\n"}, {"src/b.cc", "S::S() {}\n"}};
  CHECK(CheckClasses(tree).empty());
  tree.push_back({"src/c.cc", "S::~S() {}\n"});
  CHECK(LinesOf(CheckClasses(tree)) == Where{2});
}

TEST_CASE("a file begins by saying what it is", "[tidy]") {
  CHECK(CheckFirstLines(One("src/a.h", "// Counts what there is.\n")).empty());
  CHECK(CheckFirstLines(One(".ci/run", "#!/bin/bash\n# Runs it.\n")).empty());
  for (const char* text : {"#pragma once\n", "\n// Late.\n", "", "//\n"}) {
    CHECK(LinesOf(CheckFirstLines(One("src/a.h", text))) == Where{1});
  }
  CHECK(LinesOf(CheckFirstLines(One("cmake/a.cmake", "set(a)\n"))) == Where{1});
}

TEST_CASE("some words are written nowhere", "[tidy]") {
  CHECK(CheckWords(One("src/a.h", "class FrameCounter;\nstruct StackFrame;\n// the workload; class Frame\n")).empty());
  CHECK(LinesOf(CheckWords(One("src/a.h", std::string("\nstruct Fra") + "me {};\n"))) == Where{2});
  CHECK(LinesOf(CheckWords(One("docs/a.md", std::string("TO") + "DO later\n"))) == Where{1});
  CHECK(LinesOf(CheckWords(One("cmake/a.cmake", std::string("set(a /wo") + "rk/main)\n"))) == Where{1});
}

TEST_CASE("each retired word is found, and the report says what to write", "[tidy]") {
  for (const Retired& retired : RetiredWords()) {
    std::string word(retired.word);
    if (word.ends_with('*')) word.replace(word.size() - 1, 1, word.starts_with('k') ? "Stacks" : "stacks");
    const bool is_phrase = retired.scope == Retired::Scope::kPhrase;
    INFO(word);
    const Findings found = CheckVocabulary(One("src/a.cc", (is_phrase ? "\n// It is " : "\nint x = ") + word + ";\n"));
    REQUIRE(LinesOf(found) == Where{2});
    CHECK(found[0].message.find(retired.use) != std::string::npos);
    const bool in_prose = !CheckVocabulary(One("docs/a.md", "It is " + word + ".\n")).empty();
    CHECK(in_prose == (retired.scope != Retired::Scope::kCodeName));
    if (is_phrase && word.find(' ') != std::string::npos) {
      word.replace(word.find(' '), 1, "\n  // ");
      CHECK(LinesOf(CheckVocabulary(One("src/a.cc", "// It is " + word + "\n"))) == Where{1});
    }
  }
}

TEST_CASE("words that only contain a retired one are none", "[tidy]") {
  CHECK(CheckVocabulary(One("src/a.cc", "int Banker, my_Bank, kMostly, at_least_one, most_; // a bank, a place\n"))
            .empty());
  CHECK(CheckVocabulary(One("docs/a.md", "A histogram, the bookkeeping, what lets going on.\n")).empty());
}

TEST_CASE("C++ in documents is compiled somewhere", "[tidy]") {
  Tree tree = {{"README.md", "Text\n\n  ```cpp\n  int x;\n\n  f(x);\n  ```\n\n```\nnot C++\n```\n"},
               {"examples/a.cc", "void F() {\n      int x;\n      f(x);\n}\n"}};
  CHECK(CheckSnippets(tree).empty());
  tree[1].text = "int x;\ng();\nf(x);\n";
  CHECK(LinesOf(CheckSnippets(tree)) == Where{3});
  // Of tests those only that are compiled with the warnings of users.
  tree[1] = {"tests/compile/a.cc", "int x; \nf(x);\n"};
  CHECK(CheckSnippets(tree).empty());
  tree[1].path = "tests/count/a_test.cc";
  CHECK(LinesOf(CheckSnippets(tree)) == Where{3});
}

TEST_CASE("links in documents lead somewhere", "[tidy]") {
  const std::string root = PERFKIT_TEST_DATA "/..";
  CHECK(CheckLinks(One("README.md", "[a](tests/tidy/rules.h) [b](https://x.org/y) [c](#part)"), root).empty());
  CHECK(CheckLinks(One("docs/a.md", "[a](../tests/tidy/rules.h#x)"), root).empty());
  CHECK(LinesOf(CheckLinks(One("docs/a.md", "\n[a](tests/tidy/rules.h)"), root)) == Where{2});
}

}  // namespace
}  // namespace perfkit::tidy
