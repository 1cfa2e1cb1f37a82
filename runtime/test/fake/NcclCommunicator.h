//===- NcclCommunicator.h - Who takes part in a collective ------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_FAKE_NCCLCOMMUNICATOR_H
#define SHARDC_RT_TEST_FAKE_NCCLCOMMUNICATOR_H

#include "Communication.h"

namespace shardc::rt::cuda {

struct ncclComm {
  std::shared_ptr<test::Communication> communication =
      std::make_shared<test::Communication>();
  CUcontext context = test::current;
  bool isComplete = false; ///< All have come.
  bool ends = false;
  int polls = 1; ///< Answers that it is still busy.
  struct Split {
    int number;
    ncclComm_t part;
    int color, key;
  };
  std::vector<Split> splits;
  int splitsSoFar = 0;

  /// Its answer to a poll, which depends on the progress of the others.
  ncclResult_t state();

private:
  bool resolve(const Split &split);
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_TEST_FAKE_NCCLCOMMUNICATOR_H
