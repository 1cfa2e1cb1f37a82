# shellcheck shell=bash
# Where ranks meet in tests; sourced.

# A port that no socket of this machine has, of those that the kernel gives to no
# client: one of them could take the port before rank 0 listens there, and a rank
# that asks for a port of its own range may even be connected to itself.
freePort() {
  local port line
  for _ in {1..100}; do
    port=$((10000 + RANDOM % 20000))
    printf -v line '^ *[0-9]+: [0-9A-F]+:%04X ' "$port"
    grep -qsE "$line" /proc/net/tcp /proc/net/tcp6 || break
  done
  echo "$port"
}
