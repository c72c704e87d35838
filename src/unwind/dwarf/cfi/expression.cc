// Evaluates DWARF expressions with a stack machine: one step executes one opcode. Only the opcodes that DWARF 5, 6.4.2
// allows in call frame information are accepted. Each opcode checks the depth of the stack before it pops or pushes,
// the reader checks operands against the bytes, and loops end after kMaxSteps, so a hostile expression has no result
// instead of an effect.
#include "src/unwind/dwarf/cfi/expression.h"

#include <dwarf.h>

#include <algorithm>
#include <array>

#include "src/base/dwarf_reader.h"

namespace perfkit::unwind {
namespace {

// The longest expression in real files has 11 operations and a depth of 3.
constexpr int kMaxSteps = 1000;
constexpr size_t kDeepest = 64;

class Evaluator {
 public:
  Evaluator(base::Bytes expression, const ExpressionWorld& world)
      : expression_(expression), reader_(expression), world_(world) {}

  std::optional<uint64_t> Run(std::optional<uint64_t> initial) {
    if (initial) Push(*initial);
    for (int steps = 0; !reader_.done(); ++steps) {
      if (steps == kMaxSteps || !Step(reader_.Fixed<uint8_t>()) || !reader_.ok()) return std::nullopt;
    }
    if (depth_ == 0) return std::nullopt;
    return stack_[depth_ - 1];
  }

 private:
  bool Step(uint8_t op);
  bool StepConstant(uint8_t op);
  bool StepStack(uint8_t op);
  bool StepUnary(uint8_t op);
  bool StepBinary(uint8_t op);
  bool StepJump(uint8_t op);
  bool StepCompare(uint8_t op, int64_t left, int64_t right);
  bool PushRegister(uint64_t number, int64_t offset);
  bool PushMemory(unsigned size);
  bool Divide(uint8_t op, uint64_t left, uint64_t right);

  bool Push(uint64_t value) {
    if (depth_ == kDeepest) return false;
    stack_[depth_++] = value;
    return true;
  }
  bool Has(size_t values) const { return depth_ >= values; }
  uint64_t Pop() { return stack_[--depth_]; }
  // Counts from the top, which is 0.
  uint64_t& Top(size_t below = 0) { return stack_[depth_ - 1 - below]; }

