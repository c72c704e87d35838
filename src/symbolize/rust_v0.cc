// A recursive descent parser of the grammar in RFC 2603, which prints the name while it reads. Names may be hostile:
// depth, steps and output are bounded, since a back reference may refer to any earlier part, which is then read and
// printed again. Parts that are not printed, as the path of an impl, are read with `silent_` set.
#include "src/symbolize/rust_v0.h"

#include <utility>

#include "src/base/number.h"

namespace perfkit::symbolize {
namespace {

constexpr int kMaxDepth = 200, kMaxSteps = 100'000;
constexpr size_t kMaxBytes = 16 << 10;

struct Basic {
  char letter;
  std::string_view name;
};
constexpr Basic kBasics[] = {{'a', "i8"},   {'b', "bool"},  {'c', "char"},  {'d', "f64"}, {'e', "str"}, {'f', "f32"},
                             {'h', "u8"},   {'i', "isize"}, {'j', "usize"}, {'l', "i32"}, {'m', "u32"}, {'n', "i128"},
                             {'o', "u128"}, {'p', "_"},     {'s', "i16"},   {'t', "u16"}, {'u', "()"},  {'v', "..."},
                             {'x', "i64"},  {'y', "u64"},   {'z', "!"}};

std::string_view BasicType(char letter) {
  for (const Basic& basic : kBasics) {
    if (basic.letter == letter) return basic.name;
  }
  return {};
}

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

// Counts the depth of nested rules.
struct RustV0::Nested {
  explicit Nested(RustV0& reader) : reader(reader) {
    if (++reader.depth_ > kMaxDepth || ++reader.steps_ > kMaxSteps) reader.Fail();
  }
  ~Nested() { --reader.depth_; }
  RustV0& reader;
};

// The crate that requested an instance may follow; it is not part of the name. Leading digits are a later version of
// the form.
std::optional<std::string> RustV0::Demangle() {
  if (IsDigit(Peek())) return std::nullopt;
  Path(true);
  if (failed_ || out_.empty()) return std::nullopt;
  if (const char next = Peek(); next >= 'A' && next <= 'Z') {
    silent_ = true;
    Path(false);
  }
  const bool ends = at_ >= text_.size() || Peek() == '.' || Peek() == '$';
  if (failed_ || !ends) return std::nullopt;
  return std::move(out_);
}

char RustV0::Take() {
  if (at_ >= text_.size()) return Fail(), '\0';
  return text_[at_++];
}

bool RustV0::Eat(char letter) {
  if (failed_ || Peek() != letter || letter == '\0') return false;
  ++at_;
  return true;
}

void RustV0::Print(std::string_view text) {
  if (failed_ || silent_) return;
  if (text.size() > kMaxBytes - out_.size()) return Fail();
  out_ += text;
}

// "_" is 0, "0_" is 1, ….
uint64_t RustV0::Base62() {
  if (Eat('_')) return 0;
  uint64_t value = 0;
  for (char letter = Take(); letter != '_' && !failed_; letter = Take()) {
    uint64_t digit = 0;
    if (IsDigit(letter)) {
      digit = static_cast<uint64_t>(letter - '0');
    } else if (letter >= 'a' && letter <= 'z') {
      digit = static_cast<uint64_t>(letter - 'a') + 10;
    } else if (letter >= 'A' && letter <= 'Z') {
      digit = static_cast<uint64_t>(letter - 'A') + 36;
    } else {
      return Fail(), 0;
    }
    if (value > (~uint64_t{0} - digit) / 62 - 1) return Fail(), 0;
    value = value * 62 + digit;
  }
  return value + 1;
}

uint64_t RustV0::OptionalBase62(char tag) { return Eat(tag) ? Base62() + 1 : 0; }

RustV0::Name RustV0::Identifier() {
  Name name;
  name.disambiguator = OptionalBase62('s');
  name.punycode = Eat('u');
  size_t size = 0;
  if (!IsDigit(Peek())) return Fail(), name;
  if (!Eat('0')) {
    while (IsDigit(Peek()) && size <= text_.size()) size = size * 10 + static_cast<size_t>(Take() - '0');
  }
  Eat('_');
  if (size > text_.size() - at_) return Fail(), name;
  name.text = text_.substr(at_, size);
  at_ += size;
  return name;
}

// Characters beyond ASCII are printed as they are encoded (RFC 3492).
void RustV0::PrintName(const Name& name) {
  if (name.punycode) Print("punycode{");
  Print(name.text);
  if (name.punycode) Print("}");
}

// Reads an earlier part of the name again.
template <class Parse>
void RustV0::BackReference(Parse&& parse) {
  // The tag 'B' itself: references go strictly backwards, so that they end.
  const size_t here = at_ - 1;
  const uint64_t target = Base62();
  if (failed_ || target >= here) return Fail();
  if (silent_) return;
  const size_t after = std::exchange(at_, static_cast<size_t>(target));
  parse();
  at_ = after;
}

// Reads a list up to "E" and prints it with commas. Returns the number of elements.
template <class Parse>
size_t RustV0::List(Parse&& parse) {
  size_t count = 0;
  while (!failed_ && !Eat('E')) {
    if (count++ > 0) Print(", ");
    parse();
  }
  return count;
}

void RustV0::Path(bool in_value) {
  const Nested nested(*this);
  if (failed_) return;
  switch (Take()) {
    case 'C': return PrintName(Identifier());
    case 'N': return NestedPath(in_value);
    case 'M':
      ImplPath();
      Print("<");
      Type();
      return Print(">");
    case 'X': ImplPath(); [[fallthrough]];
    case 'Y':
      Print("<");
      Type();
      Print(" as ");
      Path(false);
      return Print(">");
    case 'I':
      Path(in_value);
      Print(in_value ? "::<" : "<");
      List([this] { GenericArg(); });
      return Print(">");
    case 'B': return BackReference([this, in_value] { Path(in_value); });
    default: Fail();
  }
}

// Capital letters are items that the compiler made, such as closures and shims.
void RustV0::NestedPath(bool in_value) {
  const char space = Take();
  Path(in_value);
  const Name name = Identifier();
  if (space >= 'A' && space <= 'Z') {
    Print("::{");
    Print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
    if (!name.text.empty()) Print(":");
    PrintName(name);
    Print("#");
    Print(std::to_string(name.disambiguator));
    Print("}");
  } else if (space < 'a' || space > 'z') {
    Fail();
  } else if (!name.text.empty()) {
    Print("::");
    PrintName(name);
  }
}

// Where the impl is: not printed.
void RustV0::ImplPath() {
  OptionalBase62('s');
  const bool before = std::exchange(silent_, true);
  Path(false);
  silent_ = before;
}

void RustV0::GenericArg() {
  if (Eat('L')) return Lifetime(Base62());
  if (Eat('K')) return Const();
  Type();
}

// 0 is an omitted lifetime; other numbers count from the innermost binder.
void RustV0::Lifetime(uint64_t index) {
  if (index == 0) return Print("'_");
  if (index > bound_lifetimes_) return Fail();
  const uint64_t number = bound_lifetimes_ - index;
  const char name[] = {'\'', static_cast<char>(number < 26 ? 'a' + number : '_')};
  Print({name, 2});
  if (number >= 26) Print(std::to_string(number));
}

template <class Parse>
void RustV0::Binder(Parse&& parse) {
  const uint64_t count = OptionalBase62('G');
  if (count > 100) return Fail();
  if (count > 0) {
    Print("for<");
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0) Print(", ");
      ++bound_lifetimes_;
      Lifetime(1);
    }
    Print("> ");
  }
  parse();
  bound_lifetimes_ -= count;
}

