//===- PtxInterpreter.h - Runs a little of PTX ------------------*- C++ -*-===//
//
// Runs the runtime's PTX kernels on the host, one thread after the other. It
// has only the part of the language that they use. Addresses of global memory
// are those of the host. Semantics after NVIDIA's "PTX ISA".
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TEST_PTXINTERPRETER_H
#define SHARDC_RT_TEST_PTXINTERPRETER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardc::rt::test {

class PtxInterpreter {
public:
  /// Entry `name` of a module's text. `error` names the text that is not
  /// understood.
  PtxInterpreter(const std::string &ptx, const std::string &name);

  /// Runs a grid of `blocks` blocks of `threads` threads on parameters as
  /// cuLaunchKernel takes them. False, with `error` set, if an instruction is
  /// unknown, an access is not aligned, or a thread does not end.
  bool run(void *const *parameters, unsigned blocks, unsigned threads);

  std::string error;

private:
  struct Instruction {
    std::string guard;             ///< A predicate, or empty.
    std::vector<std::string> name; ///< "setp", "ge", "u64".
    std::vector<std::string> operands;
  };
  struct Parameter {
    size_t offset, bytes;
  };
  using Registers = std::map<std::string, uint64_t>;

  void parseParameters(const std::string &text);
  void parseBody(const std::string &text);
  bool runThread(Registers registers);
  /// False if it is unknown.
  bool execute(const Instruction &instruction, Registers &registers);
  uint64_t value(const std::string &operand, const Registers &registers) const;
  uint64_t addressIn(const std::string &operand,
                     const Registers &registers) const;
  /// Loads or stores an element or a vector.
  bool access(const Instruction &instruction, Registers &registers);

  std::vector<Instruction> instructions;
  std::map<std::string, size_t> labels;
  std::map<std::string, Parameter> parameters;
  std::vector<char> parameterBlock;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_PTXINTERPRETER_H
