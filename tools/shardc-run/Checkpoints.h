//===- Checkpoints.h - Checkpoints of a run ---------------------*- C++ -*-===//
//
// The flags --checkpoint-dir, --checkpoint-every, --keep and --resume.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_CHECKPOINTS_H
#define SHARDC_TOOLS_SHARDC_RUN_CHECKPOINTS_H

#include "Arguments.h"

#include "shardc-rt/Checkpoint.h"

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

namespace shardc::run {

/// Checks that a training that goes on from nothing has a folder without
/// checkpoints, which would be lost among its own. Exit code 0, or 1 and an
/// error printed.
int checkCheckpointDir(const Arguments &arguments);

/// Finds the checkpoint that a run goes on from, and writes further ones. A
/// checkpoint that cannot be written is an error that is printed when it is
/// known; the training goes on. Not thread-safe.
class Checkpoints {
public:
  /// Finds what --resume asks for, for a run of `plan`. If the run trains, sets
  /// seed and order of the data in `arguments` to those of the checkpoint and
  /// locks the folder. Without --checkpoint-dir nothing happens. The data of
  /// the checkpoint is not read before `load`. `store` leads to the other
  /// processes, which call it too, and is borrowed; null: there are none.
  /// `onProgress` is called while a checkpoint is read, and while a write that
  /// this waits for makes progress. Exit code 0, or the code and an error
  /// printed.
  int open(Arguments &arguments, const rt::Plan &plan, rt::Store *store,
           const std::function<void()> &onProgress, std::ostream &out);

  /// Whether the run goes on from a checkpoint.
  bool isResumed() const { return resumed != nullptr; }
  /// Of that checkpoint; of the beginning, if there is none.
  rt::TrainProgress start() const;
  /// Sets parameters and states from it, says so, and lets go of it. If it
  /// turns out to be damaged and the latest is asked for, takes the one before,
  /// which has to be of a training with the same order of the data. Exit code
  /// 0, or the code and an error printed.
  int load(Arguments &arguments, rt::Executor &executor, std::ostream &out);

  /// Allocates the memory for copies, if the run writes any; time counts from
  /// here. Exit code 0, or the code and an error printed.
  int reserve(const rt::Plan &plan);
  /// Whether the run writes any.
  bool isWriting() const { return writer != nullptr; }
  /// Whether one is due after so many steps, or by the clock of this process.
  bool isDueAfter(int64_t steps) const;
  bool isDueByTime() const;
  /// Begins to write one. Errors are those of reading the executor, and of
  /// `takeResults`.
  absl::Status save(const rt::Executor &executor,
                    const rt::TrainProgress &progress);
  /// Prints errors of writes that have ended. Aborted, DeadlineExceeded:
  /// another process has gone, or has not written its part.
  absl::Status takeResults();
  /// Spans of writes that have ended go there from now on.
  void record(rt::Trace *trace) { this->trace = trace; }
  /// Writes the last one, unless that was done, and waits. Exit code 0 if it
  /// is there, 2, 5 if it holds a value that is not finite, or 6 if another
  /// process has not written its part.
  int finish(const rt::Executor &executor, const rt::TrainProgress &progress);
  /// Waits for the write in progress, and takes its result.
  absl::Status wait();
  /// The step whose checkpoint is being written, or was the last one.
  int64_t lastBegunStep() const { return lastBegun; }

  /// Those written.
  int64_t count() const { return written; }
  /// The path of the last one written or gone on from; empty: none.
  const std::string &last() const { return lastPath; }
  int64_t lastStep() const { return lastWritten; }
  /// The longest time that the training stood still for a copy.
  double copySeconds() const { return longestCopy; }

private:
  using Clock = std::chrono::steady_clock;

  int find(const Arguments &arguments, std::ostream &out);
  /// Goes on from the checkpoint found, if a run of `plan` can.
  int take(Arguments &arguments, const rt::Plan &plan);

  /// Checks that the training can go on in the order of the data of the
  /// checkpoint, and sets it in `arguments`.
  int takeOrder(Arguments &arguments, const rt::Plan &plan) const;

  rt::ReadCheckpointOptions reading;
  bool isOneDamaged = false; ///< Of those that were tried.
  rt::TrainProgress from;
  std::unique_ptr<rt::Checkpoint> resumed;
  std::unique_ptr<rt::CheckpointWriter> writer;
  rt::Trace *trace = nullptr;
  std::string folder;
  int64_t everySteps = 0;  ///< 0: not by steps.
  double everySeconds = 0; ///< 0: not by time.
  Clock::time_point lastSave;
  int64_t lastBegun = -1; ///< The step of the last one begun; negative: none.
  int64_t written = 0;
  int64_t lastWritten = -1;
  std::string lastPath;
  double longestCopy = 0;
  int code = 0; ///< Of the last write.
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_CHECKPOINTS_H
