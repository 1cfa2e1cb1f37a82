//===- Trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// Epochs over a data set, with progress for a person and metrics for a program.
// An optional layer over Executor: a host may also call `step` itself.
//
// Thread-safety: each function makes calls of the executor that it is given,
// and so is one of the calls that an executor takes one at a time. `train`
// calls `onBatch` and `onStep` on the calling thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TRAINER_H
#define SHARDC_RT_TRAINER_H

#include "shardc-rt/Dataset.h"
#include "shardc-rt/Errors.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Export.h"
#include "shardc-rt/Trace.h"

#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace shardc::rt {

/// How far a training is, between two steps: all that the further steps depend
/// on, beside parameters and states. Of checkpoints (Checkpoint.h).
struct TrainProgress {
  int64_t steps = 0; ///< That have ended.
  double firstLoss = 0;
  double finalLoss = 0;
  /// Of the steps of the present epoch.
  double epochLossSum = 0;
  /// The order of the data.
  int64_t rows = 0;
  int64_t batchSize = 0;
  uint64_t seed = 0;
  bool shuffle = true;

  int64_t stepsPerEpoch() const { return batchSize ? rows / batchSize : 0; }
  /// That of the next step, from 1.
  int64_t epoch() const {
    return stepsPerEpoch() ? steps / stepsPerEpoch() + 1 : 1;
  }
  /// Steps of that epoch that have ended.
  int64_t stepInEpoch() const {
    return stepsPerEpoch() ? steps % stepsPerEpoch() : 0;
  }
};

/// The progress of training when a step has ended.
struct StepRecord {
  int64_t step = 0; ///< From 1.
  /// All that training takes, unless it is stopped.
  int64_t steps = 0;
  int64_t epoch = 0;       ///< From 1.
  int64_t stepInEpoch = 0; ///< From 1.
  int64_t stepsPerEpoch = 0;
  double samplesPerSecond = 0;
  double secondsLeft = 0; ///< At the speed so far.
};

struct EpochSummary {
  int64_t epoch = 0; ///< From 1.
  int64_t steps = 0; ///< Fewer if training ended in this epoch.
  double meanLoss = 0;
  double seconds = 0;
};

struct TrainOptions {
  /// Stop after this many epochs or steps, whichever comes first; 0: no limit.
  /// Neither given: one epoch.
  int64_t epochs = 0;
  int64_t steps = 0;
  /// Of the order of the rows.
  uint64_t seed = 0;
  bool shuffle = true;
  /// Where the training goes on, with the parameters and states that the
  /// executor has; steps and epochs above count from the very beginning. Its
  /// order of the data must be that of this training.
  TrainProgress start;
  /// The number of steps per line if there is no progress bar; 0: no lines.
  int64_t logEvery = 0;
  /// Draw a progress bar (the output is a terminal).
  bool progressBar = false;
  /// Called with the batch of every step before it begins, and with its result
  /// when it has ended. Where several runs can be in flight, the next ones have
  /// begun by then. An error ends the training; a loss that is not finite does
  /// so after `onStep`.
  std::function<absl::Status(const Batch &)> onBatch;
  /// Called before `onBatch`, when the batch is asked for, with the number of
  /// its step from 1 on; a thread may have gathered it by then.
  std::function<void(int64_t)> beforeBatch;
  std::function<absl::Status(const StepRecord &, const RunResult &)> onStep;
  /// Whether `onBatch` needs all rows of a batch, also those that only devices
  /// of other processes take, which are read otherwise by these alone.
  bool wholeBatches = false;
  /// Called after the line of an epoch, the last one included, when no run is
  /// in flight. An error ends the training.
  std::function<absl::Status(const EpochSummary &)> onEpoch;
  /// Asked between two steps, with the number of those that have begun: whether
  /// to save the training when they have ended. Then no run is in flight, and
  /// `onSave` is called. An error ends the training.
  std::function<bool(int64_t)> shouldSave;
  std::function<absl::Status(const TrainProgress &)> onSave;
  /// Asked before each step begins. Once it returns true no further step
  /// begins; training ends in good order with the steps that have begun. Not a
  /// signal handler: it is called from `train` alone.
  std::function<bool()> shouldStop;
  /// Gets spans of the host: batches that are prepared, and waits for them. The
  /// executor's are set there. Null: none.
  Trace *trace = nullptr;
};

/// The result of `evaluate`.
struct Evaluation {
  int64_t rows = 0;
  double loss = 0;
  /// Correct rows, or -1 if the model has no notion of it.
  int64_t correct = -1;
};

