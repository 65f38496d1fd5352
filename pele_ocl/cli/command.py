"""The class of all commands that compute or read something."""

from __future__ import annotations

import click


class EachOnce(click.Command):
    """Refuses a second value for an option that takes one; click itself would drop the first without a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        left = super().parse_args(ctx, args)  # first, so that --help and mistakes in single values are answered first
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, given)
        return left

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
