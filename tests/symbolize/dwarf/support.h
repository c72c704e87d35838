// The calls at an address by binutils' addr2line, for comparison; and locations in the code of a file.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/dwarf_lines.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/dwarf/libdw_oracle.h"
#include "tests/symbolize/support.h"

namespace perfkit::testing {

inline std::string Text(const Calls& calls) {
  std::string text;
  for (const Call& call : calls) text += absl::StrFormat("  %s at %s:%d\n", call.function, call.file, call.line);
  return text;
}

// This very program.
inline std::string SelfPath() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

// `count` addresses in functions that nm knows in `path`, evenly strewn over their bytes; the same ones each time.
inline std::vector<uint64_t> AddressesIn(const std::string& path, size_t count) {
  struct Code {
    uint64_t begin, size;
  };
  std::vector<Code> all;
  uint64_t bytes = 0;
  std::istringstream lines(RunCommand("nm -S --defined-only " + path).output);
  for (std::string line; std::getline(lines, line);) {
    uint64_t begin = 0, size = 0;
    char type = 0;
    if (sscanf(line.c_str(), "%lx %lx %c", &begin, &size, &type) != 3 || std::string("tTwWi").find(type) > 4) continue;
    all.push_back({begin, size});
    bytes += size;
  }
  std::vector<uint64_t> addresses;
  if (bytes == 0) return addresses;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < count; ++i) {
    uint64_t at = random() % bytes;
    const auto in = std::find_if(all.begin(), all.end(), [&](const Code& code) {
      if (at < code.size) return true;
      at -= code.size;
      return false;
    });
    addresses.push_back(in->begin + at);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

// "0x1234", then for each call its function and "file:line (discriminator 3)", with question marks for what is unknown.
inline std::vector<Calls> ByAddr2line(const std::string& path, const std::vector<uint64_t>& addresses) {
  const TempFolder folder;
  std::string text;
  for (const uint64_t address : addresses) text += absl::StrFormat("%x\n", address);
  folder.Write("/addresses", text);
  std::istringstream lines(RunCommand("addr2line -a -i -f -e " + path + " < " + folder.path() + "/addresses").output);
  std::vector<Calls> all;
  for (std::string first, second; std::getline(lines, first);) {
    if (first.starts_with("0x")) {
      all.emplace_back();
      continue;
    }
    if (all.empty() || !std::getline(lines, second)) break;
    second = second.substr(0, second.find(" (discriminator"));
    const size_t colon = second.rfind(':');
    Call call{first == "??" ? "" : first, second.substr(0, colon),
              static_cast<uint32_t>(std::strtoul(second.c_str() + colon + 1, nullptr, 10))};
    if (call.file == "??") call.file = "";
    all.back().push_back(std::move(call));
  }
  return all;
}

// The same by llvm-symbolizer, which comes with clang; "" when it is not here.
inline std::string LlvmSymbolizer() {
  std::string path = RunCommand("command -v llvm-symbolizer || command -v llvm-symbolizer-14").output;
  return path.substr(0, path.find('\n'));
}
inline std::vector<Calls> ByLlvm(const std::string& path, const std::vector<uint64_t>& addresses) {
  const std::string program = LlvmSymbolizer();
  std::vector<Calls> all(addresses.size());
  if (program.empty()) return all;
  const TempFolder folder;
  std::string text;
  for (const uint64_t address : addresses) text += absl::StrFormat("0x%x\n", address);
  folder.Write("/addresses", text);
  const std::string command = program + " --no-demangle --obj=" + path + " < " + folder.path() + "/addresses";
  std::istringstream lines(RunCommand(command).output);
  size_t at = 0;
  for (std::string first, second; at < all.size() && std::getline(lines, first);) {
    if (first.empty()) {
      ++at;
      continue;
    }
    if (!std::getline(lines, second)) break;
    second = second.substr(0, second.rfind(':'));  // without the column
    const size_t colon = second.rfind(':');
    all[at].push_back(
        {first, second.substr(0, colon), static_cast<uint32_t>(std::strtoul(second.c_str() + colon + 1, nullptr, 10))});
  }
  return all;
}

constexpr uint64_t kLoadBias = 0x7f12'3400'0000;

inline Calls CallsAt(Symbolizer& symbolizer, uint64_t address) {
  Calls calls;
  for (const SourceFrame& frame : symbolizer.Inlined(symbolizer.Locate(1, kLoadBias + address))) {
    calls.push_back({std::string(frame.function), std::string(frame.file), frame.line});
  }
  return calls;
}

// What nm and the symbol table say, and what we say of the calls.
struct Answer {
  std::string symbol;
  Calls calls;
};
inline Answer AnswerAt(Symbolizer& symbolizer, uint64_t address) {
  const CodeLocation location = symbolizer.Locate(1, kLoadBias + address);
  return {std::string(symbolizer.Name(location).function), CallsAt(symbolizer, address)};
}

// The same calls. A function without a linkage name (static ones, lambdas, C) has a name in the DWARF and one in the
// symbol table. Of the last call we say the latter; addr2line says it of the first or of the last, or not at all.
inline bool Agree(const Answer& ours, const Calls& theirs) {
  if (ours.calls.size() != theirs.size()) return false;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const Call &our = ours.calls[i], &their = theirs[i];
    // A file without a line is from the symbol table, which names files of private symbols.
    const bool no_lines = our.file.empty() && our.line == 0 && their.line == 0;
    if (!no_lines && (our.file != their.file || our.line != their.line)) return false;
    if (our.function == their.function) continue;
    const bool first = i == 0 && their.function == ours.symbol,
               last = i + 1 == theirs.size() && our.function == ours.symbol;
    if (!first && !last) return false;
  }
  return true;
}

// The comparison with addr2line at locations of a file and, where they differ, with other readers of the same DWARF.
struct Agreement {
  size_t asked = 0, inlined = 0, lines = 0;
  size_t equal = 0;   // to addr2line
  size_t others = 0;  // not equal to addr2line, but to libdw or llvm-symbolizer
  std::string differences;
  double right() const { return asked == 0 ? 0 : static_cast<double>(equal + others) / static_cast<double>(asked); }
};

// `debug`: the file with the debug information, where that is another one, below `debug_root`.
inline Agreement HoldToOthers(const std::string& path, size_t count, const std::string& debug = "",
                              const std::string& debug_root = "") {
  const std::string oracle = debug.empty() ? path : debug;
  const std::vector<uint64_t> addresses = AddressesIn(oracle, count);
  const std::vector<Calls> expected = ByAddr2line(oracle, addresses);
  Agreement result;
  Symbolizer symbolizer({.demangle = false, .debug_root = debug_root, .lines = DwarfLines});
  MapCode(symbolizer, path, kLoadBias);
  const LibdwOracle libdw(oracle);
  std::vector<uint64_t> open;
  for (size_t i = 0; i < addresses.size() && expected.size() == addresses.size(); ++i) {
    const Answer answer = AnswerAt(symbolizer, addresses[i]);
    ++result.asked;
    result.inlined += answer.calls.size() > 1;
    result.lines += answer.calls[0].line > 0;
    if (Agree(answer, expected[i])) {
      ++result.equal;
    } else if (Agree(answer, libdw.CallsAt(addresses[i]))) {
      ++result.others;
    } else {
      open.push_back(addresses[i]);
    }
  }
  const std::vector<Calls> by_llvm = ByLlvm(oracle, open);
  for (size_t i = 0; i < open.size(); ++i) {
    const Answer answer = AnswerAt(symbolizer, open[i]);
    const bool agree = Agree(answer, by_llvm[i]);
    result.others += agree;
    if (agree || result.differences.size() > 4000) continue;
    result.differences +=
        absl::StrFormat("%s %x\n  llvm:\n%s  we:\n%s  addr2line:\n%s", path, open[i], Text(by_llvm[i]),
                        Text(answer.calls), Text(ByAddr2line(oracle, {open[i]})[0]));
  }
  return result;
}

}  // namespace perfkit::testing
