//===- Header.h - The summary before the first step -------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_HEADER_H
#define SHARDC_RT_SRC_TRAIN_HEADER_H

#include "shardc-rt/Executor.h"

#include <ostream>
#include <string>

namespace shardc::rt {

/// Writes the model, the mesh, its memory and its communication. `devices`
/// describes the devices, as "8 virtual CPU devices on 2 threads", and
/// `cpuTarget` is that of the executor's options.
void printHeader(const Plan &plan, const std::string &devices,
                 const std::string &cpuTarget, std::ostream &out);

/// Writes the memory of all devices together, if they share some.
void printMemory(const Executor &executor, std::ostream &out);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_HEADER_H
