//===- CheckpointTest.cpp - Checkpoints of executors ----------------------===//

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "checkpoint/Files.h"
#include "checkpoint/Manifest.h"
#include "shardc-rt/Checkpoint.h"
#include "shardc-rt/Context.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>

using namespace shardc::rt;

namespace {

/// w [4] over some devices of one axis, without or with a pipeline.
class CheckpointTest : public testing::Test {
protected:
  std::unique_ptr<Executor> create(const std::string &bytes) {
    auto plan = Plan::parse(bytes);
    EXPECT_TRUE(plan.ok()) << plan.status();
    auto executor = Executor::create(**context, *plan);
    EXPECT_TRUE(executor.ok()) << executor.status();
    EXPECT_TRUE((*executor)->initializeParameters().ok());
    return *std::move(executor);
  }

  static void setW(Executor &executor, std::vector<float> values) {
    std::vector<int64_t> shape = {4};
    ASSERT_TRUE(
        executor.setTensor("w", {DType::F32, shape, values.data()}).ok());
  }

  static std::vector<float> getW(const Executor &executor) {
    auto w = executor.getTensor("w");
    EXPECT_TRUE(w.ok()) << w.status();
    return {w->values<float>().begin(), w->values<float>().end()};
  }

  std::unique_ptr<CheckpointWriter> openWriter(int64_t keep = 0) {
    CheckpointOptions options;
    options.folder = folder / "c";
    options.keep = keep;
    options.goesOn = true;
    auto writer = CheckpointWriter::open(options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  /// Writes a checkpoint and waits for it.
  static absl::Status write(CheckpointWriter &writer, const Executor &executor,
                            int64_t step) {
    TrainProgress progress;
    progress.steps = step;
    progress.finalLoss = 1.0 / 3;
    progress.seed = std::numeric_limits<uint64_t>::max();
    if (absl::Status status = writer.save(executor, progress); !status.ok())
      return status;
    writer.wait();
    std::vector<CheckpointResult> results = writer.takeResults();
    EXPECT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].step, step);
    return results[0].status;
  }

  std::vector<std::string> entries() {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder / "c"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  test::TemporaryFolder folder;
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create({2});
};

TEST_F(CheckpointTest, GoesToAnyMesh) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  setW(*executor, {1, 2, 3, -0.0f});
  ASSERT_TRUE(write(*openWriter(), *executor, 5).ok());
  auto checkpoint = Checkpoint::open(folder / "c/step-5");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->progress().steps, 5);
  EXPECT_EQ((*checkpoint)->progress().finalLoss, 1.0 / 3);
  EXPECT_EQ((*checkpoint)->progress().seed,
            std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE((*checkpoint)->verify().empty());
  for (int devices : {1, 2, 4}) {
    std::unique_ptr<Executor> other = create(test::makePlan(devices));
    ASSERT_TRUE((*checkpoint)->load(*other).ok());
    EXPECT_EQ(getW(*other), (std::vector<float>{1, 2, 3, -0.0f}));
  }
  auto parameters = (*checkpoint)->readParameters();
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(parameters->at("w").values<float>()[2], 3);
}

TEST_F(CheckpointTest, GoesToAnyPipelineSchedule) {
  std::unique_ptr<Executor> executor = create(test::makePipelinePlan(3, 4));
  ASSERT_TRUE(write(*openWriter(), *executor, 1).ok());
  auto checkpoint = Checkpoint::open(folder / "c/step-1");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // Each tensor once, by a device of the first rank that holds it.
  for (const ManifestTensor &tensor : (*checkpoint)->manifest().tensors) {
    int64_t elements = 0;
    for (const ManifestShard &shard : tensor.shards)
      elements += numElements(shard.shape);
    EXPECT_EQ(elements, numElements(tensor.type.shape));
  }
  std::unique_ptr<Executor> other = create(test::makePipelinePlan(3, 2));
  EXPECT_TRUE((*checkpoint)->load(*other).ok());
  absl::Status status =
      (*checkpoint)->checkAgainst(create(test::makePlan(2))->plan());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "is of another model"))
      << status;
}

