//===- ExtractCode.cpp - The code of a plan -------------------------------===//
//
//   extract-code PLAN FILE
//
// Writes the code of a plan's kernels, a shared object or PTX, to a file.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanSpec.h"

#include <fstream>
#include <iostream>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "extract-code: expected a plan and a file\n";
    return 1;
  }
  auto plan = shardc::rt::Plan::loadFile(argv[1]);
  if (!plan.ok()) {
    std::cerr << "extract-code: " << plan.status().message() << "\n";
    return 2;
  }
  std::ofstream file(argv[2], std::ios::binary);
  file << (*plan)->spec().code;
  return file.flush() ? 0 : 2;
}
