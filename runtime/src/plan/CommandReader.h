//===- CommandReader.h - Reads the commands of a program --------*- C++ -*-===//
//
// Nothing in the file is trusted: each command is checked against the objects
// that it names before it is kept. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_PLAN_COMMANDREADER_H
#define SHARDC_RT_SRC_PLAN_COMMANDREADER_H

#include "plan/Accesses.h"
#include "plan/PlanSpec.h"

#include "plan_generated.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardc::rt {

/// Reads the commands of one program, whose buffers and results have been read.
class CommandReader {
public:
  CommandReader(const PlanSpec &plan, ProgramSpec &program)
      : plan(plan), program(program) {}

  /// Adds the next command to the program, or returns its error.
  absl::Status read(const fb::Command &file);

  /// After the last command: an error if the body of a loop is incomplete.
  absl::Status finish() const {
    return left > 0 ? bad("the loop's body lacks ", left, " commands")
                    : absl::OkStatus();
  }

private:
  template <typename... Args>
  absl::Status bad(const Args &...args) const {
    return absl::DataLossError(
        absl::StrCat("program \"", program.name, "\", command ",
                     program.commands.size(), ": ", args...));
  }

  /// Checks that the buffer exists and stays in the arena in all runs.
  absl::Status checkBuffer(uint32_t buffer) const {
    if (buffer >= program.buffers.size())
      return bad("buffer ", buffer, " of ", program.buffers.size());
    const BufferSpec &spec = program.buffers[buffer];
    uint64_t room = plan.arenaBytes - spec.offset - spec.bytes;
    if (spec.stride > 0 && uint64_t(runs - 1) > room / spec.stride)
      return bad("buffer ", buffer, ", which ", runs, " runs move on by ",
                 spec.stride, " bytes each, leaves the arena");
    return absl::OkStatus();
  }

  /// Whether two buffers share bytes in any runs.
  bool overlap(uint32_t a, uint32_t b) const {
    return rt::overlap(bytesOf(program.buffers[a], runs),
                       bytesOf(program.buffers[b], runs));
  }

  absl::Status readLaunch(const fb::Launch &file, LaunchCommand &launch) const;
  absl::Status readParts(const fb::Launch &file, LaunchCommand &launch) const;
  absl::Status readGroupKernel(const fb::Launch &file,
                               LaunchCommand &launch) const;
  absl::Status readGemm(const fb::Gemm &file, GemmCommand &gemm) const;
  absl::Status checkColumnSums(const GemmCommand &gemm) const;
  absl::Status readCollective(const fb::CollectiveStart &file,
                              CollectiveStartCommand &collective) const;
  absl::Status readAxes(const flatbuffers::Vector<uint16_t> *file,
                        std::vector<int> &axes) const;
  absl::Status checkItem(const CollectiveStartCommand &collective,
                         const CollectiveItem &item) const;
  absl::Status readCopy(const fb::Copy &file, CopyCommand &copy) const;
  absl::Status readClear(const fb::Clear &file, ClearCommand &clear) const;
  absl::Status readLoop(const fb::Loop &file, LoopCommand &loop);
  absl::Status readUpload(const fb::Upload &file, UploadCommand &upload) const;
  absl::Status readDownload(const fb::Download &file,
                            DownloadCommand &download) const;
  absl::Status readTransfer(const flatbuffers::Vector<uint32_t> &file,
                            std::vector<uint32_t> &buffers) const;
  absl::Status readTask(const fb::Command &file, Command &command);
  absl::Status readOrder(const fb::Command &file, Command &command) const;

  const PlanSpec &plan;
  ProgramSpec &program;
  /// The runs of the loop of the next command, and its commands left.
  int64_t runs = 1;
  uint32_t left = 0;
  /// The task of the last command, starts and waits aside.
  int32_t task = -1;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_COMMANDREADER_H
