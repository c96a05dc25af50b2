// Which function computes an instruction, by the table of opcodes: arithmetic, comparisons, conversions, moves.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "machine.h"
#include "numbers.h"
#include "steps.h"

namespace emulator {
namespace {

// The step for an instruction's type, of a template over types; null where the type is not one of them.
template <template <class> class Operation>
Step of_integers(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return Operation<uint8_t>::step;
    case Type::kS8:
      return Operation<int8_t>::step;
    case Type::kU16:
    case Type::kB16:
      return Operation<uint16_t>::step;
    case Type::kS16:
      return Operation<int16_t>::step;
    case Type::kU32:
    case Type::kB32:
      return Operation<uint32_t>::step;
    case Type::kS32:
      return Operation<int32_t>::step;
    case Type::kU64:
    case Type::kB64:
      return Operation<uint64_t>::step;
    case Type::kS64:
      return Operation<int64_t>::step;
    case Type::kPred:
      return Operation<bool>::step;
    default:
      return nullptr;
  }
}

template <template <class> class Operation>
Step of_floats(Type type) {
  switch (type) {
    case Type::kF16:
      return Operation<f16>::step;
    case Type::kBF16:
      return Operation<bf16>::step;
    case Type::kF32:
      return Operation<float>::step;
    case Type::kF64:
      return Operation<double>::step;
    case Type::kF16x2:
      return Halves<f16, Operation>::step;
    case Type::kBF16x2:
      return Halves<bf16, Operation>::step;
    default:
      return nullptr;
  }
}

template <template <class> class Integers, template <class> class Floats>
Step of_numbers(Type type) {
  Step found = of_integers<Integers>(type);
  return found ? found : of_floats<Floats>(type);
}

// Decoders of opcodes.def. Those of one template take its step for the instruction's type.
template <template <class> class Operation>
void numbers(Instruction& made, const Parts&) {
  made.step = of_numbers<Operation, Operation>(made.type);
}
template <template <class> class Operation>
void integers(Instruction& made, const Parts&) {
  made.step = of_integers<Operation>(made.type);
}
template <template <class> class Operation>
void floats(Instruction& made, const Parts&) {
  made.step = of_floats<Operation>(made.type);
}
template <Step step>
void always(Instruction& made, const Parts&) {
  made.step = step;
}
template <Kind kind>
void control(Instruction& made, const Parts&) {
  made.kind = kind;
}

void multiplications(Instruction& made, const Parts& parts) {
  made.step = of_floats<Mul>(made.type);
  if (made.step) return;
  made.step = has(parts, "wide") ? of_integers<MulWide>(made.type)
              : has(parts, "hi") ? of_integers<MulHi>(made.type)
                                 : of_integers<MulLow>(made.type);
}

void sums_of_products(Instruction& made, const Parts& parts) {
  made.step = of_floats<Fma>(made.type);
  if (made.step) return;
  made.step = has(parts, "wide") ? of_integers<MadWide>(made.type)
              : has(parts, "hi") ? of_integers<MadHi>(made.type)
                                 : of_integers<MadLow>(made.type);
}

void decode_comparison(Instruction& made, const Parts& parts) {
  static const std::map<std::string, int> kComparisons = {{"eq", kEq},
                                                          {"ne", kNe},
                                                          {"lt", kLt},
                                                          {"le", kLe},
                                                          {"gt", kGt},
                                                          {"ge", kGe},
                                                          {"lo", kLt},
                                                          {"ls", kLe},
                                                          {"hi", kGt},
                                                          {"hs", kGe},
                                                          {"equ", kEq | kUnordered},
                                                          {"neu", kNe | kUnordered},
                                                          {"ltu", kLt | kUnordered},
                                                          {"leu", kLe | kUnordered},
                                                          {"gtu", kGt | kUnordered},
                                                          {"geu", kGe | kUnordered},
                                                          {"num", kNum},
                                                          {"nan", kNan}};
  made.detail = static_cast<uint16_t>(kComparisons.at(parts.at(1)));
  if (has(parts, "and")) made.detail |= kWithAnd;
  if (has(parts, "or")) made.detail |= kWithOr;
  if (has(parts, "xor")) made.detail |= kWithXor;
}

void comparisons(Instruction& made, const Parts& parts) {
  decode_comparison(made, parts);
  made.step = of_numbers<Compare, Compare>(made.type);
}

void comparisons_to_words(Instruction& made, const Parts& parts) {
  if (made.type != Type::kU32 && made.type != Type::kS32 && made.type != Type::kF32) return;
  decode_comparison(made, parts);
  made.step = of_numbers<CompareToWord, CompareToWord>(made.from);
}

// Only the width matters to a move.
Type as_bits(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kBF16:
    case Type::kS16:
    case Type::kU16:
      return Type::kB16;
    case Type::kF32:
    case Type::kS32:
    case Type::kU32:
    case Type::kF16x2:
    case Type::kBF16x2:
      return Type::kB32;
    case Type::kF64:
    case Type::kS64:
    case Type::kU64:
      return Type::kB64;
    case Type::kU8:
    case Type::kS8:
      return Type::kB8;
    default:
      return type;
  }
}

void selections(Instruction& made, const Parts&) { made.step = of_integers<Select>(as_bits(made.type)); }

void moves(Instruction& made, const Parts&) { made.step = made.type == Type::kB128 ? nullptr : move; }

