// Uprobes: places in made-up and real files, and a live one that counts calls of malloc.
#include "src/event/probe.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/elf/image.h"
#include "src/event/attr.h"
#include "src/event/probe_location.h"
#include "src/sys/fd.h"
#include "src/sys/files.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/event_roots.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::BytesOf;
using testing::ElfBuilder;
using testing::GoldenRoots;
using testing::RefusalOf;
using testing::SymbolBytes;
using testing::VmRoots;

// Code at 0x1000, loaded from file offset 0x400: two functions, one of them twice, a variable, an IFUNC.
std::string MakeProgram(uint16_t type) {
  ElfBuilder builder;
  builder.header.e_type = type;
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = 0x400,
                      .p_vaddr = 0x1000,
                      .p_filesz = 0x100,
                      .p_memsz = 0x100});
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_W,
                      .p_offset = 0x500,
                      .p_vaddr = 0x2000,
                      .p_filesz = 0x10,
                      .p_memsz = 0x100});
  builder.AddSection(".symtab", {.sh_type = SHT_SYMTAB, .sh_link = 2, .sh_entsize = sizeof(Elf64_Sym)},
                     SymbolBytes(0, 0, 0, 0) + SymbolBytes(1, STT_FUNC, 1, 0x1010) +
                         SymbolBytes(6, STT_FUNC, 1, 0x1020, 8, STB_LOCAL) +
                         SymbolBytes(6, STT_FUNC, 1, 0x1030, 8, STB_LOCAL) + SymbolBytes(12, STT_OBJECT, 1, 0x2000) +
                         SymbolBytes(19, STT_GNU_IFUNC, 1, 0x1040) + SymbolBytes(26, STT_FUNC, 0, 0) +
                         SymbolBytes(31, STT_FUNC, 1, 0x2004));
  builder.AddSection(".strtab", {.sh_type = SHT_STRTAB}, std::string("\0main\0twice\0global\0choose\0puts\0wrong", 37));
  builder.AddSection(".text", {.sh_type = SHT_PROGBITS}, std::string(0x600, '\xc3'));
  return builder.Build();
}

