// Looks up names under a lock that no fork can leave locked in its child.
#include "src/itt/names.h"

#include "src/sys/fork_registry.h"

namespace perfkit::itt {
namespace {

// A damaged list may be a ring.
constexpr size_t kMaxAdopted = 100'000;

}  // namespace

void Names::Adopt(const Global& global) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t adopted = 0;
  for (Domain* domain = global.domains; domain != nullptr && adopted < kMaxAdopted; domain = domain->next, ++adopted) {
    if (domain->name != nullptr) domains_.try_emplace(domain->name, domain);
  }
  adopted = 0;
  for (StringHandle* handle = global.handles; handle != nullptr && adopted < kMaxAdopted;
       handle = handle->next, ++adopted) {
    if (handle->text != nullptr) handles_.try_emplace(handle->text, handle);
  }
}

Domain* Names::DomainOf(std::string_view name) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = domains_.find(name);
  if (found != domains_.end()) return found->second;
  const auto entry = domains_.try_emplace(std::string(name)).first;
  return entry->second = new Domain{.flags = 1, .name = entry->first.c_str()};
}

StringHandle* Names::HandleOf(std::string_view text) {
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = handles_.find(text);
  if (found != handles_.end()) return found->second;
  const auto entry = handles_.try_emplace(std::string(text)).first;
  return entry->second = new StringHandle{.text = entry->first.c_str()};
}

}  // namespace perfkit::itt