template <class From>
Step conversion_from(const Instruction& made) {
  switch (made.type) {
    case Type::kU8:
      return Convert<From, uint8_t>::step;
    case Type::kS8:
      return Convert<From, int8_t>::step;
    case Type::kU16:
    case Type::kB16:
      return Convert<From, uint16_t>::step;
    case Type::kS16:
      return Convert<From, int16_t>::step;
    case Type::kU32:
    case Type::kB32:
      return Convert<From, uint32_t>::step;
    case Type::kS32:
      return Convert<From, int32_t>::step;
    case Type::kU64:
    case Type::kB64:
      return Convert<From, uint64_t>::step;
    case Type::kS64:
      return Convert<From, int64_t>::step;
    case Type::kF16:
      return Convert<From, f16>::step;
    case Type::kBF16:
      return Convert<From, bf16>::step;
    case Type::kF32:
      return Convert<From, float>::step;
    case Type::kF64:
      return Convert<From, double>::step;
    case Type::kF16x2:
      return ConvertPair<From, f16>::step;
    case Type::kBF16x2:
      return ConvertPair<From, bf16>::step;
    default:
      return nullptr;
  }
}

Step conversion(const Instruction& made) {
  switch (made.from) {
    case Type::kU8:
      return conversion_from<uint8_t>(made);
    case Type::kS8:
      return conversion_from<int8_t>(made);
    case Type::kU16:
    case Type::kB16:
      return conversion_from<uint16_t>(made);
    case Type::kS16:
      return conversion_from<int16_t>(made);
    case Type::kU32:
    case Type::kB32:
      return conversion_from<uint32_t>(made);
    case Type::kS32:
      return conversion_from<int32_t>(made);
    case Type::kU64:
    case Type::kB64:
      return conversion_from<uint64_t>(made);
    case Type::kS64:
      return conversion_from<int64_t>(made);
    case Type::kF16:
      return conversion_from<f16>(made);
    case Type::kBF16:
      return conversion_from<bf16>(made);
    case Type::kF32:
      return conversion_from<float>(made);
    case Type::kF64:
      return conversion_from<double>(made);
    default:
      return nullptr;
  }
}

void conversions(Instruction& made, const Parts& parts) {
  for (const char* whole : {"rni", "rzi", "rmi", "rpi"}) {
    if (has(parts, whole)) made.detail = 1;
  }
  made.step = conversion(made);
}

void loads(Instruction& made, const Parts& parts) {
  made.step = has(parts, "param") || has(parts, "param::entry") ? load_parameter : load;
}

void atomics(Instruction& made, const Parts& parts) {
  if (has(parts, "v2") || has(parts, "v4") || has(parts, "v8")) return;
  if (made.type == Type::kF16x2 || made.type == Type::kBF16x2) return;
  static const std::map<std::string, int> kKinds = {{"add", kAdd}, {"min", kMin}, {"max", kMax},       {"and", kAnd},
                                                    {"or", kOr},   {"xor", kXor}, {"exch", kExchange}, {"cas", kSwap}};
  for (const auto& [word, kind] : kKinds) {
    if (has(parts, word.c_str())) made.detail = static_cast<uint16_t>(kind);
  }
  if (!made.detail) throw std::runtime_error("an atomic operation that is not known");
  if (parts[0] == "red") made.detail |= kNoResult;
  made.step = of_numbers<Atomic, Atomic>(made.type);
}

void funnel_shifts(Instruction& made, const Parts& parts) {
  made.detail = (has(parts, "l") ? 1 : 0) | (has(parts, "wrap") ? 2 : 0);
  made.step = funnel_shift;
}

void tests_of_floats(Instruction& made, const Parts& parts) {
  if (has(parts, "finite")) made.step = of_floats<TestFinite>(made.type);
}

// Asynchronous copies are made at once; their groups have nothing left to wait for.
void asynchronous_copies(Instruction& made, const Parts& parts) {
  if (!has(parts, "async") || has(parts, "mbarrier")) return;
  bool waits = has(parts, "commit_group") || has(parts, "wait_group") || has(parts, "wait_all");
  made.step = waits ? nothing : copy;
}

void barriers(Instruction& made, const Parts& parts) {
  if (has(parts, "warp")) return meetings(made, parts);
  if (!has(parts, "arrive") && !has(parts, "red")) made.kind = Kind::kBarrier;
}

}  // namespace

const Opcode& opcode_of(const std::string& name) {
  static const std::map<std::string, Opcode> kOpcodes = {
#define OPCODE(opcode, decoder, form, example, notes) {opcode, {decoder, Form::form}},
#include "opcodes.def"
#undef OPCODE
  };
  auto found = kOpcodes.find(name);
  if (found == kOpcodes.end()) throw std::runtime_error("not emulated");
  return found->second;
}

void decode(Instruction& made, const Opcode& opcode, const Parts& parts) {
  made.flushes = has(parts, "ftz");
  made.saturates = has(parts, "sat") || has(parts, "satfinite");
  made.keeps_nan = has(parts, "NaN");
  if (has(parts, "rz") || has(parts, "rzi")) made.rounding = 1;
  if (has(parts, "rm") || has(parts, "rmi")) made.rounding = 2;
  if (has(parts, "rp") || has(parts, "rpi")) made.rounding = 3;
  // Modifiers that change a result and are not emulated.
  for (const char* word : {"relu", "xorsign", "shiftamt", "bulk", "f4e", "b4e", "rc8", "rc16", "ecl", "ecr"}) {
    if (has(parts, word)) throw std::runtime_error("not emulated");
  }
  opcode.decode(made, parts);
  if (made.kind == Kind::kStep && !made.step) throw std::runtime_error("not emulated");
}

}  // namespace emulator
