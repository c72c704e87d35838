// The record of a live stack: PERF_RECORD_CALLCHAIN_DEFERRED, as the kernel writes it for user stacks that follow their
// samples, with additional words after the chain. A reader of the kernel's record can read it, too.
//
//   header | cookie | n + 1 | PERF_CONTEXT_USER | n pcs | state | marks: 2 bits for each pc | trailer of the layout
//
// Source of the kernel's part: include/uapi/linux/perf_event.h, since Linux 6.19.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perfkit::sample {

struct LiveRecord {
  static constexpr uint64_t kUserContext = static_cast<uint64_t>(-512);
  static constexpr uint16_t kMisc = 2;  // PERF_RECORD_MISC_USER
  static constexpr size_t kFixedWords = 5;
  static constexpr size_t kMarksAWord = 32;
  static constexpr uint64_t kReturnAddress = 1, kGuess = 2;  // The marks of a pc.
  // The size of a record has 16 bits (perf_event_header): this many frames always fit.
  static constexpr uint32_t kMaxFrames = 7900;

  static constexpr size_t MarkWords(size_t pcs) { return (pcs + kMarksAWord - 1) / kMarksAWord; }
  // Returns the size of a record.
  static constexpr size_t Bytes(size_t pcs, size_t trailer_bytes) {
    return 8 * (kFixedWords + pcs + MarkWords(pcs)) + trailer_bytes;
  }

  // The state word: why unwinding stopped (8 bits), the number of frames that were left out (24 bits, of which the
  // walk uses 17), the number of guesses, and that of outermost frames after those that were left out (16 bits each).
  static constexpr uint64_t State(uint8_t end, uint32_t guesses, uint32_t omitted = 0, uint32_t outer = 0) {
    return uint64_t{outer} << 48 | uint64_t{guesses} << 32 | uint64_t{omitted} << 8 | end;
  }
  static constexpr uint8_t EndOf(uint64_t state) { return static_cast<uint8_t>(state); }
  static constexpr uint32_t OmittedOf(uint64_t state) { return static_cast<uint32_t>(state >> 8 & 0xff'ffff); }
  static constexpr uint32_t GuessesOf(uint64_t state) { return static_cast<uint32_t>(state >> 32 & 0xffff); }
  static constexpr uint32_t OuterOf(uint64_t state) { return static_cast<uint32_t>(state >> 48); }
};

}  // namespace perfkit::sample
