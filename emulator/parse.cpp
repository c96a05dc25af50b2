// Reads the PTX that LLVM writes: statements, registers, variables, labels.
#include <cctype>
#include <cstring>
#include <set>
#include <stdexcept>

#include "program.h"

namespace emulator {
namespace {

using Words = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\n\r"), last = text.find_last_not_of(" \t\n\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

Words split(const std::string& text, char at) {
  Words parts;
  int depth = 0;
  std::string part;
  for (char c : text) {
    depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c == at && depth == 0) {
      parts.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

size_t width(const std::string& type) {
  if (type == "pred") return 1;
  size_t digits = type.find_first_of("0123456789");
  if (digits == std::string::npos) throw std::runtime_error("a type that is not known: " + type);
  size_t bits = std::stoul(type.substr(digits));
  return (type.find("x2") != std::string::npos ? 2 * bits : bits) / 8;
}

struct Variable {
  std::string name, type;
  size_t align = 1, bytes = 0;
  std::string value;
};

// `.align 16 .b8 name[64] = {…}`, behind the word of its space.
Variable variable(const std::string& text) {
  Variable found;
  std::string rest = text;
  size_t equals = rest.find('=');
  if (equals != std::string::npos) {
    found.value = trimmed(rest.substr(equals + 1));
    rest = trimmed(rest.substr(0, equals));
  }
  size_t at = 0;
  size_t count = 1;
  while (at < rest.size()) {
    size_t end = rest.find_first_of(" \t", at);
    std::string word = rest.substr(at, end == std::string::npos ? end : end - at);
    at = end == std::string::npos ? rest.size() : rest.find_first_not_of(" \t", end);
    if (at == std::string::npos) at = rest.size();
    if (word == ".align") {
      end = rest.find_first_of(" \t", at);
      size_t align = std::stoul(rest.substr(at, end - at));
      if (found.type.empty()) found.align = align;  // behind `.ptr` it is what a pointer points to
      at = rest.find_first_not_of(" \t", end);
    } else if (word[0] == '.') {
      std::string kind = word.substr(1);
      if (kind != "ptr" && kind != "global" && kind != "shared" && kind != "const" && kind != "local" &&
          kind != "param")
        found.type = kind;
    } else if (!word.empty()) {
      size_t bracket = word.find('[');
      found.name = word.substr(0, bracket);
      if (bracket != std::string::npos) {
        std::string size = word.substr(bracket + 1, word.find(']') - bracket - 1);
        count = size.empty() ? 0 : std::stoul(size);
      }
    }
  }
  size_t element = width(found.type);
  found.align = std::max(found.align, element);
  found.bytes = element * count;
  return found;
}

size_t aligned(size_t offset, size_t align) { return (offset + align - 1) / align * align; }

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(without_comments(text)), module_(new Module) {}

  std::unique_ptr<Module> run() {
    while (at_ < text_.size()) top_level();
    return std::move(module_);
  }

 private:
  static std::string without_comments(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 2, "//") == 0) {
        while (i < text.size() && text[i] != '\n') ++i;
      } else if (text.compare(i, 2, "/*") == 0) {
        i = text.find("*/", i) + 1;
        continue;
      }
      if (i < text.size()) out += text[i];
    }
    return out;
  }

  // Up to the character, which is taken too.
  std::string until(const char* ends) {
    size_t end = text_.find_first_of(ends, at_);
    if (end == std::string::npos) end = text_.size();
    std::string found = trimmed(text_.substr(at_, end - at_));
    at_ = std::min(end + 1, text_.size());
    return found;
  }

  void top_level() {
    at_ = text_.find_first_not_of(" \t\r\n", at_);
    if (at_ == std::string::npos) at_ = text_.size();
    if (at_ >= text_.size()) return;
    size_t line_end = text_.find('\n', at_);
    std::string line = trimmed(text_.substr(at_, line_end - at_));
    if (line.rfind(".version", 0) == 0 || line.rfind(".address_size", 0) == 0 || line.rfind(".target", 0) == 0 ||
        line.rfind(".file", 0) == 0) {
      if (line[1] == 't') module_->target = trimmed(line.substr(7));
      at_ = line_end;
    } else if (line.find(".entry") != std::string::npos) {
      entry();
    } else if (line.find(".func") != std::string::npos) {
      throw std::runtime_error("functions beside kernels are not emulated: " + line);
    } else if (line.find(".section") == 0) {
      at_ = text_.find('}', at_) + 1;
    } else {
      global(until(";"));
    }
  }

