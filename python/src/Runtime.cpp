//===- Runtime.cpp - The runtime for Python -------------------------------===//
//
// Plans, executors, data sets and training. Calls that take long release the
// GIL.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "PyExecutor.h"

#include "shardc-rt/Checkpoint.h"
#include "shardc-rt/Dataset.h"
#include "shardc-rt/Trainer.h"

#include <chrono>
#include <filesystem>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sstream>

namespace nb = nanobind;
using namespace shardc::rt;
using namespace shardc::python;

namespace {

/// Raises shardc._errors.from_status(code, text).
void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const StatusError &error) {
    nb::object made = nb::module_::import_("shardc._errors")
                          .attr("from_status")(error.code, error.text);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(made.ptr())),
                    made.ptr());
  }
}

/// The results of a run.
struct PyResult {
  double loss, seconds, communicationSeconds;
  uint64_t wireBytes;
  nb::dict arrays;
};

PyResult run(PyExecutor &executor, const std::string &program,
             nb::dict arrays) {
  Inputs inputs(arrays);
  RunResult result = executor.call(
      [&](Executor &each) { return take(each.run(program, inputs.views)); });
  PyResult made = {result.loss, result.seconds, result.communicationSeconds,
                   result.wireBytes, nb::dict()};
  for (auto &[name, array] : result.results)
    made.arrays[name.c_str()] = toNumpy(std::move(array));
  return made;
}

void setTensor(PyExecutor &executor, const std::string &name, nb::dict arrays) {
  Inputs inputs(arrays);
  executor.call([&](Executor &each) {
    check(each.setTensor(name, inputs.views.at(name)));
  });
}

nb::object getTensor(PyExecutor &executor, const std::string &name) {
  return toNumpy(executor.call(
      [&](Executor &each) { return take(each.getTensor(name)); }));
}

/// Sets all parameters from an archive, or parameters and states from the
/// checkpoint that the folder `path` is.
void load(PyExecutor &executor, const std::string &path) {
  executor.call([&](Executor &each) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
      check(take(Checkpoint::open(path))->load(each));
    else
      check(loadParameters(each, path));
  });
}

/// The steps of one call of `PyTraining::advance`.
struct PyRecord {
  int64_t step, epoch, steps;
  double loss, lastLoss, seconds, samplesPerSecond;
};

/// A training that goes on call by call. It has the order of the rows that
/// shardc-run has with the same seed.
class PyTraining {
public:
  PyTraining(PyExecutor &executor, const Dataset &given, uint64_t seed,
             bool shuffle)
      : executor(executor), dataset(given) {
    check(fitToPlan(*executor.plan, dataset));
    options.seed = seed;
    options.shuffle = shuffle;
  }

  int64_t stepsPerEpoch() const {
    return dataset.rows / executor.plan->batchSize();
  }
  int64_t steps() const { return progress.steps; }
  uint64_t seed() const { return options.seed; }

  /// Goes on from a checkpoint in `folder`: that of a step, or, if `step` is
  /// negative, the one that was written last.
  void resume(const std::string &folder, int64_t step) {
    executor.call([&](Executor &each) {
      std::unique_ptr<Checkpoint> checkpoint;
      if (step < 0) {
        checkpoint = take(loadLatestCheckpoint(folder, each));
      } else {
        checkpoint =
            take(Checkpoint::open(folder + "/step-" + std::to_string(step)));
        check(checkpoint->load(each));
      }
      progress = checkpoint->progress();
    });
    options.seed = progress.seed;
    options.shuffle = progress.shuffle;
    savedSteps = progress.steps;
  }

  /// Writes checkpoints into `folder` from now on: every so many steps, if
  /// `every` is not 0, and at `finish`. Unless the training `goesOn`, none may
  /// be there.
  void openCheckpoints(const std::string &folder, int64_t every, int64_t keep,
                       bool goesOn) {
    nb::gil_scoped_release release;
    CheckpointOptions settings;
    settings.folder = folder;
    settings.keep = keep;
    settings.goesOn = goesOn;
    writer = take(CheckpointWriter::open(std::move(settings)));
    check(writer->reserve(*executor.plan));
    saveEvery = every;
  }

  /// Writes the checkpoint of the last step, unless that failed, and waits for
  /// all.
  void finish() {
    if (!writer)
      return;
    if (isKnown && progress.steps != savedSteps)
      executor.call([&](Executor &each) { check(save(each, progress)); });
    {
      nb::gil_scoped_release release;
      writer->wait();
    }
    checkWrites();
    writer.reset();
  }

