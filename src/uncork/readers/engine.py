"""new_scanner: the compiled scanner where it was built, else the portable one, which says once that it is slower."""

from functools import cache

from uncork.locale import default_language, say
from uncork.readers.document import Scanner


@cache
def _compiled() -> type[Scanner] | None:
    """Return the compiled scanner's class, None where it was not built."""
    try:
        from uncork.readers.scan import CompiledScanner
    except ImportError:
        import logging

        logging.getLogger("uncork").warning("uncork: %s", say(default_language(), "error.portable_reader"))
        return None
    compiled: type[Scanner] = CompiledScanner
    return compiled


def new_scanner() -> Scanner:
    """Return an empty scanner, the fastest there is."""
    compiled = _compiled()
    if compiled is None:
        from uncork.readers.portable import PortableScanner

        return PortableScanner()
    return compiled()