void RustV0::Type() {
  const Nested nested(*this);
  if (failed_) return;
  if (const std::string_view basic = BasicType(Peek()); !basic.empty()) return ++at_, Print(basic);
  switch (Peek()) {
    case 'A':
    case 'S': {
      const bool sized = Take() == 'A';
      Print("[");
      Type();
      if (sized) Print("; ");
      if (sized) Const();
      return Print("]");
    }
    case 'T':
      Take();
      Print("(");
      if (List([this] { Type(); }) == 1) Print(",");
      return Print(")");
    case 'R':
    case 'Q': {
      const bool shared = Take() == 'R';
      Print("&");
      if (Eat('L')) {
        const uint64_t index = Base62();
        if (index != 0) Lifetime(index), Print(" ");
      }
      Print(shared ? "" : "mut ");
      return Type();
    }
    case 'P':
    case 'O': Print(Take() == 'P' ? "*const " : "*mut "); return Type();
    case 'F': Take(); return Binder([this] { FunctionType(); });
    case 'D': Take(); return DynType();
    case 'B': Take(); return BackReference([this] { Type(); });
    default: Path(false);
  }
}

void RustV0::FunctionType() {
  if (Eat('U')) Print("unsafe ");
  if (Eat('K')) {
    Print("extern \"");
    if (Eat('C')) {
      Print("C");
    } else {
      std::string abi(Identifier().text);
      for (char& letter : abi) letter = letter == '_' ? '-' : letter;
      Print(abi);
    }
    Print("\" ");
  }
  Print("fn(");
  List([this] { Type(); });
  Print(")");
  if (Eat('u')) return;  // The unit type, "()", is not printed.
  Print(" -> ");
  Type();
}

