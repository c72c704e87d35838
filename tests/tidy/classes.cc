// Checks the sizes of classes: how many data members, and how many .cc files define their member functions.
//
// A class without functions that change it is a record: of the kernel's interface, options, results. It has no
// invariant, so a reader needs to know only the members that are used, and it may have any number of them.
#include "tests/tidy/classes.h"

#include <algorithm>
#include <regex>

#include "tests/tidy/declarations.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

constexpr size_t kDataMembers = 20, kCcFiles = 2;

using Kind = Declaration::Kind;
using Shapes = std::map<std::string, ClassShape>;

struct Text {
  const SourceFile& file;
  std::string skeleton;

  explicit Text(const SourceFile& source) : file(source), skeleton(Skeleton(source.text)) {}
  std::string_view Of(size_t begin, size_t end) const { return std::string_view(skeleton).substr(begin, end - begin); }
  std::string_view Head(const Declaration& declaration) const {
    return Of(declaration.begin, declaration.body_begin == 0 ? declaration.end : declaration.body_begin - 1);
  }
};

std::string Joined(const std::string& scope, const std::string& name) {
  return scope.empty() || name.empty() ? scope + name : scope + "::" + name;
}

std::string NamespaceName(std::string_view head) {
  static const std::regex kName(R"(namespace\s+([\w:]+))");
  std::match_results<std::string_view::const_iterator> match;
  return std::regex_search(head.begin(), head.end(), match, kName) ? match[1].str() : "";
}

// Returns "" for an anonymous class.
std::string ClassName(std::string_view head) {
  static const std::regex kName(
      R"((?:class|struct|union)\s+(?:\w+\s+)*?([\w:]+)\s*(?:<\s*>)?\s*(?:final\s*)?(?::[^:][\s\S]*)?\s*$)");
  std::match_results<std::string_view::const_iterator> match;
  return std::regex_search(head.begin(), head.end(), match, kName) ? match[1].str() : "";
}

// Returns the number of names that `text` declares, which begins after their type: "a, b = {1, 2}" is two.
size_t CountNames(std::string_view text) {
  size_t depth = 0, names = 1;
  for (const char c : text) {
    depth += c == '(' || c == '{' || c == '[';
    depth -= c == ')' || c == '}' || c == ']';
    names += c == ',' && depth == 0;
  }
  return names;
}

