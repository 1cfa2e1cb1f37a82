//===- UsableCpus.h - The CPUs that this process may use --------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_USABLECPUS_H
#define SHARDC_RT_SRC_BASE_USABLECPUS_H

#include <string>

namespace shardc::rt {

struct UsableCpus {
  int online;       ///< Of the machine; hyper-threads count as CPUs.
  int allowed;      ///< In the affinity mask (taskset, cpuset, launchers).
  double quota = 0; ///< Of the control group, in CPUs (1.5); 0: none.

  /// As many threads as can run at the same time: those of the mask, but no
  /// more than the quota, rounded up.
  int count() const;
  /// "1 of 2 CPUs by affinity", "CPU quota 1.5", both, or nothing.
  std::string limits() const;
};

/// Of the calling thread.
UsableCpus findUsableCpus();

/// The CPU quota of the control groups that `groups` lists (the content of
/// /proc/self/cgroup) and of those above them, in files under `root`
/// (/sys/fs/cgroup): `cpu.max` of version 2, `cpu.cfs_quota_us` and
/// `cpu.cfs_period_us` of version 1. The least of them, in CPUs; 0: none.
double readCpuQuota(const std::string &groups, const std::string &root);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_USABLECPUS_H
