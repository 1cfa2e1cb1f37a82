//===- RandomProgram.h - A source module made by chance ---------*- C++ -*-===//
//
// Small programs with a little of everything that a partitioner can meet:
// meshes of one to three axes of sizes 1, 2, 3, 4 and 6, shapes that do not
// divide, most ops of the core and the composites, values used several times,
// annotations that agree or not, open and closed, with priorities and excluded
// axes, constraints, shardings of gradients and states.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_TOOLS_RANDOMPROGRAM_H
#define SHARDC_TEST_TOOLS_RANDOMPROGRAM_H

#include <cstdint>
#include <string>

namespace shardc::test {

/// The text of program `seed`; the same on every machine.
std::string makeRandomProgram(uint64_t seed);

} // namespace shardc::test

#endif // SHARDC_TEST_TOOLS_RANDOMPROGRAM_H
