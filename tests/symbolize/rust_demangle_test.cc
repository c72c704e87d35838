// Names of real Rust programs, of both forms; and names that are damaged, or that would exceed memory.
#include "src/symbolize/rust_demangle.h"

#include <catch2/catch.hpp>
#include <random>

#include "src/symbolize/demangle.h"

namespace perfkit::symbolize {
namespace {

struct Known {
  const char *mangled, *readable;
};

// From programs that rustc 1.8x made; what is said of them is what binutils' c++filt says, without its hashes of
// crates.
constexpr Known kNames[] = {
    {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
    {"_RNCNvNtCsjrHSEGnQ3l9_3std5alloc8rust_oom0B5_", "std::alloc::rust_oom::{closure#0}"},
    {"_RINvCs6GmmlP4bgsG_1r3genFhEbEB2_", "r::gen::<fn(u8) -> bool>"},
    {"_RINvCs6GmmlP4bgsG_1r3genPhEB2_", "r::gen::<*const u8>"},
    {"_RINvCs6GmmlP4bgsG_1r3genThEEB2_", "r::gen::<(u8,)>"},
    {"_RINvCs6GmmlP4bgsG_1r3genQDNtNtCsgEmfK2I1SDS_4core3fmt5DebugNtNtBs_6marker4SendEL_EB2_",
     "r::gen::<&mut dyn core::fmt::Debug + core::marker::Send>"},
    {"_RNvMs_Cs6GmmlP4bgsG_1rINtB4_3ArrKj3_E3sumB4_", "<r::Arr<3>>::sum"},
    {"_RNvXs1h_NtCsgEmfK2I1SDS_4core3fmtQShNtB6_5Debug3fmtCsgY6Mt91CT9J_14rustc_demangle",
     "<&mut [u8] as core::fmt::Debug>::fmt"},
    {"_RNSNvYNCNvNtNtNtCsjrHSEGnQ3l9_3std3sys11personality3gcc14find_eh_action0INtNtNtCsgEmfK2I1SDS_4core3ops8function6"
     "FnOnceuE9call_once6vtableBe_",
     "<std::sys::personality::gcc::find_eh_action::{closure#0} as core::ops::function::FnOnce<()>>::call_once::"
     "{shim:vtable#0}"},
    {"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecTOhFUKCBN_EuENtNtCsjrHSEGnQ3l9_3std5alloc6SystemE8grow_"
     "oneB13_",
     "<alloc::raw_vec::RawVec<(*mut u8, unsafe extern \"C\" fn(*mut u8)), std::alloc::System>>::grow_one"},
    {"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG0_INtNtNtB4_"
     "3ops8function2FnTRL1_"
     "INtNtCsjrHSEGnQ3l9_3std5panic13PanicHookInfoL0_EEEp6OutputuNtNtB4_6marker4SyncNtB2N_4SendEL_EEB1T_",
     "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a, 'b> core::ops::function::Fn<(&'a "
     "std::panic::PanicHookInfo<'b>,), Output = ()> + core::marker::Sync + core::marker::Send>>"},
    {"_ZN1r4show17h2de7cfd90c9a386bE", "r::show"},
    {"_ZN1r12Arr$LT$_$GT$3sum17h2fe93fcaee845c26E", "r::Arr<_>::sum"},
    {"_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h56115b817ba71376E", "<&T as core::fmt::Debug>::fmt"},
    {"_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h38cfe4544060f0dfE.llvm.17464912433808629895",
     "std::sys::backtrace::__rust_begin_short_backtrace"},
};

TEST_CASE("Rust's names are as its programmers write them", "[rust_demangle]") {
  for (const Known& known : kNames) {
    CHECK(DemangleRust(known.mangled).value_or("-") == known.readable);
    CHECK(Demangle(known.mangled) == known.readable);
  }
  CHECK(Demangle("_RNvCs1234_7mycrate3foo@plt") == "mycrate::foo@plt");
}

TEST_CASE("C++'s names are not taken for Rust's", "[rust_demangle]") {
  CHECK_FALSE(DemangleRust("_ZN4game4StepEv"));
  CHECK_FALSE(DemangleRust("_ZN1r17h2de7cfd90c9a386bEv"));  // has parameters
  CHECK(Demangle("_ZN1r17h2de7cfd90c9a386bEv") == "r::h2de7cfd90c9a386b()");
  CHECK_FALSE(DemangleRust("_ZN17h2de7cfd90c9a386bE"));  // nothing but a hash
  for (const char* name : {"", "main", "_R", "_Restore", "_ZN", "_ZN99r17h", "_RC", "_R1NvC1a1b", "_ZN1r$u7$E"}) {
    CHECK_FALSE(DemangleRust(name));
  }
}

TEST_CASE("names that stand for themselves many times over stay as they are", "[rust_demangle]") {
  // A tuple of two tuples of two, each a reference to the one before.
  std::string name = "_RINvC1a1bTuuE";
  size_t last = 8;  // where that type is, from after _R
  for (int level = 0; level < 30; ++level) {
    const std::string reference =
        "B" + std::string(1, static_cast<char>(last <= 10 ? '0' + last - 1 : 'a' + last - 11)) + "_";
    const size_t at = name.size() - 2;
    name += "T" + reference + reference + "E";
    if (at > 36) break;
    last = at;
  }
  CHECK(DemangleRust(name + "E").value_or("-").size() < 17'000);
  CHECK_FALSE(DemangleRust("_RIC1a" + std::string(100'000, 'T')));
  CHECK_FALSE(DemangleRust("_RIC1a" + std::string(100'000, 'R') + "uE"));
  CHECK_FALSE(DemangleRust("_RINvC1a1bB7_E"));  // a reference into itself
}

TEST_CASE("damaged names are no harm", "[rust_demangle]") {
  std::mt19937_64 random(5);
  size_t readable = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string name = kNames[static_cast<size_t>(i) % std::size(kNames)].mangled;
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      constexpr char kLetters[] = "BCDEFGIKLMNQRSTXY_0159$.abhnpsuvz\xff";
      name[2 + random() % (name.size() - 2)] = kLetters[random() % (sizeof(kLetters) - 1)];
    }
    if (random() % 4 == 0) name.resize(random() % name.size());
    const auto text = DemangleRust(name);
    readable += text.has_value();
    if (text) CHECK(text->size() <= 16 << 10);
  }
  CHECK(readable > 1000);
}

}  // namespace
}  // namespace perfkit::symbolize
