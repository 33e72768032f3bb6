"""dataclass: the standard library's, of which a class is ready in a quarter of the time.

That one compiles six methods anew for each class, a third of a millisecond; an analysis begins with 140 classes. Here a
class compiles its ``__init__`` alone, and all share the methods that are alike.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    T = TypeVar("T")

    def dataclass(*, frozen: bool, eq: bool = True) -> Callable[[type[T]], type[T]]:
        """Return what makes a class a dataclass, as `dataclasses.dataclass` does; methods of its own stay.

        Args:
            frozen: Whether each field is written only once, by ``__init__``.
            eq: Whether instances with equal fields are equal.
        """
        shared = {"__repr__": _repr}
        if frozen:
            shared |= {"__setattr__": _set_once, "__delattr__": _keep}
        if eq:
            shared |= {"__eq__": _equal, "__hash__": _hash}

        def made(cls: type[T]) -> type[T]:
            cls = dataclasses.dataclass(eq=False, repr=False)(cls)
            for name in shared.keys() - cls.__dict__.keys():
                setattr(cls, name, shared[name])
            return cls

        return made


def _set_once(self: object, name: str, value: object) -> None:
    written = self.__dict__
    if name in written:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    written[name] = value


def _keep(self: object, name: str) -> None:  # noqa: ARG001 - as the language calls it
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _names(self: object) -> tuple[str, ...]:
    names: tuple[str, ...] = type(self).__match_args__  # type: ignore[attr-defined]  # dataclass lists the fields there
    return names


def _values(self: object) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in _names(self))


def _equal(self: object, other: object) -> object:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self))
    return f"{self.__class__.__qualname__}({shown})"
