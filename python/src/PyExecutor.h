//===- PyExecutor.h - Plans and executors for Python ------------*- C++ -*-===//

#ifndef SHARDC_PYTHON_PYEXECUTOR_H
#define SHARDC_PYTHON_PYEXECUTOR_H

#include "Arrays.h"

#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Plan.h"

#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <utility>

namespace shardc::python {

struct PyPlan {
  std::shared_ptr<const rt::Plan> plan;
};

/// An executor and its context. It takes one call at a time; other threads
/// wait for their turn, without the GIL.
class PyExecutor {
public:
  PyExecutor(const PyPlan &plan, int threads, rt::ExecutorOptions options)
      : plan(plan.plan), context(take(rt::Context::create({threads}))),
        executor(take(
            rt::Executor::create(*context, plan.plan, std::move(options)))) {}

  /// Calls `function` with the executor, without the GIL.
  template <typename Function>
  auto call(Function function) {
    nanobind::gil_scoped_release release;
    std::lock_guard<std::mutex> lock(mutex);
    return function(*executor);
  }

  const std::shared_ptr<const rt::Plan> plan;

private:
  std::unique_ptr<rt::Context> context;
  std::unique_ptr<rt::Executor> executor;
  std::mutex mutex;
};

} // namespace shardc::python

#endif // SHARDC_PYTHON_PYEXECUTOR_H
