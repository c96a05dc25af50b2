// The functions that compute instructions, by type.
#pragma once

#include "bits.h"
#include "forms.h"

namespace emulator {

enum Comparison {
  kEq = 1,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kNum,
  kNan,
  kUnordered = 16,
  kWithAnd = 32,
  kWithOr = 64,
  kWithXor = 128
};
enum AtomicKind { kAdd = 1, kMin, kMax, kAnd, kOr, kXor, kExchange, kSwap, kNoResult = 16 };

void load(Thread&, const Instruction&);
void store(Thread&, const Instruction&);
void load_parameter(Thread&, const Instruction&);
void move(Thread&, const Instruction&);
void permute(Thread&, const Instruction&);
void funnel_shift(Thread&, const Instruction&);
void copy(Thread&, const Instruction&);
void nothing(Thread&, const Instruction&);
size_t width_of(Type type);

// How instructions that lanes compute together are decoded (collectives.cpp, matrices.cpp).
void shuffles(Instruction& made, const Parts& parts);
void votes(Instruction& made, const Parts& parts);
void reductions(Instruction& made, const Parts& parts);
void matches(Instruction& made, const Parts& parts);
void meetings(Instruction& made, const Parts& parts);
void active_masks(Instruction& made, const Parts& parts);
void matrix_products(Instruction& made, const Parts& parts);
void matrix_loads(Instruction& made, const Parts& parts);

inline bool has(const Parts& parts, const char* word) {
  return std::find(parts.begin(), parts.end(), word) != parts.end();
}
inline void decode_together(Instruction& made, Together together, int detail) {
  made.kind = Kind::kCollective;
  made.together = together;
  made.detail = static_cast<uint16_t>(detail);
}

template <class T>
struct Add : Binary<Add<T>, T> {
  static T of([[maybe_unused]] const Instruction& i, T a, T b) {
    if constexpr (is_float<T>)
      return a + b;
    else if (i.saturates)
      return static_cast<T>(std::clamp<__int128>(static_cast<__int128>(a) + b, std::numeric_limits<T>::min(),
                                                 std::numeric_limits<T>::max()));
    else
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
template <class T>
struct Sub : Binary<Sub<T>, T> {
  static T of([[maybe_unused]] const Instruction& i, T a, T b) {
    if constexpr (is_float<T>)
      return a - b;
    else if (i.saturates)
      return static_cast<T>(std::clamp<__int128>(static_cast<__int128>(a) - b, std::numeric_limits<T>::min(),
                                                 std::numeric_limits<T>::max()));
    else
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
template <class T>
struct Mul : Binary<Mul<T>, T> {
  static T of(const Instruction&, T a, T b) { return a * b; }
};
template <class T>
struct MulLow : Binary<MulLow<T>, T> {
  static T of(const Instruction&, T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
template <class T>
struct MulHi : Binary<MulHi<T>, T> {
  static T of(const Instruction&, T a, T b) {
    return static_cast<T>((static_cast<__int128>(a) * static_cast<__int128>(b)) >> (8 * sizeof(T)));
  }
};
template <>
inline uint64_t MulHi<uint64_t>::of(const Instruction&, uint64_t a, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}
template <class T>
struct MulWide {
  static void step(Thread& t, const Instruction& i) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    uint64_t product = static_cast<uint64_t>(static_cast<Wide>(get<T>(t, i.operands[0])) *
                                             static_cast<Wide>(get<T>(t, i.operands[1])));
    t.slots[i.to[0]] = sizeof(T) == 2 ? product & 0xffffffffu : product;
  }
};
template <class T>
struct MadWide {
  static void step(Thread& t, const Instruction& i) {
    MulWide<T>::step(t, i);
    uint64_t sum = t.slots[i.to[0]] + t.slots[i.operands[2]];
    t.slots[i.to[0]] = sizeof(T) == 2 ? sum & 0xffffffffu : sum;
  }
};
template <class T>
struct MadLow : Ternary<MadLow<T>, T> {
  static T of(const Instruction& i, T a, T b, T c) {
    return static_cast<T>(static_cast<uint64_t>(MulLow<T>::of(i, a, b)) + static_cast<uint64_t>(c));
  }
};
template <class T>
struct MadHi : Ternary<MadHi<T>, T> {
  static T of(const Instruction& i, T a, T b, T c) {
    return static_cast<T>(static_cast<uint64_t>(MulHi<T>::of(i, a, b)) + static_cast<uint64_t>(c));
  }
};
template <class T>
struct Div : Binary<Div<T>, T> {
  static T of(const Instruction&, T a, T b) {
    if constexpr (is_float<T>)
      return a / b;
    else if (b == 0)
      return static_cast<T>(~uint64_t{0});
    else if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    else
      return static_cast<T>(a / b);
  }
};
template <class T>
struct Rem : Binary<Rem<T>, T> {
  static T of(const Instruction&, T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
// The number of two where one is NaN, unless .NaN asks for it; -0 is less than 0.
template <class T>
struct Min : Binary<Min<T>, T> {
  static T of([[maybe_unused]] const Instruction& i, T a, T b) {
    if constexpr (is_float<T>) {
      double x = a, y = b;
      if (std::isnan(x) || std::isnan(y)) return i.keeps_nan ? T(std::nan("")) : std::isnan(x) ? b : a;
      if (x == y) return std::signbit(x) ? a : b;
      return x < y ? a : b;
    } else {
      return std::min(a, b);
    }
  }
};
template <class T>
struct Max : Binary<Max<T>, T> {
  static T of([[maybe_unused]] const Instruction& i, T a, T b) {
    if constexpr (is_float<T>) {
      double x = a, y = b;
      if (std::isnan(x) || std::isnan(y)) return i.keeps_nan ? T(std::nan("")) : std::isnan(x) ? b : a;
      if (x == y) return std::signbit(x) ? b : a;
      return x > y ? a : b;
    } else {
      return std::max(a, b);
    }
  }
};
template <class T>
struct Abs : Unary<Abs<T>, T> {
  static T of(const Instruction&, T a) {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
      a.bits &= 0x7fff;
      return a;
    } else if constexpr (is_float<T>) {
      return std::fabs(a);
    } else {
      return a < T(0) ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a;
    }
  }
};
template <class T>
struct Neg : Unary<Neg<T>, T> {
  static T of(const Instruction&, T a) {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
      a.bits ^= 0x8000;
      return a;
    } else if constexpr (is_float<T>) {
      return -a;
    } else {
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    }
  }
};
template <class T>
struct Fma : Ternary<Fma<T>, T> {
  static T of(const Instruction&, T a, T b, T c) {
    T result;
    if constexpr (std::is_same_v<T, float>)
      result = std::fmaf(a, b, c);
    else
      result = std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c));
    return result;
  }
};

// Functions that hardware approximates are computed exactly here.
#define EMULATOR_FUNCTION(Name, expression)                        \
  template <class T>                                               \
  struct Name {                                                    \
    static T of(const Instruction&, T a) { return T(expression); } \
    static void step(Thread& t, const Instruction& i) {            \
      Rounding rounding(mode_of(i));                               \
      set(t, i.to[0], finished<T>(i, of(i, taken<T>(t, i, 0))));   \
    }                                                              \
  };
EMULATOR_FUNCTION(Sqrt, std::sqrt(a))
EMULATOR_FUNCTION(Rcp, T(1.0) / a)
EMULATOR_FUNCTION(Rsqrt, 1.0 / std::sqrt(static_cast<double>(a)))
EMULATOR_FUNCTION(Exp2, std::exp2(static_cast<double>(a)))
EMULATOR_FUNCTION(Log2, std::log2(static_cast<double>(a)))
EMULATOR_FUNCTION(Sin, std::sin(static_cast<double>(a)))
EMULATOR_FUNCTION(Cos, std::cos(static_cast<double>(a)))
EMULATOR_FUNCTION(Tanh, std::tanh(static_cast<double>(a)))
#undef EMULATOR_FUNCTION

// copysign.f32 d, a, b: the sign of a on b.
template <class T>
struct CopySign : Binary<CopySign<T>, T> {
  static T of(const Instruction&, T a, T b) { return T(std::copysign(static_cast<double>(b), static_cast<double>(a))); }
};
template <class T>
struct TestFinite {
  static void step(Thread& t, const Instruction& i) {
    set(t, i.to[0], std::isfinite(static_cast<double>(get<T>(t, i.operands[0]))));
  }
};

template <class T>
struct Select {
  static void step(Thread& t, const Instruction& i) {
    set(t, i.to[0], get<bool>(t, i.operands[2]) ? get<T>(t, i.operands[0]) : get<T>(t, i.operands[1]));
  }
};

template <class T>
struct Compare {
  static void step(Thread& t, const Instruction& i) {
    T a = taken<T>(t, i, 0), b = taken<T>(t, i, 1);
    bool unordered = false;
    if constexpr (is_float<T>) unordered = std::isnan(static_cast<double>(a)) || std::isnan(static_cast<double>(b));
    bool holds = unordered ? ((i.detail & kUnordered) || (i.detail & 15) == kNan) : ordered(i.detail & 15, a, b);
    // An ordered `ne` does not hold of NaN.
    if (i.operands.size() > 2) {
      bool other = get<bool>(t, i.operands[2]);
      bool first = i.detail & kWithAnd ? holds && other : i.detail & kWithOr ? holds || other : holds != other;
      bool second = i.detail & kWithAnd ? !holds && other : i.detail & kWithOr ? !holds || other : !holds != other;
      set(t, i.to[0], first);
      if (i.to.size() > 1) set(t, i.to[1], second);
      return;
    }
    set(t, i.to[0], holds);
    if (i.to.size() > 1) set(t, i.to[1], !holds);
  }

 private:
  static bool ordered(int kind, T a, T b) {
    switch (kind) {
      case kEq:
        return a == b;
      case kNe:
        return a != b;
      case kLt:
        return a < b;
      case kLe:
        return a <= b;
      case kGt:
        return a > b;
      case kGe:
        return a >= b;
      default:
        return kind == kNum;
    }
  }
};

// set.lt.u32.f32 d, a, b: all bits where it holds, or 1.0.
template <class T>
struct CompareToWord {
  static void step(Thread& t, const Instruction& i) {
    Compare<T>::step(t, i);
    bool holds = get<bool>(t, i.to[0]);
    set(t, i.to[0], !holds ? 0u : i.type == Type::kF32 ? bits_of(1.0f) : ~0u);
  }
};

// The nearest whole number of a type, at its ends for what is beyond them; 0 for NaN.
template <class To>
To whole(double value) {
  if (std::isnan(value)) return 0;
  double near = std::nearbyint(value);
  constexpr double kLeast = static_cast<double>(std::numeric_limits<To>::min());
  if (near <= kLeast) return std::numeric_limits<To>::min();
  if (near >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
  return static_cast<To>(near);
}

template <class From, class To>
struct Convert {
  static void step(Thread& t, const Instruction& i) {
    Rounding rounding(mode_of(i));
    From from = taken<From>(t, i, 0);
    To to;
    if constexpr (is_float<From> && is_float<To>) {
      volatile double exact = static_cast<double>(from);
      to = To(i.detail ? std::nearbyint(exact) : static_cast<double>(exact));
    } else if constexpr (is_float<From>) {
      to = whole<To>(static_cast<double>(from));
    } else if constexpr (std::is_same_v<To, float> || std::is_same_v<To, double>) {
      volatile To near = static_cast<To>(from);
      to = near;
    } else if constexpr (is_float<To>) {
      to = To(static_cast<double>(from));
    } else if (i.saturates) {
      to = static_cast<To>(std::clamp<__int128>(from, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
    } else {
      to = static_cast<To>(from);
    }
    if constexpr (is_float<To>) {
      set(t, i.to[0], finished<To>(i, to));
    } else if constexpr (std::is_signed_v<To>) {
      // The register may be wider: the sign fills it.
      set(t, i.to[0], static_cast<int64_t>(to));
    } else {
      set(t, i.to[0], to);
    }
  }
};

// cvt.rn.bf16x2.f32 d, a, b: a into the upper half.
template <class From, class To>
struct ConvertPair {
  static void step(Thread& t, const Instruction& i) {
    To high(static_cast<double>(taken<From>(t, i, 0))), low(static_cast<double>(taken<From>(t, i, 1)));
    set(t, i.to[0], static_cast<uint32_t>(high.bits) << 16 | low.bits);
  }
};

// Instructions on two halves of a word, by the step of one.
template <class Half, template <class> class Operation>
struct Halves {
  static void step(Thread& t, const Instruction& i) {
    uint64_t results = 0;
    Instruction one;
    one.rounding = i.rounding, one.saturates = i.saturates, one.keeps_nan = i.keeps_nan, one.detail = i.detail;
    uint64_t scratch[4];
    Thread part;
    part.slots = scratch;
    one.to = {3};
    for (size_t operand = 0; operand < i.operands.size(); ++operand)
      one.operands.push_back(static_cast<int32_t>(operand));
    for (int half = 0; half < 2; ++half) {
      for (size_t operand = 0; operand < i.operands.size(); ++operand)
        scratch[operand] = t.slots[i.operands[operand]] >> (16 * half) & 0xffff;
      Operation<Half>::step(part, one);
      results |= (scratch[3] & 0xffff) << (16 * half);
    }
    t.slots[i.to[0]] = results;
  }
};

template <class T>
struct Atomic {
  static void step(Thread& t, const Instruction& i) {
    char* at = reach(t, t.slots[i.operands[0]] + static_cast<uint64_t>(i.offsets[0]), sizeof(T), Access::kAtomic, i);
    T old, value = get<T>(t, i.operands[1]);
    std::memcpy(&old, at, sizeof(T));
    T made = changed(t, i, old, value);
    std::memcpy(at, &made, sizeof(T));
    if (!(i.detail & kNoResult)) set(t, i.to[0], old);
  }

 private:
  static T changed(Thread& t, const Instruction& i, T old, T value) {
    switch (i.detail & 15) {
      case kAdd:
        return Add<T>::of(i, old, value);
      case kMin:
        return Min<T>::of(i, old, value);
      case kMax:
        return Max<T>::of(i, old, value);
      case kExchange:
        return value;
      case kSwap:
        return std::memcmp(&old, &value, sizeof(T)) == 0 ? get<T>(t, i.operands[2]) : old;
      default:
        break;
    }
    if constexpr (!is_float<T>) {
      switch (i.detail & 15) {
        case kAnd:
          return static_cast<T>(old & value);
        case kOr:
          return static_cast<T>(old | value);
        case kXor:
          return static_cast<T>(old ^ value);
        default:
          break;
      }
    }
    throw Fault("an atomic operation of this type is not emulated: " + i.text);
  }
};

}  // namespace emulator