void RustV0::DynType() {
  Print("dyn ");
  Binder([this] {
    for (size_t i = 0; !failed_ && !Eat('E'); ++i) {
      if (i > 0) Print(" + ");
      DynTrait();
    }
  });
  if (!Eat('L')) return Fail();
  const uint64_t index = Base62();
  if (index != 0) Print(" + "), Lifetime(index);
}

// Leaves the generic arguments of a path open, so that associated types can be added to them. Returns true if there
// were any.
bool RustV0::PathWithOpenArgs() {
  const Nested nested(*this);
  if (failed_) return false;
  bool open = false;
  if (Eat('B')) {
    BackReference([&] { open = PathWithOpenArgs(); });
  } else if (Eat('I')) {
    Path(false);
    Print("<");
    List([this] { GenericArg(); });
    open = true;
  } else {
    Path(false);
  }
  return open;
}

void RustV0::DynTrait() {
  bool open = PathWithOpenArgs();
  while (Eat('p')) {
    Print(open ? ", " : "<");
    open = true;
    PrintName(Identifier());
    Print(" = ");
    Type();
  }
  if (open) Print(">");
}

// A type's letter and a hexadecimal number. Values of more than 64 bits are printed in hexadecimal.
void RustV0::Const() {
  const Nested nested(*this);
  if (failed_) return;
  if (Eat('B')) return BackReference([this] { Const(); });
  const char type = Take();
  if (type == 'p') return Print("_");
  if (Eat('n')) Print("-");
  const size_t begin = at_;
  while (!failed_ && Peek() != '_') Take();
  const std::string_view digits = text_.substr(begin, at_ - begin);
  if (!Eat('_')) return Fail();
  const std::optional<uint64_t> value = digits.empty() ? std::optional<uint64_t>(0) : base::ParseNumber(digits, 16);
  if (type == 'b') return Print(value == 1 ? "true" : "false");
  if (type == 'c' && value && *value >= 0x20 && *value < 0x7f) {
    const char letter[] = {'\'', static_cast<char>(*value), '\''};
    return Print({letter, 3});
  }
  if (BasicType(type).empty()) return Fail();  // Stable compilers do not write structs and the like.
  Print(value ? std::to_string(*value) : "0x" + std::string(digits));
}

}  // namespace perfkit::symbolize
