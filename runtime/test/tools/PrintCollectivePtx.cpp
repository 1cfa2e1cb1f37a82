//===- PrintCollectivePtx.cpp - The PTX that the runtime has --------------===//
//
// Writes the kernels of collectives to standard output, for an assembler.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CollectivePtx.h"

#include <iostream>

int main() { std::cout << shardc::rt::cuda::collectivePtx(); }
