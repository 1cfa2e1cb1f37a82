//===- StandardOutput.cpp - std::cout, with the reasons of failures -------===//

#include "StandardOutput.h"

#include "Report.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <unistd.h>

using namespace shardc::run;

StandardOutput::StandardOutput() : original(std::cout.rdbuf(this)) {}

StandardOutput::~StandardOutput() { std::cout.rdbuf(original); }

int StandardOutput::finish() {
  writeOut(buffered.size());
  if (!error)
    return 0;
  return report(
      1, absl::StrCat("cannot write standard output: ", std::strerror(error)));
}

int StandardOutput::overflow(int character) {
  char text = traits_type::to_char_type(character);
  bool isText = !traits_type::eq_int_type(character, traits_type::eof());
  return !isText || xsputn(&text, 1) == 1 ? traits_type::not_eof(character)
                                          : traits_type::eof();
}

std::streamsize StandardOutput::xsputn(const char *text, std::streamsize size) {
  buffered.append(text, size);
  writeOut(buffered.rfind('\n') + 1);
  return error ? 0 : size;
}

int StandardOutput::sync() {
  writeOut(buffered.size());
  return error ? -1 : 0;
}

void StandardOutput::writeOut(size_t size) {
  for (size_t done = 0; done < size && !error;) {
    ssize_t count = write(STDOUT_FILENO, &buffered[done], size - done);
    if (count >= 0)
      done += count;
    else if (errno != EINTR)
      error = errno;
  }
  buffered.erase(0, size);
}
