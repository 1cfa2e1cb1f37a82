//===- LoadCompiler.cpp - Opens the compiler on demand --------------------===//

#include "CompileInput.h"

#include <dlfcn.h>
#include <unistd.h>

using namespace shardc::run;

std::string shardc::run::libraryPath(const std::string &name) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string program(path, length > 0 ? length : 0);
  std::string bin = program.substr(0, program.rfind('/'));
  return bin.substr(0, bin.rfind('/')) + "/lib/shardc/" + name;
}

std::string shardc::run::compilerPath() {
  return libraryPath("shardc-compiler.so");
}

CompileOutcome shardc::run::compileInput(const CompileRequest &request) {
  std::string path = compilerPath();
  if (access(path.c_str(), F_OK) != 0)
    return {exitWithoutCompiler, "",
            request.path + ": there is no compiler (" + path +
                "), so shardc-run runs plans (.shardc) alone; write one with "
                "shardc-compile\n"};
  // Never closed: LLVM runs destructors when the process ends.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "shardcCompileInput") : nullptr;
  if (!symbol)
    return {exitWithoutCompiler, "",
            request.path + ": the compiler cannot be loaded: " +
                std::string(dlerror()) + "\n"};
  CompileOutcome outcome;
  reinterpret_cast<decltype(&shardcCompileInput)>(symbol)(request, outcome);
  return outcome;
}
