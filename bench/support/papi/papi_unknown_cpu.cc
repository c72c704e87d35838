// Lets PAPI count software events on a CPU that its libpfm4 does not know.
//
// PAPI 7.0 disables its whole perf_event component if libpfm4 finds no PMU of type "core". On a processor that is newer
// than the library, that also disables the software events, which need no PMU. PAPI asks through this one function,
// which therefore reports the table of software events as the core PMU. PAPI itself, and all its reads, stay as Debian
// built them. If libpfm4 has the processor, nothing changes.
#include <dlfcn.h>
#include <perfmon/pfmlib.h>

#include <cstring>

namespace {

using GetPmuInfo = pfm_err_t (*)(pfm_pmu_t, pfm_pmu_info_t*);

bool IsCore(const pfm_pmu_info_t& info) { return info.is_present && info.type == PFM_PMU_TYPE_CORE; }

bool HasCorePmu(GetPmuInfo real) {
  for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; ++pmu) {
    pfm_pmu_info_t info;
    std::memset(&info, 0, sizeof(info));
    info.size = sizeof(info);
    if (real(static_cast<pfm_pmu_t>(pmu), &info) == PFM_SUCCESS && IsCore(info)) return true;
  }
  return false;
}

}  // namespace

extern "C" pfm_err_t pfm_get_pmu_info(pfm_pmu_t pmu, pfm_pmu_info_t* output) {
  static const auto real = reinterpret_cast<GetPmuInfo>(dlsym(RTLD_NEXT, "pfm_get_pmu_info"));
  static const bool has_core = HasCorePmu(real);
  const pfm_err_t error = real(pmu, output);
  if (error != PFM_SUCCESS || has_core || std::strcmp(output->name, "perf") != 0) return error;
  output->type = PFM_PMU_TYPE_CORE;
  output->is_dfl = 1;
  output->num_cntrs = 4;  // It has no limit, but PAPI requires one.
  return error;
}
