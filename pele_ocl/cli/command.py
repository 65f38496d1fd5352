"""Base class of commands, and parameter types for files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from ..common.errors import KeywordError, worded
from ..common.paths import file_path
from .control_file import with_control_file

_QUOTES = "\"'"
# Keys of the click context.
DEBUG = "pele_ocl.debug"

# Option names that differ from the keywords of functions.
_OPTION_OF = {"only_terms": "terms", "ligands": "ligand_file", "pairs": "pairs_file"}


def spelling(group: click.Context) -> Callable[[str, str | None], str | None]:
    """Return a function that converts keywords to the options of the running command."""

    def spell(name: str, value: str | None) -> str | None:
        name = _OPTION_OF.get(name, name)
        running = click.get_current_context(silent=True) or group
        command = running.command
        if isinstance(command, click.Group) and running.invoked_subcommand is not None:
            command = command.get_command(running, running.invoked_subcommand) or command
        named = _options(command)
        root = running.find_root().command
        is_unknown = name not in named and f"no_{name}" not in named
        if is_unknown and isinstance(command, EachOnce) and command.followed_by and isinstance(root, click.Group):
            following = root.get_command(running, command.followed_by)
            named = {} if following is None else _options(following)
        if value == "False" and f"no_{name}" in named:
            name, value = f"no_{name}", None
        if (option := named.get(name)) is None:
            return None
        word = next((opt for opt in option.opts if opt.startswith("--")), option.opts[0])
        if value == "False":
            return option.secondary_opts[0] if option.secondary_opts else None
        return word if value in (None, "True") else f"{word} {shlex.quote(value.strip(_QUOTES))}"

    return spell


def _options(command: click.Command) -> dict[str | None, click.Option]:
    return {of.name: of for of in command.params if isinstance(of, click.Option)}


class _File(click.Path):
    """Path of a file or folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "" or "\0" in str(value):
            self.fail("not a valid file name", param, ctx)
        return file_path(super().convert(value, param, ctx))


class Input(_File):
    """Path of an input."""


class Output(_File):
    """Path of an output, which must not be an input."""


INPUT, OUTPUT = Input(), Output()

# Headings of options in --help-all, in this order.
HEADINGS = (
    "Options", "Parts of the complex", "Analysis", "Dynamics", "Output", "Stopping", "Restraints and constraints",
    "Computation", "Models and trajectories", "Choosing atoms", "Structure and force field", "Solvent",
    "Devices and processes", "Reports",
)  # fmt: skip
# Option names of other programs, with the equivalent options to suggest.
ALIASES = {"--salt": "--ionic-strength", "--saltcon": "--ionic-strength", "--igb": "--gb", "--extdiel":
           "--solvent-dielectric", "--intdiel": "--solute-dielectric", "--surften": "--surface-tension",
           "-n": "--replicas"}  # fmt: skip
_SHARING = ("workers", "scheduler", "shard", "ranks")  # options with which processes claim a device and cores
_FEW = 20  # options that do not need headings
_ALL = "pele_ocl.help_all"  # key of the click context: True while all options are shown


def show_all_options(ctx: click.Context) -> None:
    """Make the help text of a context list every option."""
    ctx.meta[_ALL] = True


