//===- KernelLibrary.cpp - A plan's machine code, loaded ------------------===//

#include "exec/KernelLibrary.h"

#include "plan/CpuFeatures.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace shardc::rt;

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

static std::string missingFeature(const CpuCode &code) {
  for (const std::string &feature : code.features)
    if (!cpuHasFeature(feature))
      return feature;
  return "";
}

/// The version of the code that runs. Errors: InvalidArgument, Unavailable.
static absl::StatusOr<const std::string *>
chooseCode(const PlanSpec &plan, const std::string &cpuTarget) {
  std::string known = plan.cpuTarget;
  for (const CpuCode &code : plan.codeVersions) {
    std::string missing = missingFeature(code);
    if (cpuTarget.empty() ? missing.empty() : cpuTarget == code.cpuTarget) {
      if (missing.empty())
        return &code.code;
      return absl::UnavailableError(absl::StrCat("this CPU lacks ", missing,
                                                 ", which code for ", cpuTarget,
                                                 " needs"));
    }
    absl::StrAppend(&known, ", ", code.cpuTarget);
  }
  if (cpuTarget.empty() || cpuTarget == plan.cpuTarget)
    return &plan.code;
  return absl::InvalidArgumentError(
      absl::StrCat("the plan has no code for the CPU target \"", cpuTarget,
                   "\": expected one of ", known));
}

absl::StatusOr<std::unique_ptr<KernelLibrary>>
KernelLibrary::load(const PlanSpec &plan, const std::string &cpuTarget) {
  if (!plan.gpuTarget.empty())
    return absl::UnavailableError(absl::StrCat(
        "the plan is for GPUs (", plan.gpuTarget,
        "), and these devices are CPUs: compile the model for them"));
  absl::StatusOr<const std::string *> chosen = chooseCode(plan, cpuTarget);
  if (!chosen.ok())
    return chosen.status();
  const std::string &code = **chosen;
  std::unique_ptr<KernelLibrary> library(new KernelLibrary);
  if (plan.kernels.empty())
    return library;
  library->file = memfd_create("shardc-kernels", MFD_CLOEXEC);
  if (library->file < 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot hold the plan's machine code in memory: ",
                     std::strerror(errno)));
  size_t written = 0;
  while (written < code.size()) {
    ssize_t count =
        write(library->file, code.data() + written, code.size() - written);
    if (count <= 0)
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot hold the plan's machine code in memory: ",
                       std::strerror(errno)));
    written += count;
  }
  library->handle =
      dlopen(absl::StrCat("/proc/self/fd/", library->file).c_str(),
             RTLD_NOW | RTLD_LOCAL);
  if (!library->handle)
    return absl::DataLossError(
        absl::StrCat("the plan's machine code does not load: ", dlerror()));
  for (const std::string &name : plan.kernels) {
    void *symbol = dlsym(library->handle, name.c_str());
    if (!symbol)
      return absl::DataLossError(
          absl::StrCat("the plan's machine code has no kernel \"", name, "\""));
    library->kernels.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  return library;
}
