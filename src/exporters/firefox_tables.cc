// Firefox keeps tables as columns that index each other, as Profile does. Each goes out column after column, so nothing
// is held but indexes.
//
//   stringArray   Profile::strings | names of unnamed code, one a location | names of modules | "off-CPU"
//   stacks        each ProfileStack, its calls from the outermost to the innermost: rows row_end_[i-1] .. row_end_[i]-1
//
// The strings come first, so that indexes of Profile::strings are right as they are.
#include "src/exporters/firefox_tables.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "src/profile/base_name.h"

namespace perfkit::exporters {
namespace {

// Breakpad's form of a build ID: its first 16 bytes as a GUID, and an age of 0. "" if it is too short.
std::string BreakpadId(std::string_view build_id) {
  std::string id(build_id.substr(0, 32));
  if (id.size() < 32) return "";
  for (char& c : id) c = 'a' <= c && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  // A GUID's first three fields are little-endian numbers, a build ID is bytes. Positions are in digits, two a byte.
  const auto reverse_bytes = [&](size_t at, size_t bytes) {
    for (size_t i = 0; i < bytes / 2; ++i) {
      std::swap_ranges(id.begin() + static_cast<ptrdiff_t>(at + 2 * i),
                       id.begin() + static_cast<ptrdiff_t>(at + 2 * i + 2),
                       id.begin() + static_cast<ptrdiff_t>(at + 2 * (bytes - 1 - i)));
    }
  };
  reverse_bytes(0, 4);
  reverse_bytes(8, 2);
  reverse_bytes(12, 2);
  return id + "0";
}

void Repeat(JsonWriter& json, std::string_view name, size_t count, std::nullptr_t) {
  json.Key(name).BeginArray();
  for (size_t i = 0; i < count; ++i) json.Null();
  json.EndArray();
}

template <class Number>
void Repeat(JsonWriter& json, std::string_view name, size_t count, Number value) {
  json.Key(name).BeginArray();
  for (size_t i = 0; i < count; ++i) json.Value(value);
  json.EndArray();
}

// An index or a line; null if there is none.
void Optional(JsonWriter& json, uint32_t value, uint32_t none) {
  if (value == none) {
    json.Null();
  } else {
    json.Value(value);
  }
}

}  // namespace

FirefoxTables::FirefoxTables(const Profile& profile) : profile_(profile) {
  AddFunctions();
  uint32_t row = 0;
  row_end_.reserve(profile.stacks.size());
  for (const ProfileStack& stack : profile.stacks) row_end_.push_back(row += CallsOf(stack.location));
  source_of_.assign(profile.strings.size(), kNoSource);
  for (const Function& function : functions_) {
    if (function.file == 0 || source_of_[function.file] != kNoSource) continue;
    source_of_[function.file] = static_cast<uint32_t>(sources_.size());
    sources_.push_back(function.file);
  }
}

// A location without calls has one: its address.
uint32_t FirefoxTables::CallsOf(uint32_t location) const { return std::max(profile_.locations[location].calls, 1U); }

// One function for each name, module and file.
void FirefoxTables::AddFunctions() {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> known;
  auto unnamed = static_cast<uint32_t>(profile_.strings.size());
  for (uint32_t at = 0; at < profile_.locations.size(); ++at) {
    const ProfileLocation& location = profile_.locations[at];
    first_slot_.push_back(static_cast<uint32_t>(function_of_slot_.size()));
    for (uint32_t i = 0; i < CallsOf(at); ++i) {
      const ProfileCall call = location.calls == 0 ? ProfileCall() : profile_.CallsAt(at)[i];
      Function function{.name = call.function == 0 ? unnamed : call.function, .module = location.module};
      function.file = call.file;
      const auto [entry, is_new] =
          known.try_emplace({function.name, function.module, function.file}, static_cast<uint32_t>(functions_.size()));
      if (is_new) functions_.push_back(function);
      function_of_slot_.push_back(entry->second);
    }
    // Each location has a string reserved, used or not: so the index needs no table.
    ++unnamed;
  }
}

// Visits Firefox's stacks: the ProfileStack, the index of the call there (innermost 0), how many calls there are.
template <class Visitor>
void FirefoxTables::ForEachRow(Visitor&& visit) const {
  for (uint32_t i = 0; i < profile_.stacks.size(); ++i) {
    const uint32_t calls = CallsOf(profile_.stacks[i].location);
    for (uint32_t call = calls; call-- > 0;) visit(profile_.stacks[i], call, calls);
  }
}

void FirefoxTables::WriteStacks(JsonWriter& json) const {
  const uint32_t rows = row_end_.empty() ? 0 : row_end_.back();
  json.Key("stackTable").BeginObject().Member("length", rows).Key("prefixOffset").BeginArray();
  uint32_t row = 0;
  ForEachRow([&](const ProfileStack& stack, uint32_t call, uint32_t calls) {
    const bool is_outermost = call + 1 == calls;
    const bool is_root = is_outermost && stack.parent == ProfileStack::kRoot;
    // How many rows before this one its caller is: the call around an inlined one is the row before. 0: none.
    json.Value(is_root ? 0 : is_outermost ? row - StackOf(stack.parent) : 1);
    ++row;
  });
  json.EndArray().Key("frame").BeginArray();  // each stack has a frame of its own: whether it is a guess is the stack's
  for (uint32_t i = 0; i < rows; ++i) json.Value(i);
  json.EndArray().EndObject();
}

void FirefoxTables::WriteFrames(JsonWriter& json) const {
  const uint32_t rows = row_end_.empty() ? 0 : row_end_.back();
  const auto column = [&](std::string_view name, auto&& write) {
    json.Key(name).BeginArray();
    ForEachRow(write);
    json.EndArray();
  };
  json.Key("frameTable").BeginObject().Member("length", rows);
  column("func", [&](const ProfileStack& stack, uint32_t call, uint32_t) {
    json.Value(function_of_slot_[first_slot_[stack.location] + call]);
  });
  column("category", [&](const ProfileStack& stack, uint32_t, uint32_t) {
    const bool kernel = profile_.locations[stack.location].kernel;
    json.Value(static_cast<unsigned>(kernel ? FirefoxCategory::kKernel : FirefoxCategory::kUser));
  });
  column("subcategory", [&](const ProfileStack& stack, uint32_t, uint32_t) {
    json.Value(static_cast<unsigned>(stack.is_guess      ? FirefoxMark::kGuess
                                     : stack.is_stitched ? FirefoxMark::kStitched
                                                         : FirefoxMark::kNone));
  });
  column("line", [&](const ProfileStack& stack, uint32_t call, uint32_t) {
    const bool named = profile_.locations[stack.location].calls > 0;
    Optional(json, named ? profile_.CallsAt(stack.location)[call].line : 0, 0);
  });
  Repeat(json, "column", rows, nullptr);
  column("address", [&](const ProfileStack& stack, uint32_t, uint32_t) {
    const ProfileLocation& location = profile_.locations[stack.location];
    // A number of JavaScript's: larger addresses would become wrong ones.
    const bool exact = location.module != ProfileLocation::kNoModule && location.address < uint64_t{1} << 53;
    json.Value(exact ? static_cast<int64_t>(location.address) : int64_t{-1});
  });
  Repeat(json, "nativeSymbol", rows, nullptr);
  column("inlineDepth", [&](const ProfileStack&, uint32_t call, uint32_t calls) { json.Value(calls - 1 - call); });
  Repeat(json, "innerWindowID", rows, 0);
  Repeat(json, "originalLocation", rows, nullptr);
  json.EndObject();
}

void FirefoxTables::WriteFunctions(JsonWriter& json) const {
  json.Key("funcTable").BeginObject().Member("length", functions_.size());
  json.Key("name").BeginArray();
  for (const Function& function : functions_) json.Value(function.name);
  json.EndArray();
  Repeat(json, "isJS", functions_.size(), false);
  Repeat(json, "relevantForJS", functions_.size(), false);
  json.Key("resource").BeginArray();
  for (const Function& function : functions_) {
    json.Value(function.module == ProfileLocation::kNoModule ? int64_t{-1} : int64_t{function.module});
  }
  json.EndArray().Key("source").BeginArray();
  for (const Function& function : functions_) {
    Optional(json, function.file == 0 ? kNoSource : source_of_[function.file], kNoSource);
  }
  json.EndArray();
  Repeat(json, "lineNumber", functions_.size(), nullptr);
  Repeat(json, "columnNumber", functions_.size(), nullptr);
  Repeat(json, "originalLocation", functions_.size(), nullptr);
  json.EndObject();
}

// A resource for each module, of the same index as its entry in `libs`.
void FirefoxTables::WriteModules(JsonWriter& json) const {
  const size_t modules = profile_.modules.size();
  json.Key("nativeSymbols").BeginObject().Member("length", 0);
  for (const char* const name : {"address", "functionSize", "libIndex", "name"}) json.Key(name).BeginArray().EndArray();
  json.EndObject().Key("resourceTable").BeginObject().Member("length", modules).Key("lib").BeginArray();
  for (size_t i = 0; i < modules; ++i) json.Value(i);
  json.EndArray().Key("name").BeginArray();
  for (size_t i = 0; i < modules; ++i) json.Value(profile_.strings.size() + profile_.locations.size() + i);
  json.EndArray();
  Repeat(json, "host", modules, nullptr);
  constexpr int kLibrary = 1;
  Repeat(json, "type", modules, kLibrary);
  json.EndObject();
}

void FirefoxTables::WriteSources(JsonWriter& json) const {
  json.Key("sources").BeginObject().Member("length", sources_.size());
  Repeat(json, "id", sources_.size(), nullptr);
  json.Key("filename").BeginArray();
  for (const uint32_t file : sources_) json.Value(file);
  json.EndArray();
  Repeat(json, "startLine", sources_.size(), 1);
  Repeat(json, "startColumn", sources_.size(), 1);
  Repeat(json, "sourceMapURL", sources_.size(), nullptr);
  Repeat(json, "content", sources_.size(), nullptr);
  json.EndObject().Key("sourceLocationTable").BeginObject().Member("length", 0);
  for (const char* const name : {"source", "line", "column"}) json.Key(name).BeginArray().EndArray();
  json.EndObject();
}

void FirefoxTables::WriteStrings(JsonWriter& json) const {
  json.Key("stringArray").BeginArray();
  for (const std::string& text : profile_.strings) json.String(text);
  for (uint32_t i = 0; i < profile_.locations.size(); ++i) {
    const std::span<const ProfileCall> calls = profile_.CallsAt(i);
    const bool is_used = calls.empty() || std::any_of(calls.begin(), calls.end(),
                                                      [](const ProfileCall& call) { return call.function == 0; });
    json.String(is_used ? profile_.UnnamedCode(i) : "");
  }
  for (const ProfileModule& module : profile_.modules) json.String(profile::BaseName(profile_.strings[module.path]));
  json.String("off-CPU").EndArray();
}

void FirefoxTables::WriteLibs(JsonWriter& json) const {
  json.Key("libs").BeginArray();
  for (const ProfileModule& module : profile_.modules) {
    const std::string_view path = profile_.strings[module.path], build_id = profile_.strings[module.build_id];
    json.BeginObject().Member("name", profile::BaseName(path)).Member("path", path);
    json.Member("debugName", profile::BaseName(path))
        .Member("debugPath", path)
        .Member("breakpadId", BreakpadId(build_id));
    json.Key("codeId");
    if (build_id.empty()) {
      json.Null();
    } else {
      json.String(build_id);
    }
    json.Key("arch").Null().EndObject();
  }
  json.EndArray();
}

void FirefoxTables::WriteShared(JsonWriter& json) const {
  json.Key("shared").BeginObject();
  WriteStacks(json);
  WriteFrames(json);
  WriteFunctions(json);
  WriteModules(json);
  WriteSources(json);
  WriteStrings(json);
  json.EndObject();
}

}  // namespace perfkit::exporters