TEST_F(CheckpointTest, KeepsTheLatest) {
  std::unique_ptr<Executor> executor = create(test::makePlan(1));
  {
    std::unique_ptr<CheckpointWriter> writer = openWriter(2);
    for (int64_t step : {10, 20, 30})
      ASSERT_TRUE(write(*writer, *executor, step).ok());
  }
  EXPECT_EQ(entries(),
            (std::vector<std::string>{".lock", "step-20", "step-30"}));
  // Written later, though of an earlier step.
  ASSERT_TRUE(write(*openWriter(2), *executor, 15).ok());
  EXPECT_EQ(entries(),
            (std::vector<std::string>{".lock", "step-15", "step-30"}));
  auto latest = openLatestCheckpoint(folder / "c");
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ((*latest)->progress().steps, 15);
}

TEST_F(CheckpointTest, TellsHowReadingGoesOn) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  ASSERT_TRUE(write(*openWriter(), *executor, 3).ok());
  ReadCheckpointOptions options;
  int calls = 0;
  options.onProgress = [&] { ++calls; };
  auto checkpoint = openLatestCheckpoint(folder / "c", options);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // For w and m.
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_TRUE((*checkpoint)->load(*executor, options).ok());
  EXPECT_EQ(calls, 2);
  // Checksums are computed on the way.
  calls = 0;
  EXPECT_TRUE(loadLatestCheckpoint(folder / "c", *executor, options).ok());
  EXPECT_EQ(calls, 2);
}

TEST_F(CheckpointTest, ReplacesOneOfTheSameStep) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  std::unique_ptr<CheckpointWriter> writer = openWriter();
  ASSERT_TRUE(write(*writer, *executor, 3).ok());
  setW(*executor, {5, 6, 7, 8});
  ASSERT_TRUE(write(*writer, *executor, 3).ok());
  EXPECT_EQ(entries(), (std::vector<std::string>{".lock", "step-3"}));
  auto checkpoint = openLatestCheckpoint(folder / "c");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->readParameters()->at("w").values<float>()[0], 5);
}

TEST_F(CheckpointTest, TheCopyIsOfTheMomentOfTheCall) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  setW(*executor, {1, 1, 1, 1});
  std::unique_ptr<CheckpointWriter> writer = openWriter();
  TrainProgress progress;
  progress.steps = 1;
  ASSERT_TRUE(writer->save(*executor, progress).ok());
  setW(*executor, {2, 2, 2, 2});
  progress.steps = 2;
  // Waits for the first.
  ASSERT_TRUE(writer->save(*executor, progress).ok());
  setW(*executor, {3, 3, 3, 3});
  writer.reset();
  for (int step : {1, 2}) {
    auto read = Checkpoint::open(absl::StrCat(folder / "c/step-", step));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ((*read)->readParameters()->at("w").values<float>()[3], step);
  }
}

TEST_F(CheckpointTest, ValuesThatAreNotFiniteAreNotWritten) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  std::unique_ptr<CheckpointWriter> writer = openWriter(1);
  ASSERT_TRUE(write(*writer, *executor, 1).ok());
  for (float value : {std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()}) {
    setW(*executor, {1, 2, value, 4});
    absl::Status status = write(*writer, *executor, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(status.message(),
              "parameter \"w\" has a value that is not finite");
  }
  EXPECT_EQ(entries(), (std::vector<std::string>{".lock", "step-1"}));
  setW(*executor, {std::numeric_limits<float>::max(), 0, 0, 0});
  EXPECT_TRUE(write(*writer, *executor, 2).ok());
}

