// PAPI's event set, as its manual uses it: PAPI_add_named_event, PAPI_start, then PAPI_read (which leaves it running).
#include "bench/support/papi/papi_peer.h"

#include <papi.h>

namespace bench {
namespace {

// libpfm4's names of kFour.
constexpr std::array<const char*, 4> kNames = {"perf::PERF_COUNT_SW_TASK_CLOCK", "perf::PERF_COUNT_SW_PAGE_FAULTS",
                                               "perf::PERF_COUNT_SW_CONTEXT_SWITCHES",
                                               "perf::PERF_COUNT_SW_CPU_MIGRATIONS"};

int InitializeOnce() {
  static const int version = PAPI_library_init(PAPI_VER_CURRENT);
  return version == PAPI_VER_CURRENT ? PAPI_OK : version;
}

}  // namespace

PapiSet::PapiSet() : set_(PAPI_NULL) {
  int status = InitializeOnce();
  if (status == PAPI_OK) status = PAPI_create_eventset(&set_);
  for (size_t i = 0; i < kNames.size() && status == PAPI_OK; ++i) status = PAPI_add_named_event(set_, kNames[i]);
  if (status == PAPI_OK) status = PAPI_start(set_);
  started_ = status == PAPI_OK;
  if (!started_) error_ = std::string("PAPI: ") + PAPI_strerror(status);
}

PapiSet::~PapiSet() {
  if (started_) PAPI_stop(set_, nullptr);
  if (set_ == PAPI_NULL) return;
  PAPI_cleanup_eventset(set_);
  PAPI_destroy_eventset(&set_);
}

int PapiSet::Read(Values& values) const { return PAPI_read(set_, values.data()); }

}  // namespace bench
