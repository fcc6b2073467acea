"""What Python imports at its start in a notebook that is executed: it keeps the notebook on this computer.

The book promises that embedded resources need no network. Here that is enforced: what would leave this
computer fails as it does without a network, and is written down. What reaches a socket past Python's own
`socket` module, as compiled code can, is not seen.
"""

import errno
import ipaddress
import os
import socket
import sys

LOG = os.environ.get("BOOK_NETWORK_LOG")
NAMED = ("socket.getaddrinfo", "socket.gethostbyname")  # their first argument is a host
ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")  # their second one is an address


def refuse_other_hosts(event: str, arguments: tuple) -> None:
    """An audit hook: raise an error before anything is sent to another host."""
    if event in NAMED:
        host = arguments[0]
    elif event in ADDRESSED and isinstance(arguments[1], tuple):  # else a socket of the file system
        host = arguments[1][0]
    else:
        return
    if not isinstance(host, str | bytes | None):  # no address of a network
        return
    host = host.decode() if isinstance(host, bytes) else host
    if not is_here(host):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{host}\n")
        raise OSError(errno.ENETUNREACH, f"{host} is another host, and embedded resources need none")


def is_here(host: str | None) -> bool:
    """Whether a host's name or address is one of this computer."""
    if host in (None, "", "localhost", "0.0.0.0", "::", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


if LOG:
    sys.addaudithook(refuse_other_hosts)
