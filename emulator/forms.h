// How instructions of one, two and three operands read and write slots.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "machine.h"
#include "numbers.h"

namespace emulator {

inline int mode_of(const Instruction& i) {
  static constexpr int kModes[] = {0, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  return kModes[i.rounding];
}

// What a float's result becomes by .ftz and .sat.
template <class T>
T finished(const Instruction& i, T value) {
  if constexpr (is_float<T>) {
    if (i.flushes) value = flushed(value);
    if (i.saturates)
      value =
          std::isnan(static_cast<double>(value)) ? T(0.0) : T(std::min(std::max(static_cast<double>(value), 0.0), 1.0));
  }
  return value;
}

template <class T>
T taken(const Thread& t, const Instruction& i, int operand) {
  T value = get<T>(t, i.operands[operand]);
  if constexpr (std::is_same_v<T, float>) {
    if (i.flushes) value = flushed(value);
  }
  return value;
}

// `Name<T>::of(instruction, a …)` computes; `step` reads and writes slots.
template <class Self, class T>
struct Unary {
  static void step(Thread& t, const Instruction& i) { set(t, i.to[0], finished<T>(i, Self::of(i, taken<T>(t, i, 0)))); }
};
template <class Self, class T>
struct Binary {
  static void step(Thread& t, const Instruction& i) {
    if constexpr (is_float<T>) {
      Rounding rounding(mode_of(i));
      volatile T result = Self::of(i, taken<T>(t, i, 0), taken<T>(t, i, 1));
      set(t, i.to[0], finished<T>(i, const_cast<T&>(result)));
    } else {
      set(t, i.to[0], T(Self::of(i, taken<T>(t, i, 0), taken<T>(t, i, 1))));
    }
  }
};
template <class Self, class T>
struct Ternary {
  static void step(Thread& t, const Instruction& i) {
    Rounding rounding(is_float<T> ? mode_of(i) : 0);
    set(t, i.to[0], finished<T>(i, Self::of(i, taken<T>(t, i, 0), taken<T>(t, i, 1), taken<T>(t, i, 2))));
  }
};

// Wraps as machine words do.
template <class T>
using Word = std::conditional_t<
    std::is_same_v<T, bool>, bool,
    std::make_unsigned_t<std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, int>>>;

}  // namespace emulator
