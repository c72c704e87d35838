// Checks all of a program's list before it changes the first entry: the list comes from another binary.
#include "src/itt/functions.h"

#include <cstring>
#include <string_view>

#include "absl/strings/str_format.h"

namespace perfkit::itt {
namespace {

// A list has about 180 entries. A longer one is read with a wrong layout.
constexpr size_t kMaxEntries = 2000;

absl::Status Refuse(const char* what) {
  return absl::Status(
      absl::StatusCode::kInvalidArgument,
      absl::StrFormat("a copy of ittnotify in this program %s. Remedy: link ittnotify of 2011 or later, "
                      "from intel/ittapi",
                      what));
}

absl::Status Check(const Global* global) {
  if (global == nullptr) return Refuse("passes nothing");
  if (std::memcmp(global->magic, kMagic, sizeof(kMagic)) != 0) return Refuse("has an unknown layout");
  if (global->version_major != kMajor || global->version_build <= kBuildOfShortEntries) {
    return Refuse(
        absl::StrFormat("has version %d.%d (%d)", global->version_major, global->version_minor, global->version_build)
            .c_str());
  }
  if (global->entries == nullptr) return Refuse("has no functions");
  for (size_t i = 0; global->entries[i].name != nullptr; ++i) {
    const ApiEntry& entry = global->entries[i];
    constexpr std::string_view kPrefix = "__itt_";
    if (i == kMaxEntries || entry.function == nullptr ||
        std::strncmp(entry.name, kPrefix.data(), kPrefix.size()) != 0) {
      return Refuse("has a list of functions with an unknown layout");
    }
  }
  return absl::OkStatus();
}

void* Find(std::string_view name, std::span<const Function> functions) {
  for (const Function& function : functions) {
    if (function.name == name) return function.address;
  }
  return nullptr;
}

}  // namespace

absl::Status Connect(Global* global, int groups, std::span<const Function> functions) {
  if (absl::Status status = Check(global); !status.ok()) return status;
  for (ApiEntry* entry = global->entries; entry->name != nullptr; ++entry) {
    void* const mine = (entry->group & groups) != 0 ? Find(entry->name, functions) : nullptr;
    *entry->function = mine != nullptr ? mine : entry->null_function;
  }
  return absl::OkStatus();
}

}  // namespace perfkit::itt
