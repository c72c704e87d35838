// The declarations of C++ text at namespace and class scope: what opens, what it is, and where its body is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perfkit::tidy {

struct Declaration {
  // kOther: variables, data members, aliases, and functions that are only declared.
  enum class Kind { kNamespace, kClass, kEnum, kFunction, kOther };
  Kind kind;
  size_t begin, end;            // From its first character to after its `;` or its body.
  size_t body_begin, body_end;  // Between the braces; both 0 if there is no body.
};

// Returns C++ `text` with all as blanks that only hinders the search for declarations: comments, contents of literals,
// preprocessor lines, attributes, template arguments, subscripts. Each offset stays the same.
std::string Skeleton(std::string_view text);

// Returns the declarations of the scope from `begin` to `end` of a skeleton, apart from those of scopes inside.
std::vector<Declaration> Declarations(std::string_view skeleton, size_t begin, size_t end);

// Returns true if `word` stands in `text`, not as a part of another word.
bool HasWord(std::string_view text, std::string_view word);

}  // namespace perfkit::tidy
