"""Lazy imports, callable modules, keyword groups, and deprecated names."""

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
_PUBLIC = "_public_names"  # attribute with the `__all__` of a callable module


def lazy_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` function for a package, which imports names on first use.

    package : its `__name__`; names : by module of the package, its public names, such as "Tiles tiles_of"
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
    """Module that can be called like the function of the same name in it: `pele_ocl.energy(atoms)`.

    Importing a subpackage sets an attribute of its package, which would replace a function of the same name. Therefore
    the subpackage itself is made callable.
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
        """Docstring of the function with its signature, which `help` only shows for functions.

        It is used by pydoc, which bypasses `__getattribute__`. Other tools get the docstring without the signature.
        """
        import textwrap

        first, _, rest = (with_words(self._function).__doc__ or "").partition("\n")
        called = f"{self._function.__name__}{self.__signature__}"
        return "\n\n    ".join([first, textwrap.fill(called, 112, subsequent_indent="        "), rest.strip()])

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__
        return with_words(found("_function")).__doc__ if name == "__doc__" else found(name)

    def __dir__(self) -> list[str]:
        """Return the public classes and functions of other modules, so that `help` describes the function."""
        own = vars(self)
        public = {of: own.get(of) for of in own.get(_PUBLIC, ()) if not of.isupper()}  # None if not yet imported
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
    """Make an imported module callable as its function, with the function's docstring.

    name : full name of the module. Its `__all__` is removed, because `help` would show all classes in it.
    """
    module = sys.modules[name]
    vars(module)[_PUBLIC] = vars(module).pop("__all__", ())
    module.__class__ = CallableModule


def refuse_calls(name: str, instead: str) -> None:
    """Let calls of an imported module raise TypeError. name : its full name; instead : advice for the message"""

    class Uncalled(ModuleType):
        def __call__(self, *_: Any, **__: Any) -> Any:
            raise TypeError(f"{name} is a module, which cannot be called; {instead}")

    sys.modules[name].__class__ = Uncalled


def takes(*groups: str) -> Callable[[T], T]:
    """Declare the groups of keywords in `**words`: keys of jobs.words, or ".module:Class" for the fields of a class."""

    def mark(function: T) -> T:
        vars(function)["_groups"] = groups
        return function

    return mark


def with_words(function: T) -> T:
    """Set the complete signature of a function with keyword groups on first use. Returns the function."""
    own = vars(function)
    if "_groups" in own and "__signature__" not in own:
        (sign,) = _signing
        own["__signature__"] = sign(function, own["_groups"])
    return function


_signing: list[Callable[..., Any]] = []


def sign_functions_by(sign: Callable[..., Any]) -> None:
    """Register the function that creates signatures with keyword groups, for `with_words`."""
    _signing[:] = [sign]


_settling: list[Callable[..., Any]] = []


def settle_calls_by(settle: Callable[..., Any]) -> None:
    """Register the function that assigns files of a call to keywords, for `settled`."""
    _settling[:] = [settle]


def settled(
    function: Callable[..., Any], what: Any, keywords: Mapping[str, Any], behind: Any = None
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Add the settings of a control file to the arguments of a function, and assign coordinate files to topologies.

    behind : coordinate file after a single structure in the call

    Returns one or several structures, and the keywords.
    """
    (settle,) = _settling
    found: tuple[Any, dict[str, Any]] = settle(function, what, keywords, behind)
    return found


def takes_structures(kind: str) -> Callable[[T], T]:
    """Mark a function that accepts objects of other libraries as structure, which `checked` converts.

    kind : "atoms" to convert to Atoms, using the function's keywords for reading; "file" for a file in memory with the
        object's parameters, if any; "structure" for one with only names and positions; "either" for Atoms, or a file if
        keywords about files are given
    """

    def mark(function: T) -> T:
        vars(function)["_structure"] = kind
        return function

    return mark


_converting: list[Callable[..., Any]] = []


def convert_objects_by(convert: Callable[..., Any]) -> None:
    """Register the function that converts objects of other libraries, for `converted`."""
    _converting[:] = [convert]


def converted(
    function: Callable[..., Any], what: Any, by_place: Mapping[str, Any], keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Convert an object of another library in a call. Returns the structure and the remaining keywords."""
    (convert,) = _converting
    found: tuple[Any, dict[str, Any]] = convert(function, what, by_place, keywords)
    return found


_public: list[Callable[[str], Any]] = []


def find_public_names_by(find: Callable[[str], Any]) -> None:
    """Register the function that returns a public object or package by name, for `present` and `public`."""
    _public[:] = [find]


def public(name: str) -> Any:
    """Return a public object or package by name, for use in lower-level packages that cannot import it.

    name : without "pele_ocl."
    """
    (find,) = _public
    return find(name)


def accept_former(cls: type[T], **names: str) -> type[T]:
    """Let a constructor accept deprecated keywords, with a warning, and add them as read-only attributes.

    names : current name by deprecated name; these are removed in the next release
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
    """Return the value of a deprecated keyword, with a warning that contains both names."""
    _warn_of(former, name, 4)
    return value


def _warn_of(former: str, name: str, level: int = 3) -> None:
    text = f"{former} is now {name}; the former name will be removed in the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def present(former: str, name: str) -> Any:
    """Return the public object for a deprecated name, which is removed in the next release, with a warning.

    former : deprecated name; name : without "pele_ocl."
    """
    warnings.warn(
        f"{former} is now pele_ocl.{name}; the former name will be removed in the next release",
        DeprecationWarning,
        stacklevel=3,
    )
    (find,) = _public
    return find(name)