/// The result of `train`. Without a step, losses and rates are 0.
struct TrainSummary {
  /// All that have ended, from the very beginning.
  int64_t steps = 0;
  int64_t firstStep = 0; ///< Those of them before this call.
  TrainProgress progress;
  /// `shouldStop` ended the training before all steps had begun.
  bool isStopped = false;
  double firstLoss = 0; ///< Of the very first step.
  double finalLoss = 0;
  std::vector<EpochSummary> epochs;
  double seconds = 0;
  double samplesPerSecond = 0;
  double communicationShare = 0; ///< NaN if it was not measured.
  uint64_t wireBytesPerStep = 0;
  /// Of a pipeline, if it was measured.
  std::optional<PipelineBubble> bubble;
};

/// The number of the last step of a training, counted from the very beginning,
/// if nothing ends it before. InvalidArgument: `dataset` has fewer rows than a
/// batch.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<int64_t>
lastStepOf(const TrainOptions &options, const Dataset &dataset,
           int64_t batchSize);

/// Trains on `dataset`, which fits the executor's plan, with as many steps in
/// flight as the executor takes. OutOfRange: a loss that
/// is not finite, with the step's number. InvalidArgument: too few rows, or a
/// start with another order of the data.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<TrainSummary>
train(Executor &executor, const Dataset &dataset, const TrainOptions &options,
      std::ostream &out);

/// Runs the program "evaluate" over all rows of `dataset`, in batches; the loss
/// is the mean over rows. InvalidArgument: no rows, or rows that do not fill a
/// batch for a loss that is no mean over rows. Cancelled: `shouldStop`, asked
/// before each batch, returned true.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<Evaluation>
evaluate(Executor &executor, const Dataset &dataset,
         const std::function<bool()> &shouldStop = {});

/// Whether `evaluate` can take all rows of `dataset`: its errors. May run
/// programs to find out.
[[nodiscard]] SHARDC_RT_API absl::Status
checkEvaluation(Executor &executor, const Dataset &dataset);

/// Runs the program "predict" over all rows of `dataset`, which fits it
/// (`fitToPlan(plan, dataset, "predict")`), in batches. Row by row the outputs
/// of the network, from which the loss is computed: logits, values of a
/// regression, log-probabilities; bf16 as f32. The last batch is filled up with
/// rows whose outputs are left out, so the number of rows is free. NotFound:
/// the plan has no such program, and why. InvalidArgument: no rows. Cancelled:
/// `shouldStop`, asked before each batch, returned true.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<HostArray>
predict(Executor &executor, const Dataset &dataset,
        const std::function<bool()> &shouldStop = {});

/// The same for the rows of `arrays`, which are copied, and converted as
/// `fitToPlan` does: all inputs that the program takes. Labels may be there and
/// are left out. InvalidArgument names an array that does not fit, or that the
/// plan does not have.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<HostArray>
predict(Executor &executor, const NamedArrays &arrays);

/// Sets every parameter from an archive, FILE.npz or FILE.safetensors, and the
/// states that it has; others stay as they are. Each process reads the parts
/// that its devices hold, and its share of the checksums of a FILE.npz;
/// compressed arrays are read whole. InvalidArgument names a parameter that is
/// missing, unknown, of another shape, or has a value out of the range of its
/// type. `onProgress` is called now and then, if there is one.
[[nodiscard]] SHARDC_RT_API absl::Status
loadParameters(Executor &executor, const std::string &path,
               const std::function<void()> &onProgress = {});

/// Every parameter, as a global array, under its name; bf16 as f32.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<ArrayMap>
readParameters(const Executor &executor);

/// Writes an archive, FILE.npz or FILE.safetensors by the extension, or
/// FILE.npy of one array, and replaces the file in one step. InvalidArgument:
/// another extension, FILE.npy of another number of arrays, a type that the
/// format does not have, or an array without the bytes of its shape.
[[nodiscard]] SHARDC_RT_API absl::Status writeArrays(const std::string &path,
                                                     const ArrayMap &arrays);

/// Writes what `readParameters` reads to an archive, FILE.npz or
/// FILE.safetensors, and replaces the file in one step. InvalidArgument:
/// another extension. The processes of an executor call it together, with paths
/// in a folder that they share. Each writes the shards of its own devices; all
/// get the same status. `onProgress` is called now and then, also while others
/// write, if there is one.
[[nodiscard]] SHARDC_RT_API absl::Status
saveParameters(const Executor &executor, const std::string &path,
               const std::function<void()> &onProgress = {});

} // namespace shardc::rt

#endif // SHARDC_RT_TRAINER_H
