// Which function computes an instruction: arithmetic, comparisons, conversions, moves.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "machine.h"
#include "numbers.h"
#include "steps.h"

namespace emulator {
namespace {

using Parts = std::vector<std::string>;

bool has(const Parts& parts, const char* word) { return std::find(parts.begin(), parts.end(), word) != parts.end(); }

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

Step multiplication(const Instruction& made, const Parts& parts, bool adds) {
  if (of_floats<Mul>(made.type)) return adds ? of_floats<Fma>(made.type) : of_floats<Mul>(made.type);
  if (has(parts, "wide")) return adds ? of_integers<MadWide>(made.type) : of_integers<MulWide>(made.type);
  if (has(parts, "hi")) return adds ? of_integers<MadHi>(made.type) : of_integers<MulHi>(made.type);
  return adds ? of_integers<MadLow>(made.type) : of_integers<MulLow>(made.type);
}

Step comparison(Instruction& made, const Parts& parts) {
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
  return of_numbers<Compare, Compare>(made.type);
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

Step conversion(Instruction& made, const Parts& parts) {
  for (const char* whole : {"rni", "rzi", "rmi", "rpi"}) {
    if (has(parts, whole)) made.detail = 1;
  }
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

Step memory(const Parts& parts) {
  if (parts[0] == "ld" && (has(parts, "param") || has(parts, "param::entry"))) return load_parameter;
  bool loads = parts[0] == "ld" || parts[0] == "ldu";
  return loads ? load : store;
}

Step atomic(Instruction& made, const Parts& parts) {
  static const std::map<std::string, int> kKinds = {{"add", kAdd}, {"min", kMin}, {"max", kMax},       {"and", kAnd},
                                                    {"or", kOr},   {"xor", kXor}, {"exch", kExchange}, {"cas", kSwap}};
  for (const auto& [word, kind] : kKinds) {
    if (has(parts, word.c_str())) made.detail = static_cast<uint16_t>(kind);
  }
  if (!made.detail) throw std::runtime_error("an atomic operation that is not known");
  if (parts[0] == "red") made.detail |= kNoResult;
  return of_numbers<Atomic, Atomic>(made.type);
}

Step step_of(Instruction& made, const Parts& parts) {
  const std::string& base = parts[0];
  Type type = made.type;
  static const std::map<std::string, std::function<Step(Type)>> kPlain = {
      {"add", [](Type t) { return of_numbers<Add, Add>(t); }},
      {"sub", [](Type t) { return of_numbers<Sub, Sub>(t); }},
      {"div", [](Type t) { return of_numbers<Div, Div>(t); }},
      {"rem", [](Type t) { return of_integers<Rem>(t); }},
      {"min", [](Type t) { return of_numbers<Min, Min>(t); }},
      {"max", [](Type t) { return of_numbers<Max, Max>(t); }},
      {"abs", [](Type t) { return of_numbers<Abs, Abs>(t); }},
      {"neg", [](Type t) { return of_numbers<Neg, Neg>(t); }},
      {"fma", [](Type t) { return of_floats<Fma>(t); }},
      {"and", [](Type t) { return of_integers<And>(t); }},
      {"or", [](Type t) { return of_integers<Or>(t); }},
      {"xor", [](Type t) { return of_integers<Xor>(t); }},
      {"not", [](Type t) { return of_integers<Not>(t); }},
      {"shl", [](Type t) { return of_integers<ShiftLeft>(t); }},
      {"shr", [](Type t) { return of_integers<ShiftRight>(t); }},
      {"popc", [](Type t) { return of_integers<Popc>(t); }},
      {"clz", [](Type t) { return of_integers<Clz>(t); }},
      {"brev", [](Type t) { return of_integers<Reverse>(t); }},
      {"bfind", [](Type t) { return of_integers<Bfind>(t); }},
      {"bfe", [](Type t) { return of_integers<Extract>(t); }},
      {"bfi", [](Type t) { return of_integers<Insert>(t); }},
      {"sqrt", [](Type t) { return of_floats<Sqrt>(t); }},
      {"rcp", [](Type t) { return of_floats<Rcp>(t); }},
      {"rsqrt", [](Type t) { return of_floats<Rsqrt>(t); }},
      {"ex2", [](Type t) { return of_floats<Exp2>(t); }},
      {"lg2", [](Type t) { return of_floats<Log2>(t); }},
      {"sin", [](Type t) { return of_floats<Sin>(t); }},
      {"cos", [](Type t) { return of_floats<Cos>(t); }},
      {"tanh", [](Type t) { return of_floats<Tanh>(t); }},
      {"copysign", [](Type t) { return of_floats<CopySign>(t); }},
      {"testp", [](Type t) { return of_floats<TestFinite>(t); }},
      {"selp", [](Type t) { return of_integers<Select>(as_bits(t)); }},
  };
  if (auto found = kPlain.find(base); found != kPlain.end()) return found->second(type);
  if (base == "mul") return multiplication(made, parts, false);
  if (base == "mad") return multiplication(made, parts, true);
  if (base == "setp" || base == "set") return comparison(made, parts);
  if (base == "cvt") return conversion(made, parts);
  if (base == "mov") return type == Type::kB128 ? nullptr : move;
  if (base == "cvta") return move;
  if (base == "ld" || base == "ldu" || base == "st") return memory(parts);
  if (base == "atom" || base == "red") return atomic(made, parts);
  if (base == "prmt") return permute;
  if (base == "shf") {
    made.detail = (has(parts, "l") ? 1 : 0) | (has(parts, "wrap") ? 2 : 0);
    return funnel_shift;
  }
  if (base == "membar" || base == "fence" || base == "prefetch" || base == "nanosleep") return nothing;
  if (base == "cp" && has(parts, "async")) {
    // Asynchronous copies are made at once; their groups have nothing left to wait for.
    return has(parts, "commit_group") || has(parts, "wait_group") || has(parts, "wait_all") ? nothing : copy;
  }
  return nullptr;
}

}  // namespace

void decode(Instruction& made, const Parts& parts) {
  const std::string& base = parts[0];
  made.flushes = has(parts, "ftz");
  made.saturates = has(parts, "sat") || has(parts, "satfinite");
  made.keeps_nan = has(parts, "NaN");
  if (has(parts, "rz") || has(parts, "rzi")) made.rounding = 1;
  if (has(parts, "rm") || has(parts, "rmi")) made.rounding = 2;
  if (has(parts, "rp") || has(parts, "rpi")) made.rounding = 3;
  for (const char* length : {"v2", "v4", "v8"}) {
    if (has(parts, length) && (base == "ld" || base == "st" || base == "ldu"))
      made.detail = static_cast<uint16_t>(length[1] - '0');
  }
  if (base == "ret" || base == "exit") {
    made.kind = Kind::kReturn;
  } else if (base == "trap" || base == "brkpt") {
    made.kind = Kind::kTrap;
  } else if ((base == "bar" || base == "barrier") && !has(parts, "warp")) {
    if (has(parts, "arrive") || has(parts, "red")) throw std::runtime_error("not emulated");
    made.kind = Kind::kBarrier;
  } else if (Together together = together_of(made, parts)) {
    made.kind = Kind::kCollective;
    made.together = together;
  } else {
    made.step = step_of(made, parts);
    if (!made.step) throw std::runtime_error("not emulated");
  }
}

}  // namespace emulator
