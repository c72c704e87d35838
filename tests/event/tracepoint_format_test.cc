// Format files as kernels write them, and the raw data of their samples: numbers, texts, arrays, dynamic data.
#include <catch2/catch.hpp>

#include "perfkit/tracepoint.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using Storage = TracepointField::Storage;

// Linux 6.18, x86-64.
constexpr std::string_view kSchedSwitch = R"(name: sched_switch
ID: 264
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s", REC->prev_comm, REC->prev_pid
)";

constexpr std::string_view kOdd = R"(name: odd
ID: 9
format:
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
	field:__rel_loc u32[] values;	offset:12;	size:4;	signed:0;
	field:unsigned long args[3];	offset:16;	size:24;	signed:0;
	field:short deltas[2];	offset:40;	size:4;	signed:1;
	field:const char * ptr;	offset:44;	size:8;	signed:0;
	field:u8 mac[ETH_ALEN];	offset:52;	size:6;	signed:0;
	field:unsigned long caller[];	offset:64;	size:0;	signed:0;
)";

Bytes Of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_CASE("sched_switch", "[tracepoint]") {
  const auto format = TracepointFormat::Parse(kSchedSwitch);
  REQUIRE(format.ok());
  CHECK(format->name() == "sched_switch");
  CHECK(format->id() == 264);
  REQUIRE(format->fields().size() == 11);
  CHECK(format->fields()[3].is_common);
  const TracepointField* const prev = format->Find("prev_comm");
  REQUIRE(prev != nullptr);
  CHECK((prev->type == "char" && prev->is_text && prev->element_size == 1 && prev->storage == Storage::kStatic));
  CHECK(format->Find("missing") == nullptr);

  testing::RecordBuilder raw;
  raw.U16(264).U16(0).U32(77).Raw(std::string("worker\0garbage!!", 16)).U32(77).U32(120).U64(-1);
  raw.Raw("sixteen_letters!").U32(static_cast<uint32_t>(-5)).U32(99).U32(0);
  const Bytes bytes = Of(raw.bytes());
  CHECK(prev->Text(bytes) == "worker");
  CHECK(format->Find("next_comm")->Text(bytes) == "sixteen_letters!");
  CHECK(format->Find("prev_pid")->Signed(bytes) == 77);
  CHECK(format->Find("next_pid")->Signed(bytes) == -5);
  CHECK(format->Find("prev_state")->Signed(bytes) == -1);
  CHECK(format->Find("common_type")->Unsigned(bytes) == 264u);
  CHECK(!format->Find("prev_pid")->Text(bytes));
  CHECK(prev->Signed(bytes, 0) == 'w');
  CHECK(!prev->Signed(bytes, 16));
}

