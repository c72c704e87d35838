// Feeds a fuzz target its seeds and thousands of mutations of them: the same ones in every run.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

namespace perfkit::testing {

using Target = int (*)(const uint8_t*, size_t);
using Seeds = std::vector<std::string>;

// One small change; what a fuzzer without coverage can do.
inline void Mutate(std::string& text, const Seeds& seeds, std::mt19937& random) {
  const size_t at = text.empty() ? 0 : random() % text.size();
  const std::string& other = seeds[random() % seeds.size()];
  switch (random() % 7) {
    case 0: text.insert(at, 1, static_cast<char>(random())); break;
    case 1: text.erase(at, 1 + random() % 4); break;
    case 2:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1u << random() % 8));
      break;
    case 3:
      if (!text.empty()) text[at] = "\0\xff\x7f,:/={}0-"[random() % 11];
      break;
    case 4: text.insert(at, other.substr(other.size() / 2, 1 + random() % 16)); break;
    case 5: text.replace(at, std::string::npos, other.substr(std::min(other.size(), at))); break;
    case 6: text.insert(at, text.substr(at, 8)); break;
  }
}

// Stops after `rounds` mutations, or `min_bytes` fed to the target, whichever comes last. Gives the bytes.
inline uint64_t Replay(Target target, const Seeds& seeds, int rounds, uint64_t min_bytes = 0,
                       uint32_t seed_of_all = 2026) {
  std::mt19937 random(seed_of_all);
  uint64_t fed = 0;
  const auto run = [&](const std::string& text) {
    // A copy of exactly that size, so that a sanitizer sees the byte after it.
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    if (target(bytes.data(), bytes.size()) != 0) FAIL("the target does not return 0");
    fed += bytes.size();
  };
  run("");
  for (const std::string& seed : seeds) run(seed);
  for (int round = 0; round < rounds || fed < min_bytes; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) Mutate(text, seeds, random);
    run(text);
  }
  CHECK(fed > 0);
  return fed;
}

}  // namespace perfkit::testing
