// What the static part of ittnotify is to a collector: a list of functions, and the call that has it filled.
//
// Programs of the tests link this instead of ittnotify, which Debian has no package of. It does what the static part
// does to load a collector, with a few functions. TBB, in another test, brings the real one.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/itt/abi.h"

namespace perfkit::itt {

// The pointers through which ittnotify's macros call; nullptr as long as no collector is loaded.
struct Calls {
  void (*task_begin)(const Domain*, Id task, Id parent, StringHandle*) = nullptr;
  void (*task_begin_fn)(const Domain*, Id task, Id parent, void* function) = nullptr;
  void (*task_end)(const Domain*) = nullptr;
  void (*task_begin_overlapped)(const Domain*, Id task, Id parent, StringHandle*) = nullptr;
  void (*task_end_overlapped)(const Domain*, Id task) = nullptr;
  void (*frame_begin)(const Domain*, Id*) = nullptr;
  void (*frame_end)(const Domain*, Id*) = nullptr;
  void (*frame_submit)(const Domain*, Id*, Timestamp begin, Timestamp end) = nullptr;
  Timestamp (*get_timestamp)() = nullptr;
  void (*thread_set_name)(const char*) = nullptr;
  void (*pause)() = nullptr;
  void (*resume)() = nullptr;
  // The static part has functions of its own for these two, which these are before a collector is loaded.
  Domain* (*domain_create)(const char*) = nullptr;
  StringHandle* (*string_handle_create)(const char*) = nullptr;
};

// At a fixed address: the list has pointers to its members.
class StaticPart {
 public:
  StaticPart() {
    std::memcpy(global.magic, kMagic, sizeof(kMagic));
    global.version_major = kMajor;
    global.version_minor = 18;
    global.version_build = 20180723;
    Add("__itt_domain_create", &calls.domain_create, reinterpret_cast<void*>(&OwnDomain));
    Add("__itt_string_handle_create", &calls.string_handle_create, reinterpret_cast<void*>(&OwnHandle));
    Add("__itt_task_begin", &calls.task_begin);
    Add("__itt_task_begin_fn", &calls.task_begin_fn);
    Add("__itt_task_end", &calls.task_end);
    Add("__itt_task_begin_overlapped", &calls.task_begin_overlapped);
    Add("__itt_task_end_overlapped", &calls.task_end_overlapped);
    Add("__itt_frame_begin_v3", &calls.frame_begin);
    Add("__itt_frame_end_v3", &calls.frame_end);
    Add("__itt_frame_submit_v3", &calls.frame_submit);
    Add("__itt_get_timestamp", &calls.get_timestamp);
    Add("__itt_thread_set_name", &calls.thread_set_name);
    Add("__itt_pause", &calls.pause);
    Add("__itt_resume", &calls.resume);
    entries.push_back({nullptr, nullptr, nullptr, nullptr, 0});
    global.entries = entries.data();
  }
  StaticPart(const StaticPart&) = delete;
  StaticPart& operator=(const StaticPart&) = delete;

  // Loads the collector. Returns why that failed; "" if it did not.
  std::string Load(const char* path, int groups = -1) {
    global.library = dlopen(path, RTLD_LAZY);
    if (global.library == nullptr) return dlerror();
    auto* const init = reinterpret_cast<void (*)(Global*, int)>(dlsym(global.library, "__itt_api_init"));
    if (init == nullptr) return "it is no collector";
    init(&global, groups);
    return "";
  }

  Calls calls;
  Global global{};
  std::vector<ApiEntry> entries;

 private:
  static Domain* OwnDomain(const char*) { return nullptr; }
  static StringHandle* OwnHandle(const char*) { return nullptr; }

  template <class Call>
  void Add(const char* name, Call* call, void* own = nullptr) {
    constexpr int kStructure = 1 << 12;  // __itt_group_structure
    entries.push_back({name, reinterpret_cast<void**>(call), own, own, kStructure});
    *reinterpret_cast<void**>(call) = own;
  }
};

}  // namespace perfkit::itt
