//===- PrintProfile.h - Where the time of a step went -----------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_PRINTPROFILE_H
#define SHARDC_TOOLS_SHARDC_RUN_PRINTPROFILE_H

#include "Devices.h"

#include "shardc-rt/Plan.h"
#include "trace/Profile.h"

#include <nlohmann/json_fwd.hpp>
#include <ostream>

namespace shardc::run {

/// A profile, and the rates that the workers or the GPU of the run attain
/// (--profile); 0: unknown.
struct ProfileReport {
  rt::Profile profile;
  double gemmFlops = 0;   ///< FLOP/s.
  double memoryBytes = 0; ///< Bytes per second, read and written.
  double cacheBytes = 0;
  double estimated = 0; ///< Seconds of a step, by the plan; 0: unknown.
  std::string machine;  ///< Of the estimate.
};

/// Measures the rates, which takes a third of a second. Of a GPU that cannot be
/// measured, for lack of memory perhaps, there are none.
ProfileReport reportProfile(const rt::Trace &trace, const rt::Plan &plan,
                            const Devices &devices);

/// Prints it, on one screen.
void printProfile(const ProfileReport &report, std::ostream &out);

nlohmann::ordered_json profileJson(const ProfileReport &report);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_PRINTPROFILE_H