  /// Trains `steps` steps. `onProgress` is called now and then with the number
  /// of those that have ended; signals of Python end the call.
  PyRecord advance(int64_t steps, nb::object onProgress) {
    using Clock = std::chrono::steady_clock;
    TrainOptions now = options;
    now.start = progress;
    now.steps = progress.steps + steps;
    double sum = 0;
    int64_t done = 0;
    Clock::time_point last = Clock::now();
    // The error is raised once training has ended in good order.
    bool isInterrupted = false;
    now.onStep = [&](const StepRecord &, const RunResult &result) {
      sum += result.loss;
      ++done;
      return absl::OkStatus();
    };
    now.shouldSave = [&](int64_t steps) {
      return writer && saveEvery > 0 && steps % saveEvery == 0;
    };
    now.shouldStop = [&] {
      if (Clock::now() - last < std::chrono::milliseconds(100))
        return isInterrupted;
      last = Clock::now();
      nb::gil_scoped_acquire acquire;
      isInterrupted = PyErr_CheckSignals() != 0;
      if (!isInterrupted && !onProgress.is_none())
        try {
          onProgress(done);
        } catch (nb::python_error &error) {
          error.restore();
          isInterrupted = true;
        }
      return isInterrupted;
    };
    isKnown = false;
    std::ostringstream silent;
    Clock::time_point begin = Clock::now();
    TrainSummary summary = executor.call([&](Executor &each) {
      now.onSave = [&](const TrainProgress &reached) {
        return save(each, reached);
      };
      return take(train(each, dataset, now, silent));
    });
    progress = summary.progress;
    isKnown = true;
    if (isInterrupted)
      throw nb::python_error();
    checkWrites();
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    int64_t perEpoch = std::max<int64_t>(1, stepsPerEpoch());
    return {progress.steps,
            (progress.steps + perEpoch - 1) / perEpoch,
            done,
            done ? sum / done : 0,
            summary.finalLoss,
            seconds,
            seconds > 0 ? done * executor.plan->batchSize() / seconds : 0};
  }

private:
  absl::Status save(const Executor &each, const TrainProgress &reached) {
    savedSteps = reached.steps;
    return writer->save(each, reached);
  }

  /// Raises the error of a checkpoint that could not be written.
  void checkWrites() {
    if (!writer)
      return;
    for (const CheckpointResult &result : writer->takeResults())
      check(result.status);
  }

  PyExecutor &executor;
  Dataset dataset;
  TrainOptions options;
  TrainProgress progress;
  std::unique_ptr<CheckpointWriter> writer;
  int64_t saveEvery = 0;
  int64_t savedSteps = -1; ///< Those of the last checkpoint.
  bool isKnown = false;    ///< The executor is where `progress` says.
};

} // namespace

