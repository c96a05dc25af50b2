// What a text of PTX means: kernels as lists of decoded instructions over numbered slots.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace emulator {

struct Thread;
struct Instruction;

// Computes one instruction for one thread.
using Step = void (*)(Thread&, const Instruction&);

enum class Kind : uint8_t {
  kStep,        // computes, and goes on
  kBranch,      // bra
  kTable,       // brx.idx
  kCall,        // a function of the module
  kReturn,      // ret, exit
  kBarrier,     // waits for the block
  kCollective,  // waits for the lanes of its mask
  kTrap,
};

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kF16,
  kBF16,
  kB32,
  kU32,
  kS32,
  kF32,
  kF16x2,
  kBF16x2,
  kB64,
  kU64,
  kS64,
  kF64,
  kB128
};

// Computes a collective instruction for the lanes of a warp that have come to it; absent ones are null.
using Together = void (*)(Thread* const (&lanes)[32], const Instruction&);

struct Instruction {
  Kind kind = Kind::kStep;
  Type type = Type::kNone;
  Type from = Type::kNone;    // of a conversion's operand
  int8_t predicate_sign = 0;  // 1: runs where the predicate holds; -1: where not; 0: always
  uint8_t rounding = 0;       // as <cfenv> counts, where it is not to the nearest
  bool flushes = false;       // .ftz
  bool saturates = false;     // .sat
  bool keeps_nan = false;     // .NaN
  uint16_t detail = 0;        // comparison, mode, vector length, shape …
  int32_t predicate = -1;
  int32_t target = -1;          // of a branch: the instruction; of a table: its number; of a call: the function's
  int64_t offsets[2] = {0, 0};  // of its addresses, in their order
  uint8_t addresses = 0;
  Step step = nullptr;
  Together together = nullptr;
  std::vector<int32_t> to;  // slots that are written; -1 for `_`
  std::vector<int32_t> operands;
  std::vector<uint8_t> sizes;  // how many operands each braced group has
  std::string text;
};

struct Parameter {
  size_t offset;
  size_t size;
};

// A slot that starts with a known value: an immediate, a variable's address.
struct Constant {
  int32_t slot;
  uint64_t value;
};

enum Special : int {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaX,
  kCtaY,
  kCtaZ,
  kNctaX,
  kNctaY,
  kNctaZ,
  kLane,
  kWarp,
  kClock,
  kActive,
  kSpecials
};

struct Function {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::vector<int32_t>> tables;
  std::vector<Constant> constants;
  std::vector<Parameter> parameters;
  size_t parameter_bytes = 0;
  size_t local_bytes = 0;
  size_t shared_bytes = 0;  // of its own and the module's static variables
  int32_t slots = 0;
  int32_t specials[kSpecials];  // slots; -1 where the text does not read one
  unsigned max_threads = 1024;
};

struct Module {
  std::string target;
  std::map<std::string, std::shared_ptr<Function>> kernels;
  // .global and .const variables, as memory of the device.
  std::vector<std::unique_ptr<std::vector<uint64_t>>> variables;
  std::map<std::string, std::pair<uint64_t, size_t>> globals;
};

// Raises std::runtime_error, which names the line, for what is not known here.
std::unique_ptr<Module> parse(const std::string& text);

// An opcode and its modifiers: `add.rn.f32` in three parts.
using Parts = std::vector<std::string>;

// What the operands of an opcode are.
enum class Form : uint8_t {
  kResult,    // the first one is written
  kTwoTypes,  // the first one is written, and its type stands before that of the others
  kNoResult,  // all are read
  kLabel,     // places in the code
};

// A row of opcodes.def. `decode` sets kind, step, together and detail, and leaves step null for what is not emulated.
struct Opcode {
  void (*decode)(Instruction& instruction, const Parts& parts);
  Form form;
};

// The row of an opcode. Raises std::runtime_error for one that has none.
const Opcode& opcode_of(const std::string& name);

// Sets an instruction's modifiers, and the rest by its opcode's row. Raises std::runtime_error for what is not emulated.
void decode(Instruction& instruction, const Opcode& opcode, const Parts& parts);

// Of a collective instruction's detail: its last operand is the mask of lanes that it waits for; or it waits for none.
constexpr uint16_t kMasked = 0x8000, kUnmasked = 0x4000;

// Where addresses lie: below kSharedEnd in the block's shared memory, below kLocalEnd in the thread's own.
constexpr uint64_t kSharedEnd = 1ull << 24;
constexpr uint64_t kLocalEnd = 1ull << 25;
// Of a parameter's address, which only loads of parameters take.
constexpr uint64_t kParameters = 1ull << 26;

}  // namespace emulator
