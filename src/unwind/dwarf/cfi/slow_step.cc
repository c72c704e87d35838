// Recovers each register by its recipe: DWARF 5, 6.4.1 and 6.4.3. This is the step for what a Rule can't say:
// expressions, a CFA in another register than sp and fp. A register that can't be recovered is unknown from there on;
// that ends the walk only when a later frame needs it.
#include "src/unwind/dwarf/cfi/slow_step.h"

#include "src/unwind/dwarf/cfi/expression.h"
#include "src/unwind/own_stack_reader.h"

namespace perfkit::unwind {
namespace {

// The step of one frame.
template <class Machine, class Stack>
class SlowStepper {
 public:
  SlowStepper(const CfiRow& row, const Stack& stack, uint64_t bias, const FullRegisters& callee)
      : row_(row), stack_(stack), callee_(callee), bias_(bias) {}

  bool Run(FullRegisters& caller, StackEnd& why) {
    // On aarch64 the return address has the column of the link register; a CIE may name any other.
    const unsigned column = row_.return_register < CfiRow::kRegisters ? row_.return_register : Machine::kPc;
    const Recipe comes_back = row_.Of(column);
    if (comes_back.how == Recovery::kUndefined) return why = StackEnd::kRoot, false;
    cfa_ = Cfa();
    if (!cfa_) return why = why_, false;
    for (unsigned i = 0; i < Machine::kRegisters; ++i) caller.Set(i, Recover(i, row_.Of(i)));
    std::optional<uint64_t> pc = column == Machine::kPc ? caller.Get(column) : Recover(column, comes_back);
    // A return address that was not saved is still in its register. The next call overwrites that, so it is valid in
    // the innermost frame only.
    if (comes_back.how == Recovery::kUnspecified && callee_.interrupted && Machine::kLinkRegister) {
      pc = callee_.Get(column);
    }
    if (!pc) return why = why_, false;
    if (row_.Of(Machine::kSp).how == Recovery::kUnspecified) caller.Set(Machine::kSp, cfa_);
    caller.Set(Machine::kPc, Machine::CodeAddress(*pc));
    caller.interrupted = row_.signal_frame;
    const bool in_memory = comes_back.how == Recovery::kAtOffset || comes_back.how == Recovery::kAtExpression;
    return Progresses(caller, !in_memory, why);
  }

 private:
  // `in_register`: the return address is in a register. Only then may a frame, the innermost one, have no stack.
  bool Progresses(const FullRegisters& caller, bool in_register, StackEnd& why) const {
    if (row_.signal_frame) return true;
    const uint64_t below = callee_.ValueOr0(Machine::kSp), sp = caller.ValueOr0(Machine::kSp);
    const bool may_stay = in_register && callee_.interrupted;
    if (sp < below || (sp == below && !may_stay)) return why = StackEnd::kNoProgress, false;
    return !IsZeroCaller(StateOf<Machine>(caller)) || (why = StackEnd::kRoot, false);
  }

  std::optional<uint64_t> Cfa() {
    switch (row_.cfa.how) {
      case Recovery::kRegister: {
        const std::optional<uint64_t> base = callee_.Get(row_.cfa.number);
        return base ? std::optional(*base + static_cast<uint64_t>(row_.cfa.value)) : std::nullopt;
      }
      case Recovery::kExpression: return Evaluated(row_.cfa, std::nullopt);
      default: return std::nullopt;
    }
  }

  std::optional<uint64_t> Recover(unsigned number, const Recipe& recipe) {
    const auto value = static_cast<uint64_t>(recipe.value);
    switch (recipe.how) {
      case Recovery::kUnspecified: return (Machine::kPreserved >> number & 1) != 0 ? callee_.Get(number) : std::nullopt;
      case Recovery::kUndefined: return std::nullopt;
      case Recovery::kSame: return callee_.Get(number);
      case Recovery::kAtOffset: return Saved(number, *cfa_ + value);
      case Recovery::kOffset: return *cfa_ + value;
      case Recovery::kRegister: return callee_.Get(recipe.number);
      case Recovery::kAtExpression: {
        const std::optional<uint64_t> address = Evaluated(recipe, cfa_);
        return address ? Saved(number, *address) : std::nullopt;
      }
      case Recovery::kExpression: return Evaluated(recipe, cfa_);
    }
    return std::nullopt;
  }

  // The innermost frame's saved registers are between its sp and its CFA. An address elsewhere means that an epilogue
  // has already restored the register: either its slot is now below sp, or it is relative to fp (g++ writes that for
  // frames that realign the stack), and fp is already the caller's, which points further up.
  std::optional<uint64_t> Saved(unsigned number, uint64_t address) {
    const bool outside = address < callee_.ValueOr0(Machine::kSp) || address >= *cfa_;
    if (callee_.interrupted && !row_.signal_frame && outside) return callee_.Get(number);
    return Word(address, 8);
  }

  std::optional<uint64_t> Word(uint64_t address, unsigned size) {
    const std::optional<uint64_t> word = stack_.ReadPart(address, size);
    if (!word) why_ = stack_.Missing(address, callee_.interrupted && !stack_.Holds(callee_.ValueOr0(Machine::kSp)));
    return word;
  }

  std::optional<uint64_t> Evaluated(const Recipe& recipe, std::optional<uint64_t> initial) {
    const auto memory = [this](uint64_t address, unsigned size) { return Word(address, size); };
    const auto reg = [this](uint64_t number) { return callee_.Get(number); };
    return Evaluate(row_.Expression(recipe), initial, {.memory = memory, .reg = reg, .cfa = cfa_, .bias = bias_});
  }

  const CfiRow& row_;
  const Stack& stack_;
  const FullRegisters& callee_;
  const uint64_t bias_;
  std::optional<uint64_t> cfa_;
  StackEnd why_ = StackEnd::kUnreadable;
};

}  // namespace

template <class Machine, class Stack>
bool SlowStep(const CfiRow& row, const Stack& stack, uint64_t bias, FullRegisters& registers, StackEnd& why) {
  FullRegisters caller;
  if (!SlowStepper<Machine, Stack>(row, stack, bias, registers).Run(caller, why)) return false;
  registers = caller;
  return true;
}

template bool SlowStep<X86_64>(const CfiRow&, const StackBytes&, uint64_t, FullRegisters&, StackEnd&);
template bool SlowStep<Aarch64>(const CfiRow&, const StackBytes&, uint64_t, FullRegisters&, StackEnd&);
template bool SlowStep<ThisMachine>(const CfiRow&, const OwnStackReader&, uint64_t, FullRegisters&, StackEnd&);

}  // namespace perfkit::unwind
