"""Keep an executed notebook off the network: Python imports this module at startup.

The book promises that embedded resources need no network. This enforces it: connections to other hosts fail
as they do without a network, and are logged. Compiled code that bypasses Python's `socket` module is not
seen.
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
    """Raise an error before anything is sent to another host (an audit hook)."""
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
    """Return whether a host's name or address belongs to this computer."""
    if host in (None, "", "localhost", "0.0.0.0", "::", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


if LOG:
    sys.addaudithook(refuse_other_hosts)
