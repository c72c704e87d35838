// Growth in successive readings is joined into one interval, so one interval for each thread is enough.
#include "src/session/disk_reads.h"

namespace perfkit::session {

void DiskReads::Add(uint32_t thread, uint64_t time_ns, uint64_t bytes) {
  const auto [entry, is_new] = threads_.try_emplace(thread, Account{time_ns, bytes});
  Account& account = entry->second;
  if (!is_new && bytes > account.bytes) {
    if (account.grew_to_ns != account.at_ns) account.grew_from_ns = account.at_ns;
    account.grew_to_ns = time_ns;
  }
  account.at_ns = time_ns;
  account.bytes = bytes;
}

bool DiskReads::HasRead(uint32_t thread, uint64_t from_ns, uint64_t to_ns) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && from_ns < found->second.grew_to_ns && found->second.grew_from_ns < to_ns;
}

}  // namespace perfkit::session