TEST_CASE("dynamic data, relative data, arrays and pointers", "[tracepoint]") {
  const auto format = TracepointFormat::Parse(kOdd);
  REQUIRE(format.ok());
  testing::RecordBuilder raw;
  raw.U64(0).U32(6 << 16 | 80).U32(8 << 16 | (88 - 16)).U64(1).U64(2).U64(~uint64_t{0});
  raw.U16(7).U16(-7).U64(0xffff'8000'0000'0001).Raw("mac_12").Raw("pad_56").U64(11).U64(12);
  raw.Raw(std::string("a.txt\0..", 8)).U32(1000).U32(2000);
  const Bytes bytes = Of(raw.bytes());
  REQUIRE(bytes.size() == 96);
  const TracepointField* const file = format->Find("filename");
  CHECK((file->storage == Storage::kDynamic && file->is_text && file->type == "char"));
  CHECK(file->Text(bytes) == "a.txt");
  const TracepointField* const values = format->Find("values");
  CHECK((values->storage == Storage::kRelative && values->element_size == 4 && !values->is_text));
  REQUIRE(values->Count(bytes) == 2);
  CHECK(values->Unsigned(bytes, 1) == 2000u);
  CHECK(!values->Unsigned(bytes, 2));
  const TracepointField* const args = format->Find("args");
  CHECK(args->element_size == 8);
  REQUIRE(args->Count(bytes) == 3);
  CHECK(args->Unsigned(bytes, 2) == ~uint64_t{0});
  CHECK(format->Find("deltas")->Signed(bytes, 1) == -7);
  CHECK(format->Find("ptr")->Unsigned(bytes) == 0xffff'8000'0000'0001u);
  CHECK(format->Find("ptr")->type == "const char *");
  const TracepointField* const mac = format->Find("mac");
  CHECK((mac->is_array && mac->element_size == 1 && mac->Count(bytes) == 6));
  CHECK(mac->Text(bytes) == "mac_12");
  // An array without a size takes all that is left.
  CHECK(format->Find("caller")->Unsigned(bytes, 1) == 12u);
}

TEST_CASE("a mask of CPUs is an array of words, although it is declared without brackets", "[tracepoint]") {
  const auto format = TracepointFormat::Parse(
      "name: ipi_send_cpumask\nID: 1\nformat:\n"
      "\tfield:__data_loc cpumask_t cpumask;\toffset:8;\tsize:4;\tsigned:0;\n");
  REQUIRE(format.ok());
  testing::RecordBuilder raw;
  raw.U64(0).U32(16 << 16 | 16).U32(0).U64(uint64_t{1} << 40).U64(3);
  const TracepointField* const mask = format->Find("cpumask");
  REQUIRE(mask != nullptr);
  CHECK((mask->is_array && !mask->is_text && mask->element_size == 8));
  REQUIRE(mask->Count(Of(raw.bytes())) == 2);
  CHECK(mask->Unsigned(Of(raw.bytes())) == uint64_t{1} << 40);
  CHECK(mask->Unsigned(Of(raw.bytes()), 1) == 3u);
}

TEST_CASE("data that is too short, or points outside, has no values", "[tracepoint][corrupt]") {
  const auto format = TracepointFormat::Parse(kOdd);
  REQUIRE(format.ok());
  for (size_t size = 0; size < 96; ++size) {
    const std::string raw(size, '\xff');  // every length and offset at its largest
    for (const TracepointField& field : format->fields()) {
      const std::optional<Bytes> data = field.Data(Of(raw));
      CHECK((!data || data->size() <= size));
      CHECK((data.has_value() || !field.Text(Of(raw))));
      CHECK(field.Count(Of(raw)) <= size);
      field.Signed(Of(raw), 1);
    }
    CHECK(!format->Find("filename")->Text(Of(raw)));
    CHECK(!format->Find("values")->Unsigned(Of(raw)));
  }
}

TEST_CASE("what is no format file is refused with the line", "[tracepoint]") {
  const auto error_of = [](std::string_view text) {
    const auto format = TracepointFormat::Parse(text);
    CHECK(!format.ok());
    return std::string(format.status().message());
  };
  CHECK(error_of("").find("the name or the fields are missing") != std::string::npos);
  CHECK(error_of("name: x\nID: 1\n").find("the name or the fields are missing") != std::string::npos);
  CHECK(error_of("name: x\nID: many\n\tfield:int a; offset:0; size:4; signed:1;\n").find("ID is not a number") !=
        std::string::npos);
  const std::string prefix = "name: x\nID: 1\n";
  for (const char* line : {"\tfield:int a;\toffset:0;\tsigned:1;", "\tfield:int;\toffset:0;\tsize:4;",
                           "\tfield:int a;\toffset:-8;\tsize:4;", "\tfield:int a;\toffset:99999999999;\tsize:4;",
                           "\tfield:__data_loc char[] a;\toffset:8;\tsize:8;", "\tfield:;\toffset:8;\tsize:8;"}) {
    INFO(line);
    CHECK(error_of(prefix + line).find("field:") != std::string::npos);
    CHECK(error_of(prefix + line).find("Remedy") != std::string::npos);
  }
}

}  // namespace
}  // namespace perfkit
