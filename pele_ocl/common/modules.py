"""Names of packages: loaded when they are first used, called as functions, and former ones that still work."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from operator import attrgetter
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import UnexpectedKeywordError, no_attribute

if TYPE_CHECKING:
    import inspect

T = TypeVar("T")
_PUBLIC = "_public_names"  # of a callable module, its `__all__`


def lazy_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package.

    package : its `__name__`; names : by file of the package, without suffix, the names that it has, "Tiles tiles_of"
    """
    homes = {name: home for home, own in names.items() for name in own.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class CallableModule(ModuleType):
    """A module with a function of its own name, which a call of the module calls: `pele_ocl.energy(atoms)`.

    Importing a sub-package makes it an attribute of its package, in place of a function with its name. So the
    sub-package itself takes the call.
    """

    @property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = vars(self)[self.__name__.rpartition(".")[2]]
        return function

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect  # `import pele_ocl` does without it

        return inspect.signature(with_words(self._function))

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        """Text of the function with its signature, which `help` would show of a function alone.

        pydoc asks past `__getattribute__` for it. All others get the function's text, and the signature apart.
        """
        import textwrap

        first, _, rest = (with_words(self._function).__doc__ or "").partition("\n")
        called = f"{self._function.__name__}{self.__signature__}"
        return "\n\n    ".join([first, textwrap.fill(called, 112, subsequent_indent="        "), rest.strip()])

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__
        return with_words(found("_function")).__doc__ if name == "__doc__" else found(name)

    def __dir__(self) -> list[str]:
        """List the public classes and functions of other files: what `help` is to show is the function."""
        own = vars(self)
        public = {of: own.get(of) for of in own.get(_PUBLIC, ()) if not of.isupper()}  # None until it is loaded
        kept = [
            name for name, of in public.items()
            if of is None or (isinstance(of, type | FunctionType) and of.__module__ != self.__name__)
        ]  # fmt: skip
        return sorted([*kept, *(of for of in own if of.startswith("__") and of != "__annotations__")])

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(f"module {self.__name__!r}", name, vars(self).get(_PUBLIC, ()))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        try:
            return self._function(*arguments, **options)
        except UnexpectedKeywordError as error:
            name, own = self.__name__.rpartition(".")[2], self.__signature__.parameters
            raise UnexpectedKeywordError(error.word, (*own, *error.known), name) from None


def make_callable(name: str) -> None:
    """Let a loaded module, given by its full name, be called as its function and described by its text.

    `help` shows all classes of `__all__` in full; without it, the function.
    """
    module = sys.modules[name]
    vars(module)[_PUBLIC] = vars(module).pop("__all__", ())
    module.__class__ = CallableModule


def refuse_calls(name: str, instead: str) -> None:
    """Let a loaded module, given by its full name, say what to call in its place; `instead` : a sentence"""

    class Uncalled(ModuleType):
        def __call__(self, *_: Any, **__: Any) -> Any:
            raise TypeError(f"{name} is a module, which cannot be called; {instead}")

    sys.modules[name].__class__ = Uncalled


def takes(*groups: str) -> Callable[[T], T]:
    """Say the groups of keywords of `**words`: keys of jobs.words, or ".module:Class" for fields."""

    def mark(function: T) -> T:
        vars(function)["_groups"] = groups
        return function

    return mark


def with_words(function: T) -> T:
    """Set the whole signature of a function with groups of keywords when it is first needed; return the function."""
    own = vars(function)
    if "_groups" in own and "__signature__" not in own:
        (sign,) = _signing
        own["__signature__"] = sign(function, own["_groups"])
    return function


_signing: list[Callable[..., Any]] = []


def sign_functions_by(sign: Callable[..., Any]) -> None:
    """Register the function that makes the signature of a function and its groups of keywords, for `with_words`."""
    _signing[:] = [sign]


_settling: list[Callable[..., Any]] = []


def settle_calls_by(settle: Callable[..., Any]) -> None:
    """Register the function that assigns the files of a call to its keywords, for `settled`."""
    _settling[:] = [settle]


def settled(
    function: Callable[..., Any], what: Any, keywords: Mapping[str, Any], behind: Any = None
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Add the settings of a control file to a call of a function, and take coordinates for those of their topology.

    behind : file of coordinates that follows one structure in the call

    Returns the structure, or several, and the keywords.
    """
    (settle,) = _settling
    found: tuple[Any, dict[str, Any]] = settle(function, what, keywords, behind)
    return found


def takes_structures(kind: str) -> Callable[[T], T]:
    """Mark a function whose structure may be an object of another library, which `checked` converts.

    kind : "atoms" for Atoms, made with the function's keywords of reading; "file" for a file in memory with the
        object's parameters, if it has some; "structure" for one with names and positions alone; "either" for Atoms, or
        a file if keywords about files are given
    """

    def mark(function: T) -> T:
        vars(function)["_structure"] = kind
        return function

    return mark


_converting: list[Callable[..., Any]] = []


def convert_objects_by(convert: Callable[..., Any]) -> None:
    """Register the function that converts an object of another library in a call, for `converted`."""
    _converting[:] = [convert]


def converted(
    function: Callable[..., Any], what: Any, by_place: Mapping[str, Any], keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Convert the structure of a call, an object of another library; return it and the keywords that are left."""
    (convert,) = _converting
    found: tuple[Any, dict[str, Any]] = convert(function, what, by_place, keywords)
    return found


_public: list[Callable[[str], Any]] = []


def find_public_names_by(find: Callable[[str], Any]) -> None:
    """Register the function that returns the object of a public name, or a room, for `present` and `public`."""
    _public[:] = [find]


def public(name: str) -> Any:
    """Return the object of a public name, or a room, for a method of a lower room that hands its object to it: `save`.

    name : without "pele_ocl."
    """
    (find,) = _public
    return find(name)


def accept_former(cls: type[T], **names: str) -> type[T]:
    """Let a class's constructor take former names of keywords, with a warning, and its objects have them to read.

    names : the present name by the former one; they end with the next release
    """
    made = cls.__init__

    @wraps(made)
    def init(self: Any, *values: Any, **keywords: Any) -> None:
        for old, new in names.items():
            if old in keywords:
                _warn_of(f"{cls.__name__}({old}=...)", f"{new}=")
                keywords[new] = keywords.pop(old)
        made(self, *values, **keywords)

    cls.__init__ = init  # type: ignore[method-assign]
    for old, new in names.items():
        setattr(cls, old, property(attrgetter(new), doc=f"Former name of `{new}`."))
    return cls


def renamed(former: str, name: str, value: T) -> T:
    """Return the value of a keyword under its former name, with a warning; both as the warning is to name them."""
    _warn_of(former, name, 4)
    return value


def _warn_of(former: str, name: str, level: int = 3) -> None:
    text = f"{former} is now {name}; the former name ends with the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def present(former: str, name: str) -> Any:
    """Warn the caller of a former name, which ends with the next release; return the object of the public one.

    former : the name as it was called; name : without "pele_ocl."
    """
    warnings.warn(
        f"{former} is now pele_ocl.{name}; the former name ends with the next release", DeprecationWarning, stacklevel=3
    )
    (find,) = _public
    return find(name)
