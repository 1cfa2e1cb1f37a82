//===- JsonReader.h - JSON with errors that name the place ------*- C++ -*-===//
//
// Reads the fields of a JSON file one by one and keeps the first error: the
// file, the line (syntax) or the key (content), the expected and the found
// value. One per file; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_JSONREADER_H
#define SHARDC_SUPPORT_JSONREADER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace shardc {

/// Parses `text`. Refuses text that nests too deep for LLVM's recursive parser,
/// and an object that has a key twice, of which LLVM's keeps the last.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text,
                                            llvm::StringRef file);

/// Reads fields. A `path` is the key of the object that holds a field, such as
/// "axes.data"; empty for the root. After a failure only takeError is
/// meaningful.
class JsonReader {
public:
  /// `file` names the text in errors.
  explicit JsonReader(llvm::StringRef file) : file(file) {}

  /// Records an error at the key; returns false.
  bool fail(llvm::StringRef path, const llvm::Twine &what);
  /// The recorded error.
  llvm::Error takeError() const;

  /// `value` as an object, or null and an error.
  const llvm::json::Object *asObject(const llvm::json::Value &value,
                                     llvm::StringRef path);
  /// The value of `key`, or null and an error if it is missing.
  const llvm::json::Value *getRequired(const llvm::json::Object &object,
                                       llvm::StringRef path,
                                       llvm::StringRef key);
  /// The keys of `object`, sorted.
  static std::vector<std::string> getKeys(const llvm::json::Object &object);
  /// Fails if `object` has a key outside of `known`.
  bool checkKeys(const llvm::json::Object &object, llvm::StringRef path,
                 const std::vector<std::string> &known);

  /// Reads the required number `key`, of at least `least` and at most `most`.
  bool readNumber(const llvm::json::Object &object, llvm::StringRef path,
                  llvm::StringRef key, double least, double most,
                  double &number);
  /// Reads `key` of the root if it is there; else leaves `text` as it is.
  bool readString(const llvm::json::Object &root, llvm::StringRef key,
                  std::string &text);
  bool readBool(const llvm::json::Object &root, llvm::StringRef key,
                bool &value);

private:
  llvm::StringRef file;
  std::string message;
};

} // namespace shardc

#endif // SHARDC_SUPPORT_JSONREADER_H