// Returns true if a function with this declaration can change its object: if it is neither const nor static.
bool CanChange(std::string_view head) {
  static const std::regex kConst(R"(\)\s*const\b)");
  return !HasWord(head, "friend") && !HasWord(head, "static") && !std::regex_search(head.begin(), head.end(), kConst);
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \n;") == std::string_view::npos; }

// Adds a declaration of class scope that has no body, or only initialisers.
void AddMember(std::string_view text, ClassShape& shape) {
  for (const char* word : {"using", "typedef", "friend", "static_assert", "static", "class", "union", "enum"}) {
    if (HasWord(text.substr(0, text.find_first_of("={")), word)) return;
  }
  static const std::regex kForward(R"(^(template <[^>]*>\s*)?struct\s+\w+\s*;)");
  if (std::regex_search(text.begin(), text.end(), kForward)) return;
  const std::string_view before = text.substr(0, text.find_first_of("={"));
  const size_t open = before.find('(');
  static const std::regex kPointer(R"(^\((\s*[\w:]+::)?\s*[*&])");
  const std::string_view parameters = open == std::string_view::npos ? "" : before.substr(open);
  const bool is_pointer = std::regex_search(parameters.begin(), parameters.end(), kPointer);
  if (HasWord(text, "operator") || (!parameters.empty() && !is_pointer)) {
    shape.is_record = shape.is_record && !CanChange(text);
  } else {
    shape.data_members += CountNames(text);
  }
}

ClassShape AddClass(const Text& text, const Declaration& declaration, const std::string& scope, Shapes& shapes) {
  ClassShape shape{.path = text.file.path, .line = LineAt(text.skeleton, declaration.begin)};
  const std::string name = ClassName(text.Head(declaration)), path = Joined(scope, name);
  for (const Declaration& member : Declarations(text.skeleton, declaration.body_begin, declaration.body_end)) {
    const std::string_view names = text.Of(std::min(member.body_end + 1, member.end), member.end);
    if (member.kind == Kind::kFunction) {
      shape.is_record = shape.is_record && !CanChange(text.Head(member));
    } else if (member.kind == Kind::kOther) {
      AddMember(text.Of(member.begin, member.end), shape);
    } else if (!IsBlank(names)) {
      shape.data_members += CountNames(names);
    }
    if (member.kind != Kind::kClass) continue;
    const ClassShape inner = AddClass(text, member, path, shapes);
    if (ClassName(text.Head(member)).empty() && IsBlank(names)) shape.data_members += inner.data_members;
  }
  if (!name.empty()) shapes[path] = shape;
  return shape;
}

// Visits the declarations of namespaces, with the namespace of each.
template <class Visit>
void ForEachDeclaration(const Text& text, size_t begin, size_t end, const std::string& scope, const Visit& visit) {
  for (const Declaration& declaration : Declarations(text.skeleton, begin, end)) {
    if (declaration.kind == Kind::kNamespace) {
      const std::string inner = Joined(scope, NamespaceName(text.Head(declaration)));
      ForEachDeclaration(text, declaration.body_begin, declaration.body_end, inner, visit);
    } else {
      visit(declaration, scope);
    }
  }
}

// Returns "A::B" of "int A::B::C(int) {" and of "A::B::operator bool()"; "" for functions that are no members.
std::string QualifierOf(std::string_view head) {
  static const std::regex kQualified(R"(((?:\w+(?:<\s*>)?::)+)(?:~?\w+|operator[^(]*)\s*\()");
  std::match_results<std::string_view::const_iterator> match;
  const std::string_view first = head.substr(0, std::min(head.find('('), head.size() - 1) + 1);
  if (!std::regex_search(first.begin(), first.end(), match, kQualified)) return "";
  std::string qualifier = std::regex_replace(match[1].str(), std::regex(R"(<\s*>)"), "");
  return qualifier.substr(0, qualifier.size() - 2);
}

// Finds the class that `qualifier` names within `scope`; nullptr if it names a namespace.
ClassShape* Resolve(std::string scope, const std::string& qualifier, Shapes& shapes) {
  while (true) {
    const auto found = shapes.find(Joined(scope, qualifier));
    if (found != shapes.end()) return &found->second;
    if (scope.empty()) return nullptr;
    const size_t last = scope.rfind("::");
    scope.resize(last == std::string::npos ? 0 : last);
  }
}

void AddDefinitions(const Text& text, Shapes& shapes) {
  const auto visit = [&](const Declaration& declaration, const std::string& scope) {
    const std::string_view whole = text.Of(declaration.begin, declaration.end);
    const bool defaulted = declaration.kind == Kind::kOther && HasWord(whole, "default");
    if (declaration.kind != Kind::kFunction && !defaulted) return;
    const std::string qualifier = QualifierOf(text.Head(declaration));
    if (qualifier.empty()) return;
    if (ClassShape* const shape = Resolve(scope, qualifier, shapes)) shape->cc_files.insert(text.file.path);
  };
  ForEachDeclaration(text, 0, text.skeleton.size(), "", visit);
}

void Limit(const std::string& name, const ClassShape& shape, const char* what, size_t is, size_t most,
           Findings& findings) {
  if (is <= most) return;
  findings.push_back({shape.path, shape.line,
                      "class " + name + " has " + std::to_string(is) + " " + what + "; at most " +
                          std::to_string(most) + " are allowed: split it by subject"});
}

}  // namespace

std::map<std::string, ClassShape> Classes(const Tree& tree) {
  std::vector<Text> texts;
  for (const SourceFile& file : tree) {
    if (IsCpp(file) && (IsIn(file, "src") || IsIn(file, "include"))) texts.emplace_back(file);
  }
  Shapes shapes;
  for (const Text& text : texts) {
    const auto visit = [&](const Declaration& declaration, const std::string& scope) {
      if (declaration.kind == Kind::kClass) AddClass(text, declaration, scope, shapes);
    };
    ForEachDeclaration(text, 0, text.skeleton.size(), "", visit);
  }
  for (const Text& text : texts) {
    if (text.file.path.ends_with(".cc")) AddDefinitions(text, shapes);
  }
  return shapes;
}

Findings CheckClasses(const Tree& tree) {
  Findings findings;
  for (const auto& [name, shape] : Classes(tree)) {
    if (!shape.is_record) Limit(name, shape, "data members", shape.data_members, kDataMembers, findings);
    Limit(name, shape, ".cc files", shape.cc_files.size(), kCcFiles, findings);
  }
  return findings;
}

}  // namespace perfkit::tidy
