//===- main.cpp - Trains a plan or a model --------------------------------===//

#include "Arguments.h"
#include "Session.h"

int main(int argc, char **argv) {
  int exitCode = 0;
  std::optional<shardc::run::Arguments> arguments =
      shardc::run::parseArguments(argc, argv, exitCode);
  return arguments ? shardc::run::runSession(*arguments) : exitCode;
}