  base::Bytes expression_;
  base::DwarfReader reader_;
  const ExpressionWorld& world_;
  size_t depth_ = 0;
  std::array<uint64_t, kDeepest> stack_;
};

bool Evaluator::Step(uint8_t op) {
  if (op >= DW_OP_lit0 && op <= DW_OP_lit31) return Push(op - DW_OP_lit0);
  if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return PushRegister(op - DW_OP_breg0, reader_.Sleb());
  switch (op) {
    case DW_OP_nop: return true;
    case DW_OP_bregx: {
      const uint64_t number = reader_.Uleb();
      return PushRegister(number, reader_.Sleb());
    }
    case DW_OP_call_frame_cfa: return world_.cfa && Push(*world_.cfa);
    case DW_OP_skip:
    case DW_OP_bra: return StepJump(op);
    case DW_OP_dup:
    case DW_OP_drop:
    case DW_OP_over:
    case DW_OP_pick:
    case DW_OP_swap:
    case DW_OP_rot: return StepStack(op);
    case DW_OP_deref:
    case DW_OP_deref_size:
    case DW_OP_abs:
    case DW_OP_neg:
    case DW_OP_not:
    case DW_OP_plus_uconst: return StepUnary(op);
    default: return op >= DW_OP_abs && op <= DW_OP_ne ? StepBinary(op) : StepConstant(op);
  }
}

bool Evaluator::StepConstant(uint8_t op) {
  switch (op) {
    case DW_OP_addr: return Push(reader_.Fixed<uint64_t>() + world_.bias);
    case DW_OP_const1u: return Push(reader_.Fixed<uint8_t>());
    case DW_OP_const1s: return Push(static_cast<uint64_t>(int64_t{reader_.Fixed<int8_t>()}));
    case DW_OP_const2u: return Push(reader_.Fixed<uint16_t>());
    case DW_OP_const2s: return Push(static_cast<uint64_t>(int64_t{reader_.Fixed<int16_t>()}));
    case DW_OP_const4u: return Push(reader_.Fixed<uint32_t>());
    case DW_OP_const4s: return Push(static_cast<uint64_t>(int64_t{reader_.Fixed<int32_t>()}));
    case DW_OP_const8u:
    case DW_OP_const8s: return Push(reader_.Fixed<uint64_t>());
    case DW_OP_constu: return Push(reader_.Uleb());
    case DW_OP_consts: return Push(static_cast<uint64_t>(reader_.Sleb()));
    default: return false;  // Not allowed: other address spaces, calls, objects in pieces, thread-local data.
  }
}

bool Evaluator::StepStack(uint8_t op) {
  const size_t pick = op == DW_OP_pick ? reader_.Fixed<uint8_t>() : op == DW_OP_over ? 1 : 0;
  const size_t needed = op == DW_OP_swap ? 2 : op == DW_OP_rot ? 3 : pick + 1;
  if (!Has(needed)) return false;
  switch (op) {
    case DW_OP_drop: Pop(); return true;
    case DW_OP_swap: std::swap(Top(), Top(1)); return true;
    case DW_OP_rot:  // The top becomes the third.
      std::swap(Top(), Top(1));
      std::swap(Top(1), Top(2));
      return true;
    default: return Push(Top(pick));
  }
}

bool Evaluator::StepUnary(uint8_t op) {
  if (!Has(1)) return false;
  switch (op) {
    case DW_OP_deref: return PushMemory(sizeof(uint64_t));
    case DW_OP_deref_size: return PushMemory(reader_.Fixed<uint8_t>());
    case DW_OP_abs: Top() = static_cast<int64_t>(Top()) < 0 ? -Top() : Top(); return true;
    case DW_OP_neg: Top() = -Top(); return true;
    case DW_OP_not: Top() = ~Top(); return true;
    default: Top() += reader_.Uleb(); return true;
  }
}

// `left` was pushed first.
bool Evaluator::StepBinary(uint8_t op) {
  if (!Has(2)) return false;
  const uint64_t right = Pop(), left = Pop();
  switch (op) {
    case DW_OP_and: return Push(left & right);
    case DW_OP_or: return Push(left | right);
    case DW_OP_xor: return Push(left ^ right);
    case DW_OP_plus: return Push(left + right);
    case DW_OP_minus: return Push(left - right);
    case DW_OP_mul: return Push(left * right);
    case DW_OP_div:
    case DW_OP_mod: return Divide(op, left, right);
    case DW_OP_shl: return Push(right < 64 ? left << right : 0);
    case DW_OP_shr: return Push(right < 64 ? left >> right : 0);
    case DW_OP_shra: return Push(static_cast<uint64_t>(static_cast<int64_t>(left) >> std::min<uint64_t>(right, 63)));
    default: return StepCompare(op, static_cast<int64_t>(left), static_cast<int64_t>(right));
  }
}

bool Evaluator::StepCompare(uint8_t op, int64_t left, int64_t right) {
  switch (op) {
    case DW_OP_eq: return Push(left == right);
    case DW_OP_ge: return Push(left >= right);
    case DW_OP_gt: return Push(left > right);
    case DW_OP_le: return Push(left <= right);
    case DW_OP_lt: return Push(left < right);
    case DW_OP_ne: return Push(left != right);
    default: return false;
  }
}

// Division is signed, the remainder unsigned, as in other implementations. The lowest number divided by -1 is itself,
// without a trap.
bool Evaluator::Divide(uint8_t op, uint64_t left, uint64_t right) {
  if (right == 0) return false;
  if (op == DW_OP_mod) return Push(left % right);
  if (right == ~uint64_t{0}) return Push(-left);
  return Push(static_cast<uint64_t>(static_cast<int64_t>(left) / static_cast<int64_t>(right)));
}

// Jumps start after the operand. The end of the expression is a valid target, an address beyond it is not.
bool Evaluator::StepJump(uint8_t op) {
  const auto distance = reader_.Fixed<int16_t>();
  if (op == DW_OP_bra && !Has(1)) return false;
  if (op == DW_OP_bra && Pop() == 0) return true;
  const int64_t target = static_cast<int64_t>(reader_.at()) + distance;
  if (!reader_.ok() || target < 0 || target > static_cast<int64_t>(expression_.size())) return false;
  reader_ = base::DwarfReader(expression_, static_cast<uint64_t>(target));
  return true;
}

bool Evaluator::PushRegister(uint64_t number, int64_t offset) {
  if (!reader_.ok()) return false;
  const std::optional<uint64_t> value = world_.reg(number);
  return value && Push(*value + static_cast<uint64_t>(offset));
}

bool Evaluator::PushMemory(unsigned size) {
  if (size == 0 || size > sizeof(uint64_t)) return false;
  const std::optional<uint64_t> value = world_.memory(Pop(), size);
  return value && Push(*value);
}

}  // namespace

std::optional<uint64_t> Evaluate(base::Bytes expression, std::optional<uint64_t> initial,
                                 const ExpressionWorld& world) {
  return Evaluator(expression, world).Run(initial);
}

}  // namespace perfkit::unwind
