// A ring in ordinary memory, full of records, that can be read repeatedly. It has small pages, as the kernel's rings
// do.
#pragma once

#include <perfkit/sample.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class FilledRing {
 public:
  static constexpr uint32_t kFiller = 1000;  // An unknown type.

  // `size` bytes, a power of two, that begin within a record: record(i) returns the i-th record.
  template <class Make>
  FilledRing(size_t size, Make&& record) : page_(1), size_(size) {
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    madvise(memory, size, MADV_NOHUGEPAGE);
    data_ = static_cast<std::byte*>(memory);
    uint64_t at = kStart;
    for (uint64_t i = 0;; ++i) {
      const std::string bytes = record(i);
      if (at - kStart + bytes.size() > size) break;
      Put(at, bytes);
      at += bytes.size();
      ++records_;
    }
    // So that the ring holds a whole number of records; larger gaps take several.
    while (at - kStart < size) {
      const uint64_t header = uint64_t{std::min<uint64_t>(size - (at - kStart), 32768)} << 48 | kFiller;
      Put(at, {reinterpret_cast<const char*>(&header), sizeof(header)});
      at += header >> 48;
    }
    page().data_head = page().data_tail = kStart;
  }

  ~FilledRing() { munmap(data_, size_); }
  FilledRing(const FilledRing&) = delete;
  FilledRing& operator=(const FilledRing&) = delete;

  perfkit::UserPage& page() { return page_[0]; }
  perfkit::Bytes data() const { return {data_, size_}; }
  size_t records() const { return records_; }
  // As if the kernel had written all of it once more.
  void Refill() { __atomic_store_n(&page().data_head, page().data_head + size_, __ATOMIC_RELEASE); }

 private:
  static constexpr uint64_t kStart = uint64_t{0} - 24;  // The first record wraps.

  void Put(uint64_t at, std::string_view bytes) {
    for (const char byte : bytes) data_[at++ & (size_ - 1)] = static_cast<std::byte>(byte);
  }

  std::vector<perfkit::UserPage> page_;
  std::byte* data_ = nullptr;
  size_t size_;
  size_t records_ = 0;
};

}  // namespace bench
