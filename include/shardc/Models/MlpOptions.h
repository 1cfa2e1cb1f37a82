//===- MlpOptions.h - The options of an MLP by name -------------*- C++ -*-===//
//
// The fields of MlpSpec as texts, under the names of shardc-gen's flags. Pure
// functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MODELS_MLPOPTIONS_H
#define SHARDC_MODELS_MLPOPTIONS_H

#include "shardc/Models/Mlp.h"

#include <string>
#include <vector>

namespace shardc {

/// "layers", "activation", ...: a name for each field of MlpSpec.
std::vector<std::string> getMlpOptionNames();

/// Sets the field `name` of `spec` from `text`. Returns an error that begins
/// with the name, or says that there is no such name, or "". `checkMlp` checks
/// the values themselves.
std::string setMlpOption(llvm::StringRef name, llvm::StringRef text,
                         MlpSpec &spec);

} // namespace shardc

#endif // SHARDC_MODELS_MLPOPTIONS_H
