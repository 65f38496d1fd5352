"""An option that takes one value refuses a second one, in every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from pele_ocl.cli import main


def leaves(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield (*path, name), command


def a_value(option: click.Option) -> list[str]:
    if isinstance(option.type, click.Choice):
        right = option.type.choices[0]
    elif isinstance(option.type, click.types.IntParamType) and option.opts[-1] == "--group":
        right = "64"
    else:
        right = OF_A_FORM.get(option.opts[-1], "1000")
    return [right] * option.nargs


OF_A_FORM = {"--idecomp": "2", "--shard": "1/2", "--points": "65", "--points-per-item": "8", "--group": "8x4",
             "--anneal": "0:600,80:300"}  # fmt: skip


CASES = [
    (path, command, option)
    for path, command in leaves(main)
    for option in command.params
    if isinstance(option, click.Option) and not (option.is_flag or option.multiple or option.is_eager)  # which end it
]


@pytest.mark.parametrize(
    ("path", "command", "option"), CASES, ids=[f"{' '.join(path)} {option.opts[-1]}" for path, _, option in CASES]
)
def test_two_values_where_one_is_taken(path, command, option):
    arguments = ["IN"] * sum(isinstance(parameter, click.Argument) for parameter in command.params)
    required = [word for o in command.params if isinstance(o, click.Option) and o.required and o is not option
                for word in (o.opts[-1], *a_value(o))]  # fmt: skip
    twice = [word for name in (option.opts[0], option.opts[-1]) for word in (name, *a_value(option))]
    result = CliRunner().invoke(main, [*path, *arguments, *required, *twice])
    assert result.exit_code == 2
    assert any(f"{name} is given twice; give it once" in result.output for name in option.opts)


def test_help_is_shown_all_the_same():
    result = CliRunner().invoke(main, ["solvent", "--device", "0", "--device", "1", "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output
