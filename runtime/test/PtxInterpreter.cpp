//===- PtxInterpreter.cpp - Runs a little of PTX --------------------------===//

#include "PtxInterpreter.h"

#include "base/Convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

using namespace shardc::rt;
using namespace shardc::rt::test;

static std::string trim(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(trim(part));
  return parts;
}

/// Bytes of a type such as "u64".
static size_t widthOf(const std::string &type) {
  return std::stoul(type.substr(1)) / 8;
}

template <typename T>
static T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

PtxInterpreter::PtxInterpreter(const std::string &ptx,
                               const std::string &name) {
  size_t entry = ptx.find(".entry " + name + "(");
  if (entry == std::string::npos) {
    error = "no entry " + name;
    return;
  }
  size_t open = ptx.find('(', entry), close = ptx.find(")\n{", open);
  parseParameters(ptx.substr(open + 1, close - open - 1));
  size_t body = close + 3;
  parseBody(ptx.substr(body, ptx.find("\n}", body) - body));
}

void PtxInterpreter::parseParameters(const std::string &text) {
  size_t offset = 0;
  for (const std::string &parameter : split(text, ',')) {
    std::string name = parameter.substr(parameter.find_last_of(" .") + 1);
    size_t bytes = 0;
    if (size_t open = name.find('['); open != std::string::npos) {
      bytes = std::stoul(name.substr(open + 1));
      name.resize(open);
      offset = (offset + 7) / 8 * 8;
    } else {
      bytes = parameter.find(".u64") != std::string::npos ? 8 : 4;
      offset = (offset + bytes - 1) / bytes * bytes;
    }
    parameters[name] = {offset, bytes};
    offset += bytes;
  }
  parameterBlock.resize(offset);
}

void PtxInterpreter::parseBody(const std::string &text) {
  for (std::string statement : split(text, ';')) {
    for (size_t colon; (colon = statement.find(':')) != std::string::npos;) {
      labels[trim(statement.substr(0, colon))] = instructions.size();
      statement = trim(statement.substr(colon + 1));
    }
    if (statement.empty() || statement[0] == '.')
      continue;
    Instruction instruction;
    if (statement[0] == '@') {
      size_t space = statement.find(' ');
      instruction.guard = statement.substr(1, space - 1);
      statement = trim(statement.substr(space));
    }
    size_t space = std::min(statement.find(' '), statement.size());
    instruction.name = split(statement.substr(0, space), '.');
    std::string operands = statement.substr(space);
    // {%a, %b} is one operand.
    if (size_t open = operands.find('{'); open != std::string::npos)
      std::replace(operands.begin() + open,
                   operands.begin() + operands.find('}'), ',', '|');
    instruction.operands = split(operands, ',');
    instructions.push_back(std::move(instruction));
  }
}

bool PtxInterpreter::run(void *const *arguments, unsigned blocks,
                         unsigned threads) {
  if (!error.empty())
    return false;
  std::vector<std::pair<size_t, size_t>> inOrder;
  for (const auto &[name, parameter] : parameters)
    inOrder.push_back({parameter.offset, parameter.bytes});
  std::sort(inOrder.begin(), inOrder.end());
  for (size_t i = 0; i < inOrder.size(); ++i)
    std::memcpy(&parameterBlock[inOrder[i].first], arguments[i],
                inOrder[i].second);
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned thread = 0; thread < threads; ++thread)
      if (!runThread({{"%ctaid.x", block},
                      {"%nctaid.x", blocks},
                      {"%ntid.x", threads},
                      {"%tid.x", thread}}))
        return false;
  return true;
}

bool PtxInterpreter::runThread(Registers registers) {
  size_t next = 0;
  for (int64_t steps = 0; next < instructions.size(); ++steps) {
    if (steps > 1000000) {
      error = "a thread does not end";
      return false;
    }
    const Instruction &instruction = instructions[next++];
    if (!instruction.guard.empty() && !value(instruction.guard, registers))
      continue;
    if (instruction.name[0] == "ret")
      return true;
    if (instruction.name[0] == "bra") {
      auto label = labels.find(instruction.operands[0]);
      if (label == labels.end()) {
        error = "no label " + instruction.operands[0];
        return false;
      }
      next = label->second;
      continue;
    }
    if (!execute(instruction, registers)) {
      error = "unknown or not aligned: instruction";
      for (const std::string &part : instruction.name)
        error += " " + part;
      return false;
    }
  }
  error = "no ret at the end";
  return false;
}

uint64_t PtxInterpreter::value(const std::string &operand,
                               const Registers &registers) const {
  if (auto parameter = parameters.find(operand); parameter != parameters.end())
    return reinterpret_cast<uintptr_t>(parameterBlock.data()) +
           parameter->second.offset;
  if (operand[0] != '%')
    return std::stoull(operand);
  auto found = registers.find(operand);
  // Memory that nobody has written holds no meaningful number.
  return found == registers.end() ? 0xdeadbeefdeadbeef : found->second;
}

