#!/usr/bin/env bash
# The checks that take seconds: formatting and layering. To run them before every
# commit:
#   ln -s ../../scripts/pre-commit.sh .git/hooks/pre-commit
cd "$(git rev-parse --show-toplevel)"
scripts/check-format.sh && scripts/check-layering.sh
