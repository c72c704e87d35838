// Reads Rust's v0 mangling: RFC 2603, "Rust Symbol Name Mangling v0", whose grammar the functions are named after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfkit::symbolize {

class RustV0 {
 public:
  // `text`: what stands after "_R".
  explicit RustV0(std::string_view text) : text_(text) {}

  // Once. Nothing when it is no such name, is nested deeper than any program, or stands for more than 16 KiB: back
  // references may double it each time.
  std::optional<std::string> Demangle();

 private:
  struct Nested;
  struct Name {
    std::string_view text;
    uint64_t disambiguator = 0;
    bool punycode = false;
  };

  void Fail() { failed_ = true; }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Take();
  bool Eat(char letter);
  void Print(std::string_view text);
  uint64_t Base62();
  uint64_t OptionalBase62(char tag);
  Name Identifier();
  void PrintName(const Name& name);
  template <class Parse>
  void BackReference(Parse&& parse);
  template <class Parse>
  size_t List(Parse&& parse);

  void Path(bool in_value);
  void NestedPath(bool in_value);
  void ImplPath();
  void GenericArg();
  void Type();
  void FunctionType();
  void DynType();
  void DynTrait();
  bool PathWithOpenArgs();
  void Const();
  void Lifetime(uint64_t index);
  template <class Parse>
  void Binder(Parse&& parse);

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  int depth_ = 0, steps_ = 0;
  uint64_t bound_lifetimes_ = 0;
  bool failed_ = false, silent_ = false;
};

}  // namespace perfkit::symbolize