// A file that goes with the test.
class File {
 public:
  explicit File(const std::string& contents) {
    char path[] = "/tmp/perfkit_elf_XXXXXX";
    const int fd = ::mkstemp(path);
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = path;
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The refusal, with the file's path as F.
std::string Refusal(const std::string& before, const File& file, const std::string& after) {
  std::string message = RefusalOf(before + file.path() + after, VmRoots());
  for (size_t at = message.find(file.path()); at != message.npos; at = message.find(file.path())) {
    message.replace(at, file.path().size(), "F");
  }
  return message;
}

TEST_CASE("a symbol's place is its offset in the file", "[probe]") {
  for (const uint16_t type : {ET_DYN, ET_EXEC}) {
    const File file(MakeProgram(type));
    const absl::StatusOr<EventConfig> entry = ParseEvent("uprobe:" + file.path() + ":main:u", VmRoots());
    REQUIRE(entry.ok());
    CHECK(entry->probe_path == file.path());
    CHECK((entry->parts[0].type == 8 && entry->parts[0].config == 0 && entry->parts[0].config2 == 0x410));
    CHECK((entry->exclude_kernel && !entry->kernel_side));
    const absl::StatusOr<EventConfig> leave = ParseEvent("uretprobe:" + file.path() + ":main+0x4", VmRoots());
    REQUIRE(leave.ok());
    CHECK((leave->parts[0].config == 1 && leave->parts[0].config2 == 0x414));
  }
}

TEST_CASE("an offset is taken as it stands", "[probe]") {
  const File file(MakeProgram(ET_DYN));
  CHECK(ParseEvent("uprobe:" + file.path() + "+0x41c:k", VmRoots())->parts[0].config2 == 0x41c);
  CHECK(ParseEvent("uprobe:" + file.path() + "+1052", VmRoots())->parts[0].config2 == 1052);
  CHECK(Refusal("uprobe:", file, "+0x7fffffff").ends_with("offset 0x7fffffff lies outside F"));
  CHECK(Refusal("uprobe:", file, ":main+0x7fffffff").ends_with("offset 0x7fffffff lies outside F"));
}

TEST_CASE("symbols that cannot be probed say why", "[probe]") {
  const File file(MakeProgram(ET_DYN));
  const auto ends = [&](const std::string& symbol, const std::string& text) {
    INFO(Refusal("uprobe:", file, ":" + symbol));
    CHECK(Refusal("uprobe:", file, ":" + symbol).ends_with(text));
  };
  ends("mian", ": the file defines no 'mian'; did you mean 'main'?");
  ends("puts", ": the file defines no 'puts'");
  ends("twice", ": 2 functions of the file are called 'twice'; give an offset, as in 'file+0x420'");
  ends("global", ": 'global' is a variable, not code");
  ends("choose",
       ": 'choose' is chosen by the loader among several functions (IFUNC): a probe on it would count that choice, not "
       "the calls; name one of those functions");
  ends("wrong", ": 'wrong' is no code of the file");
  ends("", ": which function? Write 'uprobe:file:symbol' or 'uprobe:file+0x1234'");
}

TEST_CASE("files that cannot be probed say why", "[probe]") {
  const File script("#!/bin/sh\n");
  CHECK(Refusal("uprobe:", script, ":main") == "event 'uprobe:F:main', character 8: F is not an ELF file");
  const File empty("");
  CHECK(Refusal("uprobe:", empty, ":main") == "event 'uprobe:F:main', character 8: F is empty");
  const File stripped(ElfBuilder().Build());
  CHECK(Refusal("uprobe:", stripped, ":main").ends_with("it has no symbols: give an offset, as in 'file+0x1234'"));
  std::string narrow = MakeProgram(ET_DYN);
  narrow[EI_CLASS] = ELFCLASS32;
  CHECK(Refusal("uprobe:", File(narrow), ":main").ends_with("F is a 32-bit ELF file: perfkit reads 64-bit ones"));
  CHECK(RefusalOf("uprobe:/no/such/file:main", VmRoots())
            .starts_with("event 'uprobe:/no/such/file:main', character 8: cannot open /no/such/file"));
  CHECK(RefusalOf("uprobe:/tmp:main", VmRoots()) == "event 'uprobe:/tmp:main', character 8: /tmp is no regular file");
  CHECK(RefusalOf("uprobe::main", VmRoots()) ==
        "event 'uprobe::main', character 8: which file? Write 'uprobe:file:symbol'");
  const testing::TempFolder sysfs;
  EventRoots old_kernel = GoldenRoots("no_such_machine");
  old_kernel.sysfs = sysfs.path();
  const File file(MakeProgram(ET_DYN));
  CHECK(RefusalOf("uprobe:" + file.path() + ":main", old_kernel)
            .ends_with("Remedy: as root: mount -t sysfs sysfs " + sysfs.path() + "."));
  sysfs.Write("/bus/event_source/devices/software/type", "1\n");
  CHECK(RefusalOf("uprobe:" + file.path() + ":main", old_kernel)
            .ends_with("this kernel counts no uprobes (they came with Linux 4.17, CONFIG_UPROBE_EVENTS)"));
}

TEST_CASE("a bare name is a file that this process has mapped", "[probe]") {
  const File maps("");
  const std::string proc = maps.path() + "_proc";
  std::filesystem::create_directories(proc + "/self");
  std::ofstream(proc + "/self/maps") << "7f00-7f01 r-xp 0 00:00 0 [vdso]\n"
                                        "7f10-7f11 r-xp 0 fe:00 1    /usr/lib/libcrypt.so.1\n"
                                        "7f20-7f21 r--p 0 fe:00 2    /usr/lib/my libs/libc.so.6\n"
                                        "7f30-7f31 r--p 0 fe:00 3    /usr/lib/libz-1.2.so\n";
  EventRoots roots = VmRoots();
  roots.proc = proc;
  CHECK(*event::FindMappedFile("libc", roots) == "/usr/lib/my libs/libc.so.6");
  CHECK(*event::FindMappedFile("libc.so.6", roots) == "/usr/lib/my libs/libc.so.6");
  CHECK(*event::FindMappedFile("libz", roots) == "/usr/lib/libz-1.2.so");
  CHECK(event::FindMappedFile("lib", roots).status().message() ==
        "'lib' is no path, and this process has mapped no file of that name");
  std::filesystem::remove_all(proc);
}

// The loader's own answer: where `name` is, less where its library begins.
uint64_t AddressInLibrary(const char* name) {
  // By the library's own handle: a sanitizer puts its malloc in front of libc's.
  void* const at = ::dlsym(::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
  Dl_info info{};
  REQUIRE(::dladdr(at, &info) != 0);
  return static_cast<char*>(at) - static_cast<char*>(info.dli_fbase);
}

TEST_CASE("libc's functions are where the loader finds them", "[probe]") {
  const absl::StatusOr<std::string> path = event::FindMappedFile("libc", {});
  if (!path.ok()) SKIP_TEST("no libc is mapped as a file of its own");
  const absl::StatusOr<std::string> bytes = sys::ReadFile(*path);
  REQUIRE(bytes.ok());
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(BytesOf(*bytes));
  REQUIRE(image.ok());
  for (const char* name : {"malloc", "free", "getenv", "fopen", "pthread_create", "qsort", "open"}) {
    INFO(name);
    const absl::StatusOr<uint64_t> found = event::FindCode(*image, name);
    REQUIRE(found.ok());
    CHECK(*found == image->FileOffset(AddressInLibrary(name)));
  }
}

// Opens `text` on this thread and returns how often it counted while `work` ran; nothing when it may not be opened.
template <class Work>
std::optional<uint64_t> CountLive(const std::string& text, Work&& work) {
  const absl::StatusOr<EventConfig> event = ParseEvent(text);
  if (absl::IsNotFound(event.status())) return std::nullopt;
  INFO(event.status().ToString());
  REQUIRE(event.ok());
  const sys::PerfEventAttr attr = event::ToAttr(*event, event->parts[0]);
  const sys::OwnedFd fd(sys::kernel().perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec));
  if (!fd && (errno == EACCES || errno == EPERM)) return std::nullopt;
  REQUIRE(fd);
  uint64_t before = 0, after = 0;
  // Nothing between the reads but the work: the test framework allocates.
  const ssize_t first = sys::kernel().read(fd.get(), &before, sizeof(before));
  work();
  const ssize_t second = sys::kernel().read(fd.get(), &after, sizeof(after));
  REQUIRE((first == sizeof(before) && second == sizeof(after)));
  return after - before;
}

// 100 calls that no compiler may leave out.
void Allocate() {
  for (int i = 0; i < 100; ++i) {
    void* volatile block = std::malloc(32 + i);
    std::free(block);
  }
}

TEST_CASE("a uprobe on malloc counts its calls, one by one", "[probe][live]") {
  if (testing::kSanitized) SKIP_TEST("malloc is the sanitizer's, not libc's");
  if (!event::FindMappedFile("libc", {}).ok()) SKIP_TEST("no libc is mapped as a file of its own");
  const std::optional<uint64_t> entries = CountLive("uprobe:libc:malloc", Allocate);
  if (!entries) SKIP_TEST("uprobes need CAP_PERFMON, and a kernel that has them");
  CHECK(*entries == 100);
  CHECK(CountLive("uprobe:libc:malloc:u", Allocate) == 100);  // user code raises it: no kernel_side
  CHECK(CountLive("uretprobe:libc:free", Allocate) == 100);
}

}  // namespace
}  // namespace perfkit