  void global(std::string text) {
    bool is_extern = false;
    for (const char* word : {".extern", ".visible", ".weak", ".common"}) {
      if (text.rfind(word, 0) == 0) {
        is_extern |= !std::strcmp(word, ".extern");
        text = trimmed(text.substr(std::strlen(word)));
      }
    }
    size_t space = text.find_first_of(" \t");
    std::string kind = text.substr(0, space);
    Variable found = variable(trimmed(text.substr(space)));
    if (kind == ".shared") {
      if (is_extern) {
        dynamic_shared_ = found.name;
        return;
      }
      shared(found);
    } else if (kind == ".global" || kind == ".const") {
      auto memory = std::make_unique<std::vector<uint64_t>>(found.bytes / 8 + 1);
      char* bytes = reinterpret_cast<char*>(memory->data());
      if (!found.value.empty()) {
        Words values =
            found.value[0] == '{' ? split(found.value.substr(1, found.value.rfind('}') - 1), ',') : Words{found.value};
        size_t element = width(found.type);
        for (size_t i = 0; i < values.size(); ++i) {
          uint64_t value = immediate(values[i], found.type);
          std::memcpy(bytes + i * element, &value, element);
        }
      }
      addresses_[found.name] = reinterpret_cast<uint64_t>(bytes);
      module_->globals[found.name] = {reinterpret_cast<uint64_t>(bytes), found.bytes};
      module_->variables.push_back(std::move(memory));
    } else {
      throw std::runtime_error("a directive that is not known: " + text);
    }
  }

  void shared(const Variable& found) {
    shared_bytes_ = aligned(shared_bytes_, std::max<size_t>(found.align, 16));
    addresses_[found.name] = shared_bytes_ + kSharedBase;
    shared_bytes_ += found.bytes;
  }

  // 0 is no address: kernels compare with it.
  static constexpr uint64_t kSharedBase = 1024;

  void entry() {
    function_ = std::make_shared<Function>();
    std::fill(function_->specials, function_->specials + kSpecials, -1);
    names_.clear();
    labels_.clear();
    fixes_.clear();
    tables_.clear();
    scopes_.clear();
    locals_.clear();
    constants_.clear();
    parameters_.clear();
    std::string head = until("({");
    function_->name = trimmed(head.substr(head.find(".entry") + 6));
    if (text_[at_ - 1] == '(') {
      for (const std::string& one : split(until(")"), ',')) parameter(variable(one.substr(one.find(".param") + 6)));
    }
    std::string directives = until("{");
    size_t most = directives.find(".maxntid");
    if (most == std::string::npos) most = directives.find(".reqntid");
    if (most != std::string::npos) {
      function_->max_threads = 1;
      std::string rest = directives.substr(most + 8);
      rest = rest.substr(0, rest.find('.'));
      for (const std::string& one : split(rest, ',')) function_->max_threads *= std::stoul(one);
    }
    body();
    for (auto& [index, label] : fixes_) function_->code[index].target = instruction_of(label);
    for (auto& [index, label] : tables_) {
      auto& table = table_labels_.at(label);
      std::vector<int32_t> targets;
      for (const std::string& one : table) targets.push_back(instruction_of(one));
      function_->code[index].target = static_cast<int32_t>(function_->tables.size());
      function_->tables.push_back(targets);
    }
    function_->shared_bytes = kSharedBase + aligned(shared_bytes_, 16);
    for (auto& [slot, name] : dynamic_uses_) function_->constants.push_back({slot, function_->shared_bytes});
    dynamic_uses_.clear();
    module_->kernels[function_->name] = function_;
  }

  void parameter(const Variable& found) {
    size_t offset = aligned(function_->parameter_bytes, found.align);
    parameters_[found.name] = offset;
    function_->parameters.push_back({offset, found.bytes});
    function_->parameter_bytes = offset + found.bytes;
  }

  int32_t instruction_of(const std::string& label) {
    auto found = labels_.find(label);
    if (found == labels_.end()) throw std::runtime_error("no label " + label);
    return found->second;
  }

  void body() {
    int depth = 1;
    while (depth > 0) {
      at_ = text_.find_first_not_of(" \t\r\n", at_);
      if (at_ == std::string::npos) throw std::runtime_error("a kernel that does not end: " + function_->name);
      if (text_[at_] == '{') {
        ++depth, ++at_;
        scopes_.emplace_back();
      } else if (text_[at_] == '}') {
        --depth, ++at_;
        if (!scopes_.empty()) scopes_.pop_back();
      } else if (text_.compare(at_, 5, ".loc ") == 0 || text_.compare(at_, 5, ".loc\t") == 0) {
        at_ = text_.find('\n', at_);
      } else if (size_t end = label_end()) {
        labels_[text_.substr(at_, end - at_)] = static_cast<int32_t>(function_->code.size());
        last_label_ = text_.substr(at_, end - at_);
        at_ = end + 1;
      } else {
        statement(statement_text());
      }
    }
    Instruction last;
    last.kind = Kind::kReturn;
    last.text = "(end)";
    function_->code.push_back(last);
  }