def _print_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        show_all_options(ctx)
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Option(click.Option):
    """Option with a heading for help texts, and hidden deprecated names.

    heading : one of HEADINGS
    essential : whether --help shows the option of a command with many options; --help-all shows all
    """

    def __init__(
        self, declarations: Sequence[str], *, heading: str = HEADINGS[0], essential: bool = False,
        former: Sequence[str] = (), **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__([*declarations, *former], **settings)
        assert heading in HEADINGS, heading
        self.heading, self.essential = heading, essential or self.required
        self.former = tuple(name for names in former for name in names.split("/"))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        with self._present_names():
            return super().get_help_record(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        with self._present_names():
            return super().get_error_hint(ctx)

    @contextmanager
    def _present_names(self) -> Iterator[None]:
        """Hide deprecated names of options within the block."""
        every = self.opts, self.secondary_opts
        self.opts, self.secondary_opts = ([opt for opt in opts if opt not in self.former] for opts in every)
        try:
            yield
        finally:
            self.opts, self.secondary_opts = every


def command_option(
    *declarations: str, cls: type[Option] = Option, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option to a command. settings : of Option and click.option"""
    return click.option(*declarations, cls=cls, **settings)


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --debug to a command, or to the group of all commands, where it precedes the command."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.meta[DEBUG] = True

    return command_option(
        "--debug", is_flag=True, expose_value=False, callback=remember, help="Show the traceback of an error.",
        heading="Reports",
    )(command)  # fmt: skip


def _listing(option: click.Parameter) -> tuple[str, bool]:
    """Return the heading of an option or argument, and whether it is essential."""
    if isinstance(option, Option):
        return option.heading, option.essential
    if "--help" in option.opts:  # defined by click
        return HEADINGS[-1], True
    return HEADINGS[0], option.required or isinstance(option, click.Argument)


def _help_all(hidden: bool) -> click.Option:
    return Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_print_all, hidden=hidden,
        help="Show all options and exit.", heading=HEADINGS[-1], essential=True,
    )  # fmt: skip


class EachOnce(click.Command):
    """Command that rejects repeated options, and outputs that are also inputs.

    By default, click silently ignores all but the last value. Choices are case-insensitive.

    followed_by : command that reads the output; messages name its options for keywords that this command does not have
    """

    def __init__(self, *values: Any, followed_by: str = "", **settings: Any) -> None:
        super().__init__(*values, **settings)
        self.followed_by = followed_by
        for of in self.params:
            if isinstance(of.type, click.Choice) and all(word == word.lower() for word in of.type.choices):
                of.type.case_sensitive = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with self._suggesting(ctx, args):
            if not ctx.resilient_parsing:
                args = self._with_coordinates(ctx, with_control_file(self, ctx, args))
            given = args
            # First, so that --help and errors in single values have priority.
            left = super().parse_args(ctx, list(args))
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, given)
            self._refuse_overwriting(ctx)
        return left

    def _with_coordinates(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the coordinates option before a coordinate file that follows a single topology."""
        first = next((of for of in self.params if isinstance(of, click.Argument)), None)
        option = next((of for of in self.params if of.name == "coordinates"), None)
        if first is None or option is None or first.nargs != 1 or {"--help", "--help-all"} & {*args}:
            return args
        found, left, _ = self.make_parser(ctx).parse_args(list(args))
        path = found.get(first.name or "")
        if not isinstance(path, str) or found.get("coordinates") or found.get("trajectory"):
            return args
        rest = [of for argument in self.params if isinstance(argument, click.Argument) and argument is not first
                for of in _listed(found.get(argument.name or ""))]  # fmt: skip
        behind = next(iter([*rest, *left]), None)
        if behind is None:
            return args
        from ..doors import belongs_to_topology  # which brings NumPy

        if not belongs_to_topology(path, behind):
            return args
        place = args.index(behind, args.index(path) + 1)
        return [*args[:place], option.opts[0], *args[place:]]

    @contextmanager
    def _suggesting(self, ctx: click.Context, args: Sequence[str]) -> Iterator[None]:
        """Suggest the equivalent of another program's option, for AMBER's igb including the value."""
        try:
            yield
        except click.NoSuchOption as error:
            ours = ALIASES.get(error.option_name)
            if ours is None or not any(ours in option.opts for option in self.params):
                raise
            if error.option_name == "--igb":
                ours = f"{ours} {_model_of_igb(args)}".strip()
            raise click.UsageError(f"No such option {error.option_name!r}. (Did you mean {ours!r}?)", ctx) from None
        except click.UsageError as error:
            self._say_each(ctx, args, error)
            raise

    def _say_each(self, ctx: click.Context, given: Sequence[str], error: click.UsageError) -> None:
        """Raise UsageError with advice for extra values of a repeatable option, or for a file without its option."""
        if "unexpected extra argument" not in error.message:
            return
        several = [option for option in self.params if isinstance(option, click.Option) and option.multiple]
        words = {word for option in several for word in option.opts}
        for word, _, after in zip(given, given[1:], given[2:], strict=False):
            if word in words and not after.startswith("-"):
                raise click.UsageError(f"{error.message}; give {word} once for each value", ctx) from None
        from ..common.arguments import word_of_file  # which brings NumPy

        options = {option.name: option for option in self.params if isinstance(option, click.Option)}
        for before, word in pairwise(given):
            option = options.get(word_of_file(word) or "")
            if option is not None and not before.startswith("-"):
                name = max(option.opts, key=len)
                raise click.UsageError(f"{error.message}; give it as {name} {word}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and convert KeywordError to UsageError."""
        if "device" in ctx.params and not any(ctx.params.get(name) for name in _SHARING):
            _start_drivers(ctx.params["device"])
        try:
            if _takes_call(self.callback):
                from .call import Call

                ctx.params["call"] = Call.of(ctx, [path for _, path in self._paths(ctx, Output)])
            return super().invoke(ctx)
        except KeywordError as error:
            raise click.UsageError(worded(str(error), spelling(ctx)), ctx) from error

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return arguments and options, including --help-all, which is hidden if there are few options."""
        found = super().get_params(ctx)
        return [*found, _help_all(len(found) <= _FEW)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: all if there are few, otherwise the essential ones or, with --help-all, all in groups."""
        options = [(_listing(option), option.get_help_record(ctx)) for option in self.get_params(ctx)]
        shown = [(listing, record) for listing, record in options if record is not None]
        is_many, wants_all = len(shown) > _FEW, ctx.meta.get(_ALL, False)
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for (heading, _), record in shown:
            records[heading if is_many else HEADINGS[0]].append(record)
        if is_many and not wants_all:
            essential = {record for (_, is_essential), record in shown if is_essential}
            records = {HEADINGS[0]: [each for listed in records.values() for each in listed if each in essential]}
        for heading, listed in records.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)
        left = len(shown) - sum(map(len, records.values()))
        if left:
            formatter.write_paragraph()
            formatter.write_text(f"{left} more options: {ctx.command_path} --help-all")

    def _refuse_repeated(self, ctx: click.Context, args: list[str]) -> None:
        _, _, order = self.make_parser(ctx).parse_args(args)
        seen = set[str]()
        for parameter in order:
            if not isinstance(parameter, click.Option) or parameter.multiple or parameter.is_flag:
                continue
            if parameter.name in seen:
                name = max(parameter.opts, key=len)
                raise click.UsageError(f"{name} is given twice; give it once", ctx)
            seen.add(parameter.name or "")

    def _refuse_overwriting(self, ctx: click.Context) -> None:
        """Raise UsageError for two equal outputs, and FormatError for outputs that are inputs or cannot be written."""
        outputs = list(self._paths(ctx, Output))
        if not outputs:
            return
        from ..common.writing import same_file
        from ..jobs.outputs import refuse_overwriting

        for k, (name, path) in enumerate(outputs):
            for other_name, other in outputs[:k]:
                if same_file(path, other):
                    both = f"{name} names one file twice" if name == other_name else f"{other_name} and {name} name"
                    same = "" if name == other_name else " the same file"
                    raise click.UsageError(f"{both}{same}; give one of them a different name", ctx)
        for _, path in outputs:
            refuse_overwriting(path, self.inputs(ctx))

    def inputs(self, ctx: click.Context) -> list[Path]:
        """Return the paths of all inputs of a call."""
        return [path for _, path in self._paths(ctx, Input)]

    def _paths(self, ctx: click.Context, kind: type[_File]) -> Iterator[tuple[str, Path]]:
        """Yield the given paths of a parameter type, with the name of the option or argument."""
        for parameter in self.params:
            if isinstance(parameter.type, kind):
                value = ctx.params.get(parameter.name or "")
                name = parameter.opts[0] if isinstance(parameter, click.Option) else str(parameter.metavar)
                for path in value if isinstance(value, tuple) else (value,):
                    if path is not None:
                        yield name, path


def _listed(value: Any) -> list[str]:
    """Return the values of an argument as a list."""
    return list(value) if isinstance(value, tuple | list) else [value] if isinstance(value, str) else []


def _start_drivers(device: object) -> None:
    """Start loading the drivers while files are read; without a choice, only those for a single GPU."""
    from ..opencl.loader import GPU
    from ..opencl.runtimes import DEVICE_VARIABLE, load_runtimes

    load_runtimes(0 if device or os.environ.get(DEVICE_VARIABLE) else GPU)


def _takes_call(callback: Any) -> bool:
    """Return whether a command function, or a function that it wraps, has a parameter `call`."""
    while callback is not None:
        code = callback.__code__
        if "call" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            return True
        callback = getattr(callback, "__wrapped__", None)
    return False


def _model_of_igb(args: Sequence[str]) -> str:
    """Return the name of the GB model for `--igb N` or `--igb=N`, "" if there is none."""
    from ..gb_models import GB_MODELS  # which brings NumPy

    given = " ".join(args).replace("--igb=", "--igb ").split()
    number = given[given.index("--igb") + 1 :][:1]
    return next((name for name, model in GB_MODELS.items() if [str(model.igb)] == number), "")
