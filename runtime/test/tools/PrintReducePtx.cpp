//===- PrintReducePtx.cpp - The PTX that the runtime has ------------------===//
//
// Writes the kernels of collectives to standard output, for an assembler.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/ReduceKernels.h"

#include <iostream>

int main() { std::cout << shardc::rt::cuda::reducePtx(); }
