//===- CommunicationNames.cpp - Communication in words --------------------===//

#include "exec/CommunicationNames.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace shardc::rt;

static std::string withSource(std::string words, const Command &command) {
  if (!command.source.empty())
    absl::StrAppend(&words, ", ", command.source);
  return words;
}

std::string shardc::rt::nameOf(const CollectiveStartCommand &collective,
                               const Mesh &mesh) {
  std::vector<std::string> axes;
  for (int axis : collective.axes)
    axes.push_back(mesh.axes()[axis].name);
  return absl::StrCat(toString(collective.kind), " over ",
                      absl::StrJoin(axes, ","));
}

std::string shardc::rt::collectiveInWords(const ProgramSpec &program,
                                          const Mesh &mesh, uint32_t start) {
  const Command &command = program.commands[start];
  return withSource(
      nameOf(std::get<CollectiveStartCommand>(command.operation), mesh),
      command);
}

std::string shardc::rt::messageInWords(const ProgramSpec &program,
                                       uint32_t start, uint32_t wait) {
  const std::vector<Command> &commands = program.commands;
  std::string words;
  // The task that made what is sent, or needs what is received.
  auto isOfTask = [](const Command &command) { return command.task >= 0; };
  const Command *ofTask = nullptr;
  if (auto *send = std::get_if<SendCommand>(&commands[start].operation)) {
    words = absl::StrCat("send to stage rank ", send->peer, ", message ",
                         send->message, ", after ");
    auto before =
        std::find_if(commands.rend() - start, commands.rend(), isOfTask);
    ofTask = before == commands.rend() ? nullptr : &*before;
  } else {
    auto &receive = std::get<ReceiveCommand>(commands[start].operation);
    words = absl::StrCat("receive from stage rank ", receive.peer, ", message ",
                         receive.message, ", for ");
    auto behind =
        std::find_if(commands.begin() + wait, commands.end(), isOfTask);
    ofTask = behind == commands.end() ? nullptr : &*behind;
  }
  if (!ofTask)
    return withSource(words + "no task", commands[start]);
  const TaskSpec &task = program.tasks[ofTask->task];
  absl::StrAppend(&words, toString(task.kind), " of microbatch ",
                  task.microbatch);
  return withSource(words, commands[start]);
}
