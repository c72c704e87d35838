// The tables of a Firefox profile that all its threads share: strings, sources, functions, frames, stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfkit/profile.h"
#include "src/exporters/json_writer.h"

namespace perfkit::exporters {

// Categories of frames and markers, by their index in `meta.categories`.
enum class FirefoxCategory : uint8_t { kOther, kUser, kKernel };
// What marks a frame: `subcategories` of each category.
enum class FirefoxMark : uint8_t { kNone, kGuess, kStitched };

// Firefox has one stack for each call, inlined ones too: each ProfileStack becomes as many of them as its location has
// calls, the outermost first. Keeps some bytes for each stack and each call.
class FirefoxTables {
 public:
  explicit FirefoxTables(const Profile& profile);

  // Returns the Firefox stack of a ProfileStack: that of its innermost call.
  uint32_t StackOf(uint32_t stack) const { return row_end_[stack] - 1; }

  // Returns the index in stringArray of the name of markers for waits.
  size_t wait_name() const { return profile_.strings.size() + profile_.locations.size() + profile_.modules.size(); }

  // Write the array `libs`, and the object `shared`.
  void WriteLibs(JsonWriter& json) const;
  void WriteShared(JsonWriter& json) const;

 private:
  struct Function {
    uint32_t name = 0;    // Index in stringArray.
    uint32_t module = 0;  // Index in Profile::modules; ProfileLocation::kNoModule means unknown.
    uint32_t file = 0;    // Index in stringArray; 0 means unknown.
  };

  void AddFunctions();
  uint32_t CallsOf(uint32_t location) const;
  template <class Visitor>
  void ForEachRow(Visitor&& visit) const;
  void WriteStacks(JsonWriter& json) const;
  void WriteFrames(JsonWriter& json) const;
  void WriteFunctions(JsonWriter& json) const;
  void WriteModules(JsonWriter& json) const;
  void WriteSources(JsonWriter& json) const;
  void WriteStrings(JsonWriter& json) const;

  const Profile& profile_;
  std::vector<Function> functions_;
  std::vector<uint32_t> first_slot_;        // By location: the index of its first call in function_of_slot_.
  std::vector<uint32_t> function_of_slot_;  // By call, location after location: index in functions_.
  std::vector<uint32_t> row_end_;           // By ProfileStack: one past its last row of Firefox's stack table.
  std::vector<uint32_t> source_of_;         // By string: index in sources_; kNoSource means that it is no file.
  std::vector<uint32_t> sources_;           // The strings that are files.
  static constexpr uint32_t kNoSource = UINT32_MAX;
};

}  // namespace perfkit::exporters
