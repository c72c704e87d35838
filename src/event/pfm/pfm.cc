// Encodes events by libpfm4, which has tables of nearly every CPU's events (man pfm_get_os_event_encoding).
#include "perfkit/pfm.h"

#include <perfmon/pfmlib_perf_event.h>

#include <string>

#include "absl/strings/str_format.h"

namespace perfkit {
namespace {

// Returns libpfm4's message, with the event in front.
absl::Status PfmError(absl::StatusCode code, const std::string& text, const std::string& wrong) {
  return absl::Status(code, absl::StrFormat("event '%s' for libpfm4: %s", text, wrong));
}

// Initialises libpfm4 once. Never terminates it: other users in the process may share it.
int Initialize() {
  static const int result = pfm_initialize();
  return result;
}

// "Not supported" refers to this machine, all other results to the name.
absl::StatusCode CodeOf(int result) {
  return result == PFM_ERR_NOTSUPP ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument;
}

// libpfm4 fills in a whole attr. Takes over only the parts that names and modifiers decide.
EventConfig FromAttr(const std::string& name, const perf_event_attr& attr) {
  EventConfig config;
  config.name = name;
  EventConfig::Part part;
  part.type = attr.type;
  part.config = attr.config;
  part.config1 = attr.config1;
  part.config2 = attr.config2;
  config.parts.push_back(part);
  config.exclude_user = attr.exclude_user;
  config.exclude_kernel = attr.exclude_kernel;
  config.exclude_hv = attr.exclude_hv;
  config.exclude_host = attr.exclude_host;
  config.exclude_guest = attr.exclude_guest;
  config.exclude_idle = attr.exclude_idle;
  config.pinned = attr.pinned;
  config.exclusive = attr.exclusive;
  config.precise = attr.precise_ip;
  config.privilege_given = attr.exclude_user || attr.exclude_kernel || attr.exclude_hv;
  return config;
}

}  // namespace

absl::StatusOr<EventConfig> ParsePfmEvent(std::string_view text) {
  constexpr std::string_view kPrefix = "pfm:";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  const std::string name(text);
  if (name.find('\0') != std::string::npos) return PfmError(absl::StatusCode::kInvalidArgument, name, "a NUL byte");
  if (const int result = Initialize(); result != PFM_SUCCESS)
    return PfmError(CodeOf(result), name, pfm_strerror(result));
  perf_event_attr attr{};
  pfm_perf_encode_arg_t arg{};
  arg.attr = &attr;
  arg.size = sizeof(arg);
  // All levels unless modifiers say otherwise: perfkit restricts the event, and says so, if rights demand it.
  const int result =
      pfm_get_os_event_encoding(name.c_str(), PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT_EXT, &arg);
  if (result != PFM_SUCCESS) return PfmError(CodeOf(result), name, pfm_strerror(result));
  if (attr.sample_period != 0) {
    return PfmError(absl::StatusCode::kInvalidArgument, name,
                    "'period' and 'freq' say how samples are taken, which is an option of perfkit's sampler");
  }
  return FromAttr(name, attr);
}

}  // namespace perfkit
