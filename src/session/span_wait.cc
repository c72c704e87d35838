// The sources, from best to worst: a look, a wake-up, the account of disk reads. Of preempted spans: the switches of
// the CPU, and the account of CPU quotas.
#include "src/session/span_wait.h"

#include "src/session/foreign_wakers.h"

namespace perfkit::session {

std::optional<ProfileWait> WaitOfSpan(const OffCpuSpan& span, bool has_read, ProfileBuilder& builder) {
  // If a thread ended the wait, it was not for a disk. Threads of the kernel end such waits, too.
  const bool by_kernel = span.waker == ProfileWait::kInterrupt || span.waker.ends_with(ForeignWakers::kOfKernel);
  const bool by_thread = !span.waker.empty() && !by_kernel;
  const bool is_disk = has_read && !span.call && !span.preempted && !by_thread;
  if (!span.call && span.waker.empty() && !is_disk && span.throttled_ns == 0) return std::nullopt;
  ProfileWait wait{.preempted = span.preempted, .throttled_ns = span.throttled_ns};
  if (span.throttled_ns != 0 && span.preempter) wait.preempter = span.preempter->InProfile(builder);
  if (span.call) {
    wait.blocked_in_syscall = span.call->syscall >= 0;
    wait.syscall = span.call->syscall;
    wait.arguments = span.call->arguments;
    wait.detail = builder.String(span.wait);
    wait.examined_ns = span.looked_ns;
    wait.holder = span.holder.thread;
    wait.holder_since_ns = span.holder.thread != ProfileWait::kNoHolder ? span.holder_since_ns : 0;
    wait.holder_stack = span.holder.stack;
    wait.holder_quality = span.holder.quality;
  }
  if (is_disk) wait.detail = builder.String(ProfileWait::kProbablyDisk);
  wait.waker = builder.String(span.waker);
  return wait;
}

}  // namespace perfkit::session
