// Demangles Rust's v0 names: RFC 2603, "Rust Symbol Name Mangling v0". The methods have the names of its grammar's
// rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfkit::symbolize {

class RustV0 {
 public:
  // `text` is the part of the name after "_R".
  explicit RustV0(std::string_view text) : text_(text) {}

  // Returns nullopt if it is not such a name, is nested too deeply, or exceeds 16 KiB: each back reference may double
  // it. Call it once.
  std::optional<std::string> Demangle();

 private:
  struct Nested;
  struct Name {
    std::string_view text;
    uint64_t disambiguator = 0;
    bool punycode = false;
  };

  // The reader's primitives. After Fail, all reads return nothing, and nothing is printed.
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

  // The rules of the grammar. Each reads its part of the name and prints it.
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
