//===- SourceTokens.h - Tokens of MLIR's text -------------------*- C++ -*-===//
//
// Cuts the text of a module into tokens, as far as edits of attributes need:
// words, strings, brackets that match, and the entries of a dictionary.
// Comments lie between tokens. Keeps a reference to the text; not thread-safe
// while it is made.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_MODELS_SOURCETOKENS_H
#define SHARDC_LIB_MODELS_SOURCETOKENS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <vector>

namespace shardc {

class SourceTokens {
public:
  struct Token {
    /// Offsets in the text.
    size_t begin, end;
    /// Of a bracket, the number of the one that it matches.
    size_t match = 0;
  };
  /// `name = value` of a dictionary, or a name alone.
  struct Entry {
    llvm::StringRef name;
    /// Its first and last token, and the first of its value, which is past the
    /// last if there is none.
    size_t first, last, value;
  };

  explicit SourceTokens(llvm::StringRef text);

  /// Whether all strings end and all brackets match.
  bool isWhole() const { return whole; }
  size_t getNum() const { return tokens.size(); }
  const Token &get(size_t number) const { return tokens[number]; }
  /// "" past the end.
  llvm::StringRef getText(size_t number) const;
  bool isOpening(size_t number) const;
  /// The first token that begins at `offset` or behind it.
  size_t find(size_t offset) const;
  /// The first of the brackets "(", "{", "[" or "<" in `bracket`, or other
  /// tokens, from `number` on at the same depth; getNum() if none comes before
  /// `number`'s own bracket closes.
  size_t skipTo(size_t number, llvm::ArrayRef<llvm::StringRef> texts) const;
  /// The entries between the bracket `open` and the one that it matches.
  llvm::SmallVector<Entry> getEntries(size_t open) const;
  /// Whether a comment begins between the tokens `number` and its successor.
  bool hasCommentBehind(size_t number) const;
  /// The comments that begin in [begin, end), without the ends of their lines.
  llvm::SmallVector<llvm::StringRef> getComments(size_t begin,
                                                 size_t end) const;

private:
  llvm::StringRef text;
  std::vector<Token> tokens;
  std::vector<llvm::StringRef> comments; ///< In order.
  bool whole = true;
};

} // namespace shardc

#endif // SHARDC_LIB_MODELS_SOURCETOKENS_H
