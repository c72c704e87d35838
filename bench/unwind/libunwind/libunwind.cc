// libunwind, as for another process: it reads from the sample and from mapped files, and keeps what it has decoded.
#include <libunwind.h>

#include "bench/unwind/contender.h"
#include "bench/unwind/mapped_module.h"
#include "bench/unwind/sampled_thread.h"

// Exported by libunwind-<machine>, but declared in none of its headers. perf declares it in the same way
// (tools/perf/util/unwind-libunwind-local.c).
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
extern "C" int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t* table, unw_proc_info_t* info,
                                   int need_unwind_info, void* argument);

namespace bench {
namespace {

class LibunwindContender : public OneByOne {
 public:
  explicit LibunwindContender(const Capture& capture)
      : modules_(ModulesOf(capture)), space_(unw_create_addr_space(&accessors_, 0), unw_destroy_addr_space) {
    for (const MappedModule& module : modules_) {
      tables_.push_back({module.begin(), module.end(), &module, TableOf(module)});
    }
    unw_set_caching_policy(space_.get(), UNW_CACHE_GLOBAL);
    unw_set_cache_size(space_.get(), kCachedRows, 0);
  }

  std::string error() const override { return space_ != nullptr ? "" : "libunwind makes no address space"; }

 protected:
  size_t One(const perfkit::Sample& sample) override {
    const SampledThread thread(sample);
    thread_ = &thread;
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, space_.get(), this) != 0) return 0;
    size_t frames = 0;
    do {
      unw_word_t pc = 0;
      if (unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0 || pc == 0) break;
      pcs_[frames++] = pc;
    } while (frames < kMaxFrames && unw_step(&cursor) > 0);
    return frames;
  }

 private:
  static constexpr size_t kCachedRows = 8192;  // The default is 128.

  static int FindProcInfo(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info,
                          void* into) {
    const ModuleTable* const entry = static_cast<LibunwindContender*>(into)->TableAt(ip);
    if (entry == nullptr || entry->table.u.rti.table_len == 0) return -UNW_ENOINFO;
    unw_dyn_info_t table = entry->table;
    return search_unwind_table(space, ip, &table, info, need_unwind_info, into);
  }
  static int AccessMemory(unw_addr_space_t, unw_word_t address, unw_word_t* word, int write, void* into) {
    auto& self = *static_cast<LibunwindContender*>(into);
    uint64_t value = 0;
    if (write != 0) return -UNW_EINVAL;
    if (!self.thread_->stack.Read(address, value)) {
      const ModuleTable* const entry = self.TableAt(address);
      const std::span<const std::byte> bytes =
          entry == nullptr ? std::span<const std::byte>() : entry->module->At(address);
      if (bytes.size() < sizeof(value)) return -UNW_EINVAL;
      std::memcpy(&value, bytes.data(), sizeof(value));
    }
    *word = value;
    return 0;
  }
  static int AccessRegister(unw_addr_space_t, unw_regnum_t number, unw_word_t* word, int write, void* into) {
    // Its register numbers are DWARF's, on both machines.
    const auto value = static_cast<LibunwindContender*>(into)->thread_->registers.Get(static_cast<uint64_t>(number));
    if (write != 0 || !value) return -UNW_EBADREG;
    *word = *value;
    return 0;
  }
  static void PutUnwindInfo(unw_addr_space_t, unw_proc_info_t*, void*) {}
  static int NoDynamicInfo(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }
  static int NoFloat(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
  static int NoResume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
  static int NoName(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) { return -UNW_EINVAL; }

  struct ModuleTable {
    uint64_t begin, end;
    const MappedModule* module;
    unw_dyn_info_t table;  // The linker's search table; its size is 0 if there is none.
  };

  // Tries the last one first: the words of a table are read one after the other.
  const ModuleTable* TableAt(uint64_t address) {
    if (last_ != nullptr && address >= last_->begin && address < last_->end) return last_;
    const auto after = std::upper_bound(tables_.begin(), tables_.end(), address,
                                        [](uint64_t wanted, const ModuleTable& entry) { return wanted < entry.begin; });
    if (after == tables_.begin() || address >= (after - 1)->end) return nullptr;
    return last_ = &*(after - 1);
  }

  // The form that linkers write: version 1, pointers of four bytes, and after the count a table of pairs of them.
  static unw_dyn_info_t TableOf(const MappedModule& module) {
    constexpr size_t kCountAt = 8, kPairsAt = 12, kPairBytes = 8;
    unw_dyn_info_t table{};
    table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    table.start_ip = module.begin();
    table.end_ip = module.end();
    for (const GElf_Phdr& segment : module.segments) {
      const uint64_t header = module.bias + segment.p_vaddr;
      const std::span<const std::byte> bytes = module.At(header);
      if (segment.p_type != PT_GNU_EH_FRAME || bytes.size() < kPairsAt) continue;
      uint32_t count = 0;
      std::memcpy(&count, bytes.data() + kCountAt, sizeof(count));
      table.u.rti.segbase = header;
      table.u.rti.table_data = header + kPairsAt;
      table.u.rti.table_len = count * kPairBytes / sizeof(unw_word_t);
    }
    return table;
  }

  unw_accessors_t accessors_{.find_proc_info = FindProcInfo,
                             .put_unwind_info = PutUnwindInfo,
                             .get_dyn_info_list_addr = NoDynamicInfo,
                             .access_mem = AccessMemory,
                             .access_reg = AccessRegister,
                             .access_fpreg = NoFloat,
                             .resume = NoResume,
                             .get_proc_name = NoName};
  const std::vector<MappedModule> modules_;
  std::vector<ModuleTable> tables_;
  const ModuleTable* last_ = nullptr;
  const std::unique_ptr<std::remove_pointer_t<unw_addr_space_t>, void (*)(unw_addr_space_t)> space_;
  const SampledThread* thread_ = nullptr;  // That of One, which is running.
};

}  // namespace

std::unique_ptr<Contender> MakeLibunwind(const Capture& capture) {
  return std::make_unique<LibunwindContender>(capture);
}

}  // namespace bench
