// The part of the ITT binary interface that a collector uses: what the static part of ittnotify, which programs and
// libraries link, passes to the library that INTEL_LIBITTNOTIFY64 names.
//
// Names and layouts are those of intel/ittapi, in its headers ittnotify and ittnotify_config. They have been the same
// since version 3 (2011). The header packs its structs to 8 bytes, which does not change their layout.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace perfkit::itt {

// __itt_id. Functions receive it by value.
struct Id {
  unsigned long long d1, d2, d3;

  bool operator==(const Id&) const = default;
};

// __itt_domain
struct Domain {
  volatile int flags;  // 0: disabled. The caller's macros test it.
  const char* name;
  void* wide_name;
  int extra1;
  void* extra2;
  Domain* next;
};

// __itt_string_handle
struct StringHandle {
  const char* text;
  void* wide_text;
  int extra1;
  void* extra2;
  StringHandle* next;
};

using Timestamp = unsigned long long;                     // Of the collector's own clock.
inline constexpr Timestamp kNoTimestamp = ~Timestamp{0};  // __itt_timestamp_none

// __itt_api_info: one function of the interface. A collector stores its own function in *function. If it has none, it
// stores `null_function`, which is nullptr, or for some functions a function of the static part.
struct ApiEntry {
  const char* name;  // "__itt_task_begin"; nullptr ends the list.
  void** function;
  void* init_function;
  void* null_function;
  int group;  // Bits of __itt_group_id.
};

// __itt_global up to the list of handles. A program has one for each copy of the static part.
struct Global {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long api_initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** library_path;
  ApiEntry* entries;
  Global* next;
  void* threads;
  Domain* domains;
  StringHandle* handles;
};

inline constexpr unsigned char kMagic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
inline constexpr unsigned long kMajor = 3;
// The last build with an older __itt_api_info, without null_function (___itt_api_info_20101001 in ittnotify_config).
inline constexpr unsigned long kBuildOfShortEntries = 20101001;

#if defined(__LP64__)
static_assert(offsetof(Domain, name) == 8 && offsetof(Domain, extra2) == 32 && sizeof(Domain) == 48);
static_assert(offsetof(StringHandle, extra1) == 16 && sizeof(StringHandle) == 40);
static_assert(sizeof(ApiEntry) == 40 && offsetof(Global, mutex) == 56);
static_assert(offsetof(Global, entries) == 56 + sizeof(pthread_mutex_t) + 24);
#endif

}  // namespace perfkit::itt