uint64_t PtxInterpreter::addressIn(const std::string &operand,
                                   const Registers &registers) const {
  std::vector<std::string> terms =
      split(operand.substr(1, operand.size() - 2), '+');
  return value(terms[0], registers) +
         (terms.size() > 1 ? std::stoull(terms[1]) : 0);
}

/// "less than", "NaN" and so on of two values of T.
template <typename T>
static bool compare(const std::string &how, uint64_t left, uint64_t right) {
  T a = as<T>(left), b = as<T>(right);
  return how == "ge"   ? a >= b
         : how == "lt" ? a < b
         : how == "eq" ? a == b
         : how == "gt"
             ? a > b
             : how == "nan" && (std::isnan(double(a)) || std::isnan(double(b)));
}

bool PtxInterpreter::access(const Instruction &instruction,
                            Registers &registers) {
  const bool isLoad = instruction.name[0] == "ld";
  const size_t bytes = widthOf(instruction.name.back());
  uint64_t address = addressIn(instruction.operands[isLoad ? 1 : 0], registers);
  std::string elements = instruction.operands[isLoad ? 0 : 1];
  if (elements[0] == '{')
    elements = elements.substr(1, elements.size() - 2);
  const std::vector<std::string> names = split(elements, '|');
  if (address % (bytes * names.size()) != 0)
    return false;
  for (const std::string &name : names) {
    auto *memory = reinterpret_cast<char *>(address);
    uint64_t bits = isLoad ? 0 : value(name, registers);
    if (isLoad) {
      std::memcpy(&bits, memory, bytes);
      registers[name] = bits;
    } else {
      std::memcpy(memory, &bits, bytes);
    }
    address += bytes;
  }
  return true;
}

bool PtxInterpreter::execute(const Instruction &instruction,
                             Registers &registers) {
  const std::string &op = instruction.name[0], &type = instruction.name.back();
  std::string what;
  for (const std::string &part : instruction.name)
    what += (what.empty() ? "" : ".") + part;
  auto in = [&](size_t i) { return value(instruction.operands[i], registers); };
  auto put = [&](uint64_t bits) {
    registers[instruction.operands[0]] = bits;
    return true;
  };
  if (op == "ld" || op == "st")
    return access(instruction, registers);
  if (op == "mov") {
    uint64_t mask = type == "pred" || widthOf(type) == 8
                        ? ~uint64_t(0)
                        : (uint64_t(1) << widthOf(type) * 8) - 1;
    return put(in(1) & mask);
  }
  if (op == "setp") {
    const std::string &how = instruction.name[1];
    if (type == "u64")
      return put(compare<uint64_t>(how, in(1), in(2)));
    if (type == "u32")
      return put(compare<uint32_t>(how, in(1), in(2)));
    if (type == "f32")
      return put(compare<float>(how, in(1), in(2)));
    if (type == "f64")
      return put(compare<double>(how, in(1), in(2)));
    return false;
  }
  if (what == "add.u64" || what == "add.s64")
    return put(in(1) + in(2));
  if (what == "add.u32" || what == "add.s32")
    return put(uint32_t(in(1) + in(2)));
  if (what == "add.rn.f32")
    return put(bitsOf(as<float>(in(1)) + as<float>(in(2))));
  if (what == "add.rn.f64")
    return put(bitsOf(as<double>(in(1)) + as<double>(in(2))));
  if (what == "sub.u64")
    return put(in(1) - in(2));
  if (what == "sub.u32")
    return put(uint32_t(in(1) - in(2)));
  if (what == "min.u64")
    return put(std::min(in(1), in(2)));
  if (what == "mul.lo.u64")
    return put(in(1) * in(2));
  if (what == "mul.wide.u32")
    return put(uint64_t(uint32_t(in(1))) * uint32_t(in(2)));
  if (what == "mad.lo.u64")
    return put(in(1) * in(2) + in(3));
  if (what == "mad.lo.u32")
    return put(uint32_t(in(1) * in(2) + in(3)));
  if (what == "div.u32")
    return put(uint32_t(in(1)) / uint32_t(in(2)));
  if (what == "shl.b64")
    return put(in(1) << in(2));
  if (what == "shl.b32")
    return put(uint32_t(in(1) << in(2)));
  if (what == "cvt.u64.u32" || what == "cvt.u32.u64")
    return put(uint32_t(in(1)));
  if (what == "cvt.rn.bf16x2.f32") {
    auto round = [&](size_t i) -> uint64_t {
      const float value = as<float>(in(i));
      return std::isnan(value) ? 0x7fff : toBF16(value);
    };
    return put(round(1) << 16 | round(2));
  }
  if (what == "and.b32")
    return put(uint32_t(in(1) & in(2)));
  if (what == "or.b32")
    return put(uint32_t(in(1) | in(2)));
  if (what == "and.pred")
    return put(in(1) && in(2));
  if (what == "or.pred")
    return put(in(1) || in(2));
  if (what == "max.s32")
    return put(bitsOf(std::max(as<int32_t>(in(1)), as<int32_t>(in(2)))));
  if (what == "max.s64")
    return put(bitsOf(std::max(as<int64_t>(in(1)), as<int64_t>(in(2)))));
  return false;
}