  size_t label_end() const {
    size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' || text_[end] == '$'))
      ++end;
    return end > at_ && text_[end] == ':' && text_[end + 1] != ':' ? end : 0;
  }

  std::string statement_text() { return until(";"); }

  void statement(const std::string& text) {
    if (text.empty()) return;
    if (text[0] == '.') {
      directive(text);
      return;
    }
    Instruction made;
    made.text = text;
    std::string rest = text;
    if (rest[0] == '@') {
      size_t end = rest.find_first_of(" \t");
      std::string name = rest.substr(1, end - 1);
      made.predicate_sign = name[0] == '!' ? -1 : 1;
      made.predicate = slot(name[0] == '!' ? name.substr(1) : name);
      rest = trimmed(rest.substr(end));
    }
    size_t end = rest.find_first_of(" \t\n");
    std::string opcode = rest.substr(0, end);
    Words operands = end == std::string::npos ? Words{} : split(rest.substr(end), ',');
    try {
      Words parts = split(opcode, '.');
      take(made, parts, operands);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + ": " + text);
    }
    function_->code.push_back(std::move(made));
  }

  void directive(const std::string& text) {
    size_t space = text.find_first_of(" \t");
    std::string word = text.substr(0, space), rest = trimmed(text.substr(space));
    if (word == ".reg") {
      // Slots are made where a name is first met; only names of an inner scope hide others.
      if (!scopes_.empty()) {
        for (const std::string& one : split(rest.substr(rest.find_first_of(" \t")), ',')) scopes_.back().insert(one);
      }
    } else if (word == ".local") {
      Variable found = variable(rest);
      function_->local_bytes = aligned(function_->local_bytes, found.align);
      locals_[found.name] = kSharedEnd + 16 + function_->local_bytes;
      function_->local_bytes += found.bytes;
    } else if (word == ".shared") {
      shared(variable(rest));
    } else if (word == ".branchtargets") {
      table_labels_[last_label_] = split(rest, ',');
    } else if (word != ".pragma") {
      throw std::runtime_error("a directive that is not known: " + text);
    }
  }

  void take(Instruction& made, const Words& parts, const Words& operands) {
    const std::string& base = parts[0];
    const Opcode& opcode = opcode_of(base);
    static const std::map<std::string, Type> kTypes = {
        {"pred", Type::kPred}, {"b8", Type::kB8},       {"u8", Type::kU8},         {"s8", Type::kS8},
        {"b16", Type::kB16},   {"u16", Type::kU16},     {"s16", Type::kS16},       {"f16", Type::kF16},
        {"bf16", Type::kBF16}, {"b32", Type::kB32},     {"u32", Type::kU32},       {"s32", Type::kS32},
        {"f32", Type::kF32},   {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBF16x2}, {"b64", Type::kB64},
        {"u64", Type::kU64},   {"s64", Type::kS64},     {"f64", Type::kF64},       {"b128", Type::kB128}};
    for (const std::string& part : parts) {
      auto type = kTypes.find(part);
      if (type == kTypes.end()) continue;
      if (made.type != Type::kNone && opcode.form == Form::kTwoTypes) {
        made.from = type->second;
      } else {
        made.type = type->second;
      }
    }
    decode(made, opcode, parts);
    if (made.kind == Kind::kBranch) {
      fixes_.emplace_back(function_->code.size(), operands.at(0));
      return;
    }
    if (made.kind == Kind::kTable) {
      made.operands.push_back(operand(operands.at(0), "b32"));
      tables_.emplace_back(function_->code.size(), operands.at(1));
      return;
    }
    std::string type = parts.back();
    bool stores = opcode.form == Form::kNoResult;
    bool by_parameter = base == "ld" && parts.size() > 1 && parts[1].rfind("param", 0) == 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::string& text = operands[i];
      auto& list = i == 0 && !stores ? made.to : made.operands;
      if (text[0] == '[') {
        address(made, text.substr(1, text.size() - 2), by_parameter);
      } else if (text[0] == '{') {
        Words group = split(text.substr(1, text.size() - 2), ',');
        for (const std::string& one : group) list.push_back(&list == &made.to ? target(one) : operand(one, type));
        if (&list == &made.operands) made.sizes.push_back(static_cast<uint8_t>(group.size()));
      } else if (&list == &made.to) {
        // `%p1|%p2`: of two results.
        for (const std::string& one : split(text, '|')) list.push_back(target(one));
      } else {
        list.push_back(operand(text, type));
        made.sizes.push_back(1);
      }
    }
  }

  // `[%rd1+16]`, `[name+4]`: the first operand, and an offset.
  void address(Instruction& made, const std::string& text, bool by_parameter) {
    size_t plus = text.find('+');
    std::string base = trimmed(text.substr(0, plus));
    int64_t& offset = made.offsets[std::min<int>(made.addresses++, 1)];
    if (plus != std::string::npos)
      offset = static_cast<int64_t>(std::stoll(trimmed(text.substr(plus + 1)), nullptr, 0));
    if (auto found = parameters_.find(base); by_parameter && found != parameters_.end()) {
      offset += static_cast<int64_t>(found->second);
      return;
    }
    made.operands.push_back(operand(base, "b64"));
    made.sizes.push_back(1);
  }

  int32_t target(const std::string& name) { return name == "_" ? -1 : slot(name); }

  int32_t slot(const std::string& name) {
    std::string key = name;
    for (size_t i = scopes_.size(); i-- > 0;) {
      if (scopes_[i].count(name)) {
        key = name + "@" + std::to_string(i);
        break;
      }
    }
    auto [found, is_new] = names_.try_emplace(key, function_->slots);
    if (is_new) ++function_->slots;
    return found->second;
  }

  int32_t operand(std::string text, const std::string& type) {
    static const std::map<std::string, Special> kNames = {
        {"%tid.x", kTidX},   {"%tid.y", kTidY},     {"%tid.z", kTidZ},     {"%ntid.x", kNtidX},
        {"%ntid.y", kNtidY}, {"%ntid.z", kNtidZ},   {"%ctaid.x", kCtaX},   {"%ctaid.y", kCtaY},
        {"%ctaid.z", kCtaZ}, {"%nctaid.x", kNctaX}, {"%nctaid.y", kNctaY}, {"%nctaid.z", kNctaZ},
        {"%laneid", kLane},  {"%warpid", kWarp},    {"%clock64", kClock},  {"%lanemask_lt", kActive}};
    bool negated = text[0] == '!';
    if (negated) throw std::runtime_error("a negated operand is not emulated");
    auto special = kNames.find(text);
    if (special != kNames.end()) {
      int32_t& found = function_->specials[special->second];
      if (found < 0) found = function_->slots++;
      return found;
    }
    if (text[0] == '%' || scoped(text)) return slot(text);
    if (text == dynamic_shared_ && !text.empty()) {
      int32_t made = function_->slots++;
      dynamic_uses_.emplace_back(made, text);
      return made;
    }
    if (auto found = parameters_.find(text); found != parameters_.end()) return constant(kParameters + found->second);
    if (auto found = locals_.find(text); found != locals_.end()) return constant(found->second);
    if (auto found = addresses_.find(text); found != addresses_.end()) return constant(found->second);
    return constant(immediate(text, type));
  }

  bool scoped(const std::string& name) const {
    for (const auto& scope : scopes_) {
      if (scope.count(name)) return true;
    }
    return false;
  }

  int32_t constant(uint64_t value) {
    auto [found, is_new] = constants_.try_emplace(value, function_->slots);
    if (is_new) {
      function_->constants.push_back({function_->slots++, value});
    }
    return found->second;
  }

  static uint64_t immediate(const std::string& text, const std::string& type) {
    if (text == "true" || text == "false") return text == "true";
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F') && text.size() == 10)
      return std::stoul(text.substr(2), nullptr, 16);
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D') && text.size() == 18)
      return std::stoull(text.substr(2), nullptr, 16);
    if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-'))
      throw std::runtime_error("an operand that is not known: " + text);
    uint64_t value =
        text[0] == '-' ? static_cast<uint64_t>(std::stoll(text, nullptr, 0)) : std::stoull(text, nullptr, 0);
    if (type == "pred") return value != 0;
    size_t bytes = 8;
    if (type.find_first_of("0123456789") != std::string::npos && type.find('x') == std::string::npos)
      bytes = type[0] == 'm' ? 8 : width(type);
    return bytes >= 8 ? value : value & ((1ull << (8 * bytes)) - 1);
  }

  std::string text_;
  size_t at_ = 0;
  std::unique_ptr<Module> module_;
  std::shared_ptr<Function> function_;
  std::map<std::string, int32_t> names_, labels_;
  std::map<uint64_t, int32_t> constants_;
  std::map<std::string, uint64_t> addresses_, locals_;
  std::map<std::string, size_t> parameters_;
  std::map<std::string, Words> table_labels_;
  std::vector<std::pair<size_t, std::string>> fixes_, tables_;
  std::vector<std::pair<int32_t, std::string>> dynamic_uses_;
  std::vector<std::set<std::string>> scopes_;
  std::string dynamic_shared_, last_label_;
  size_t shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse(const std::string& text) { return Parser(text).run(); }

}  // namespace emulator