TEST_F(CheckpointTest, OneWriterAtATime) {
  std::unique_ptr<CheckpointWriter> writer = openWriter();
  EXPECT_EQ(CheckpointWriter::open({folder / "c"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(CheckpointWriter::open({folder / "file"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  // The next one removes what this one has not ended.
  std::filesystem::create_directories(folder / "c/step-7.tmp/x");
  std::filesystem::create_directories(folder / "c/step-8.tmp-old");
  std::filesystem::create_directories(folder / "c/other.tmp");
  writer.reset();
  openWriter();
  EXPECT_EQ(entries(), (std::vector<std::string>{".lock", "other.tmp"}));
}

TEST_F(CheckpointTest, OneTrainingForEachFolder) {
  std::unique_ptr<Executor> executor = create(test::makePipelinePlan(3, 4));
  ASSERT_TRUE(write(*openWriter(), *executor, 1).ok());
  std::filesystem::create_directories(folder / "c/step-7.tmp");
  auto another = CheckpointWriter::open({folder / "c", 1});
  EXPECT_EQ(another.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(entries(),
            (std::vector<std::string>{".lock", "step-1", "step-7.tmp"}));
  openWriter(1);
  EXPECT_EQ(entries(), (std::vector<std::string>{".lock", "step-1"}));
  // That of another model is neither replaced nor removed.
  std::unique_ptr<Executor> other = create(test::makePlan(1));
  for (int64_t step : {1, 2})
    EXPECT_EQ(write(*openWriter(1), *other, step),
              absl::FailedPreconditionError(
                  folder / "c/step-1" + " is of another model; expected a "
                                        "folder for the checkpoints of each "
                                        "training"));
  EXPECT_EQ(openWriter(1)->reserve(other->plan()).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(entries(), (std::vector<std::string>{".lock", "step-1"}));
}

TEST_F(CheckpointTest, SeveralFiles) {
  std::unique_ptr<Executor> executor = create(test::makePipelinePlan(3, 4));
  {
    // Each tensor is greater than this.
    auto writer = CheckpointWriter::open({folder / "c", 0, 1});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(write(**writer, *executor, 1).ok());
  }
  auto checkpoint = Checkpoint::open(folder / "c/step-1");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Manifest &manifest = (*checkpoint)->manifest();
  EXPECT_EQ(manifest.files.size(), manifest.tensors.size());
  EXPECT_TRUE((*checkpoint)->verify().empty());
  // Readers of safetensors find every tensor by the index.
  for (const ManifestTensor &tensor : manifest.tensors) {
    auto file =
        SafetensorsFile::open(absl::StrCat(folder / "c/step-1/", tensor.file));
    ASSERT_TRUE(file.ok()) << file.status();
    const SafetensorsEntry *entry = file->find(tensor.type.name);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->begin, tensor.begin);
    EXPECT_EQ(entry->shape, tensor.type.shape);
    EXPECT_EQ(file->metadata().at("checkpoint"), manifest.id);
  }
}

TEST_F(CheckpointTest, AManifestIsCheckedWhateverItsChecksumSays) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  ASSERT_TRUE(write(*openWriter(), *executor, 1).ok());
  std::string path = folder / "c/step-1/manifest.json", text;
  {
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  auto parse = [](std::string changed) {
    changed.replace(14, 8, "00000000");
    changed.replace(
        14, 8, absl::StrCat(absl::Hex(checksumOf(changed), absl::kZeroPad8)));
    return parseManifest(changed).status();
  };
  ASSERT_TRUE(parse(text).ok()) << parse(text);
  EXPECT_FALSE(parseManifest("").ok());
  EXPECT_FALSE(parseManifest(text.substr(0, 15)).ok());
  for (auto [from, to, message] :
       {std::tuple("\"version\": 1", "\"version\": 2",
                   "it is of version 2; this program reads version 1"),
        std::tuple("\"step\": 1", "\"step\": -1",
                   "\"step\" is not an integer of at least 0"),
        std::tuple("\"step\": 1", "\"stop\": 1", "\"step\" is missing"),
        std::tuple("\"name\":\"model-", "\"name\":\"../model-",
                   "\"name\" is not the name of a file"),
        std::tuple("\"shape\":[4],\"file\"", "\"shape\":[4000],\"file\"",
                   "its bytes are not within its file"),
        std::tuple("\"start\":[0]", "\"start\":[1]",
                   "it is not within its tensor"),
        std::tuple("\"start\":[0],\"shape\":[4]", "\"start\":[0],\"shape\":[3]",
                   "its shards do not make up the tensor"),
        std::tuple("\"dtype\":\"f32\"", "\"dtype\":\"f31\"",
                   "unknown type \"f31\""),
        std::tuple("\"role\":\"parameter\"", "\"role\":\"input\"",
                   "unknown role \"input\""),
        std::tuple("\"fingerprint\": \"", "\"fingerprint\": \"1",
                   "its fingerprint is not that of its tensors")}) {
    std::string changed = text;
    size_t at = changed.find(from);
    ASSERT_NE(at, changed.npos) << from;
    changed.replace(at, std::strlen(from), to);
    EXPECT_TRUE(absl::StrContains(parse(changed).message(), message))
        << from << ": " << parse(changed);
  }
  // Whatever is changed and however: no crash.
  for (size_t at = 14; at < text.size(); ++at)
    for (char other : {'0', '"', '[', '}', 'x', '-'}) {
      std::string changed = text;
      changed[at] = other;
      static_cast<void>(parse(changed));
    }
}

TEST_F(CheckpointTest, NothingHasAValueIfSomethingIsDamaged) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  setW(*executor, {1, 2, 3, 4});
  ASSERT_TRUE(write(*openWriter(), *executor, 1).ok());
  std::string path = folder / "c/step-1/model-00001-of-00001.safetensors";
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\1');
  }
  auto checkpoint = Checkpoint::open(folder / "c/step-1");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  setW(*executor, {9, 9, 9, 9});
  absl::Status status = (*checkpoint)->load(*executor);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      std::string(status.message()),
      path + ": tensor \"w\", shard of device 0, [0:4]: its bytes do not match "
             "their checksum");
  for (const char *name : {"w", "m"})
    EXPECT_EQ(executor->getTensor(name).status().code(),
              absl::StatusCode::kFailedPrecondition)
        << name;
  EXPECT_FALSE((*checkpoint)->readParameters().ok());
  EXPECT_EQ(openLatestCheckpoint(folder / "c").status().code(),
            absl::StatusCode::kNotFound);
  // Who looks first keeps what is there.
  ASSERT_TRUE(executor->initializeParameters().ok());
  setW(*executor, {9, 9, 9, 9});
  EXPECT_EQ((*checkpoint)->verifyOnce(), status);
  EXPECT_EQ(getW(*executor), std::vector<float>(4, 9));
  // The one before is taken.
  setW(*executor, {5, 6, 7, 8});
  ASSERT_TRUE(write(*openWriter(), *executor, 2).ok());
  setW(*executor, {0, 0, 0, 0});
  ASSERT_TRUE(write(*openWriter(), *executor, 3).ok());
  std::filesystem::copy_file(
      path, folder / "c/step-3/model-00001-of-00001.safetensors",
      std::filesystem::copy_options::overwrite_existing);
  std::vector<std::string> damaged;
  ReadCheckpointOptions options;
  options.onDamaged = [&](const absl::Status &damage) {
    damaged.emplace_back(damage.message());
  };
  auto latest = loadLatestCheckpoint(folder / "c", *executor, options);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ((*latest)->progress().steps, 2);
  EXPECT_EQ(damaged.size(), 1u);
  EXPECT_EQ(getW(*executor), (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(CheckpointTest, AFileThatBecomesShorterWhileItIsRead) {
  std::unique_ptr<Executor> executor = create(test::makePlan(2));
  setW(*executor, {1, 2, 3, 4});
  ASSERT_TRUE(write(*openWriter(), *executor, 1).ok());
  std::string path = folder / "c/step-1/model-00001-of-00001.safetensors";
  auto checkpoint = Checkpoint::open(folder / "c/step-1");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  std::vector<std::string> faults = (*checkpoint)->verify();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(faults[0], path + ": cannot read "))
      << faults[0];
  EXPECT_TRUE(
      absl::EndsWith(faults[0], ": the file ends before, in tensor \"w\""))
      << faults[0];
  absl::Status status = (*checkpoint)->load(*executor);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), faults[0]);
  EXPECT_EQ(executor->getTensor("w").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*checkpoint)->readParameters().status(), status);
  EXPECT_EQ((*checkpoint)->verifyOnce(), status);
  // Not so one that is only removed.
  ASSERT_TRUE(executor->initializeParameters().ok());
  setW(*executor, {5, 6, 7, 8});
  ASSERT_TRUE(write(*openWriter(), *executor, 2).ok());
  checkpoint = Checkpoint::open(folder / "c/step-2");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::filesystem::remove_all(folder / "c/step-2");
  ASSERT_TRUE((*checkpoint)->load(*executor).ok());
  EXPECT_EQ(getW(*executor), (std::vector<float>{5, 6, 7, 8}));
}

} // namespace