void shardc::python::bindRuntime(nb::module_ &module) {
  nb::register_exception_translator(translate);
  nb::class_<PyPlan>(module, "Plan")
      .def_static(
          "parse",
          [](nb::bytes bytes) {
            return PyPlan{
                take(Plan::parse(std::string(bytes.c_str(), bytes.size())))};
          },
          nb::arg("bytes"))
      .def_prop_ro("is_for_gpu",
                   [](const PyPlan &self) { return self.plan->isForGpu(); })
      .def("tensors", [](const PyPlan &self) {
        nb::list list;
        for (const TensorInfo &tensor : self.plan->tensors()) {
          nb::list shape;
          for (int64_t size : tensor.shape)
            shape.append(size);
          absl::string_view role = toString(tensor.role);
          absl::string_view dtype = toString(tensor.dtype);
          list.append(nb::make_tuple(
              tensor.name, nb::str(role.data(), role.size()),
              nb::str(dtype.data(), dtype.size()), nb::tuple(shape)));
        }
        return list;
      });
  nb::class_<PyResult>(module, "Result")
      .def_ro("loss", &PyResult::loss)
      .def_ro("seconds", &PyResult::seconds)
      .def_ro("communication_seconds", &PyResult::communicationSeconds)
      .def_ro("wire_bytes", &PyResult::wireBytes)
      .def_ro("arrays", &PyResult::arrays);
  nb::class_<PyExecutor>(module, "Executor")
      .def(
          "__init__",
          [](PyExecutor *self, const PyPlan &plan, uint64_t seed, int threads,
             bool poisonPadding, bool shareReplicas, bool orderedSums,
             const std::string &cpuTarget) {
            ExecutorOptions options;
            options.seed = seed;
            options.poisonPadding = poisonPadding;
            options.shareReplicas = shareReplicas;
            options.orderedSums = orderedSums;
            options.cpuTarget = cpuTarget;
            new (self) PyExecutor(plan, threads, std::move(options));
          },
          nb::arg("plan"), nb::kw_only(), nb::arg("seed"), nb::arg("threads"),
          nb::arg("poison_padding"), nb::arg("share_replicas"),
          nb::arg("ordered_sums"), nb::arg("cpu_target"))
      .def("initialize",
           [](PyExecutor &self) {
             self.call(
                 [](Executor &each) { check(each.initializeParameters()); });
           })
      .def("run", run, nb::arg("program"), nb::arg("arrays"))
      .def("set", setTensor, nb::arg("name"), nb::arg("arrays"))
      .def("get", getTensor, nb::arg("name"))
      .def("load", load, nb::arg("path"))
      .def(
          "save",
          [](PyExecutor &self, const std::string &path) {
            self.call(
                [&](Executor &each) { check(saveParameters(each, path)); });
          },
          nb::arg("path"))
      .def(
          "evaluate",
          [](PyExecutor &self, Dataset dataset) {
            Evaluation result = self.call([&](Executor &each) {
              check(fitToPlan(*self.plan, dataset));
              return take(evaluate(each, dataset));
            });
            return nb::make_tuple(result.rows, result.loss, result.correct);
          },
          nb::arg("dataset"))
      .def(
          "predict",
          [](PyExecutor &self, nb::dict arrays) {
            Inputs inputs(arrays);
            return toNumpy(self.call([&](Executor &each) {
              return take(predict(each, inputs.views));
            }));
          },
          nb::arg("rows"))
      .def(
          "predict",
          [](PyExecutor &self, Dataset dataset) {
            return toNumpy(self.call([&](Executor &each) {
              check(fitToPlan(*self.plan, dataset, "predict"));
              return take(predict(each, dataset));
            }));
          },
          nb::arg("rows"));
  nb::class_<Dataset>(module, "Dataset")
      .def_static(
          "load",
          [](const std::string &spec, const std::string &folder,
             uint64_t seed) {
            DatasetOptions options;
            options.seed = seed;
            options.dataDirs = {folder};
            nb::gil_scoped_release release;
            return take(loadDataset(spec, options));
          },
          nb::arg("spec"), nb::arg("folder"), nb::arg("seed"))
      .def_static(
          "from_arrays",
          [](nb::dict arrays) {
            Inputs inputs(arrays);
            Dataset dataset;
            dataset.name = "arrays";
            for (const auto &[name, view] : inputs.views)
              dataset.arrays.emplace(name, view);
            return dataset;
          },
          nb::arg("arrays"));
  nb::class_<PyRecord>(module, "Record")
      .def_ro("step", &PyRecord::step)
      .def_ro("epoch", &PyRecord::epoch)
      .def_ro("steps", &PyRecord::steps)
      .def_ro("loss", &PyRecord::loss)
      .def_ro("last_loss", &PyRecord::lastLoss)
      .def_ro("seconds", &PyRecord::seconds)
      .def_ro("samples_per_second", &PyRecord::samplesPerSecond);
  nb::class_<PyTraining>(module, "Training")
      .def(nb::init<PyExecutor &, const Dataset &, uint64_t, bool>(),
           nb::keep_alive<1, 2>(), nb::arg("executor"), nb::arg("dataset"),
           nb::kw_only(), nb::arg("seed"), nb::arg("shuffle"))
      .def_prop_ro("steps_per_epoch", &PyTraining::stepsPerEpoch)
      .def_prop_ro("steps", &PyTraining::steps)
      .def_prop_ro("seed", &PyTraining::seed)
      .def("resume", &PyTraining::resume, nb::arg("folder"), nb::arg("step"))
      .def("open_checkpoints", &PyTraining::openCheckpoints, nb::arg("folder"),
           nb::arg("every"), nb::arg("keep"), nb::arg("goes_on"))
      .def("finish", &PyTraining::finish)
      .def("advance", &PyTraining::advance, nb::arg("steps"),
           nb::arg("on_progress").none());
}
