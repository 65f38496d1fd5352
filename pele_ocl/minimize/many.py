"""Different molecules minimised together."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import callback, choice, described
from ..atoms import Atoms
from ..errors import DeviceError, DeviceMemoryError, InputError, KernelBuildError, PeleError
from ..plan.plan import CHUNK_ATOMS
from ..variant import Progress
from .minimizer import Minimizer, Turns, Watch
from .pack import Member, Seated
from .packs import Packs
from .result import MinimizeBatch, MinimizeResult

EachOptions = Callable[[Atoms], Mapping[str, object]]
Options = Mapping[str, Any]  # of a Minimizer

MOST_UNDER_WAY = 16  # groups of molecules of one topology each, that do not share launches
PACKED = -1  # stands for all that share launches, where groups are told apart
SHARING = CHUNK_ATOMS // 4  # atoms; of smaller groups those of two topologies or more share launches
_DONE = object()


def minimize_all(
    molecules: Sequence[Atoms], each: EachOptions | None, errors: str, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> MinimizeBatch:  # fmt: skip
    """The results of molecules in their order; parameters as of `minimize_many`."""
    begin = perf_counter()
    choice("errors", errors, ("raise", "record"))
    if not isinstance(molecules, Sequence):
        raise InputError(f"molecules is {described(molecules)}; a list of Atoms is needed")
    for name, function in (("each", each), ("progress", progress), ("watch", watch)):
        callback(name, function)
    results: list[MinimizeResult | None] = [None] * len(molecules)
    reasons: dict[int, str] = {}
    with closing(as_done(molecules, each, progress, watch, options)) as done:
        for k, result in done:
            if not isinstance(result, str):
                results[k] = result
            elif errors == "record":
                reasons[k] = result
            else:
                raise InputError(f"molecule {k + 1} of {len(molecules)}: {result}")
    assert all(result is not None or k in reasons for k, result in enumerate(results))
    return MinimizeBatch(results, dict(sorted(reasons.items())), perf_counter() - begin)


def as_done(
    molecules: Sequence[Atoms], each: EachOptions | None, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> Iterator[tuple[int, MinimizeResult | str]]:  # fmt: skip
    """The number of each molecule, and its result or why it has none, as they come; parameters as of `minimize_many`."""
    together = Together(molecules, each, options, progress, watch)
    groups = groups_of(molecules, alone=each is not None or bool(options.get("terms")))
    with closing(together.minimized(groups, most_under_way(options))) as turns:
        is_over = False
        while not is_over:
            is_over = next(turns, _DONE) is _DONE
            while together.arrived:
                k = together.arrived.popleft()
                result = together.results[k]
                yield k, together.reasons[k] if result is None else result


class Together:
    """The results of different molecules as far as they are there, and how far the others are.

    results : None of those that are not done; reasons : of those that failed, by their number from 0
    arrived : the numbers of those that are done or failed, in this order, for whoever takes them
    """

    def __init__(
        self, molecules: Sequence[Atoms], each: EachOptions | None, options: Options,
        progress: Progress | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        self._molecules, self._each, self._options = molecules, each, options
        self._progress, self._watch = progress, watch
        self.results: list[MinimizeResult | None] = [None] * len(molecules)
        self.reasons: dict[int, str] = {}
        self.arrived = deque[int]()
        self._n_done = 0  # of groups that are done
        self._crowded: list[Sequence[int]] = []  # groups for which the device had no room beside others
        self._under_way: dict[int, tuple[int, float]] = {}  # done and largest gradient of the others, by group

    def minimized(self, groups: Sequence[Sequence[int]], most: int) -> Turns[None]:
        """Minimise groups, `most` at a time. Those for which the device had no room come last, one at a time."""
        shares = most > 1 and may_share(self._options)
        few = [group for group in groups if shares and self._n_atoms(group) < SHARING]
        sharing = {group[0] for group in few} if len(few) > 1 else set()
        works, sizes = self._works([group for group in groups if group[0] not in sharing], aside=most > 1)
        if sharing:
            # No other work beside packs, which themselves have more atoms under way: packs.MOST_ATOMS.
            works, sizes = [*works, self._packed(few, most)], [*sizes, CHUNK_ATOMS]
        yield from by_turns(works, sizes, most)
        if self._crowded:
            crowded, self._crowded = self._crowded, []
            yield from self.minimized(crowded, 1)

    def _works(self, groups: Sequence[Sequence[int]], aside: bool) -> tuple[list[Turns[None]], list[int]]:
        """The works that minimise groups, and the atoms that each has on the device."""
        return [self._minimized(group, aside) for group in groups], [
            min(self._n_atoms(group), CHUNK_ATOMS) for group in groups
        ]

    def _n_atoms(self, group: Sequence[int]) -> int:
        return len(group) * len(self._molecules[group[0]])

    def _packed(self, groups: Sequence[Sequence[int]], most: int) -> Turns[None]:
        """Minimise these groups with shared launches; then, side by side, those that cannot share.

        most : of the latter that are under way at a time
        """
        others: list[Sequence[int]] = []
        try:
            yield from self._in_packs(groups, others)
        except DeviceMemoryError:  # for all together; each that is not done may find room
            left = ([k for k in of if self.results[k] is None and k not in self.reasons] for of in groups)
            others = [of for of in left if of]
        self._under_way.pop(PACKED, None)
        yield from by_turns(*self._works(others, aside=True), most)

    def _in_packs(self, groups: Sequence[Sequence[int]], others: list[Sequence[int]]) -> Turns[None]:
        """Minimise the molecules of these groups by the same launches. others : gets groups that cannot be so"""
        from ..opencl.device import get_device

        device, precision = get_device(self._options.get("device")), self._options.get("precision", "float32")
        largest_first = sorted(groups, key=lambda group: len(self._molecules[group[0]]), reverse=True)
        with ExitStack() as stack:
            packs = Packs(device, precision, stack)
            structures = self._structures(packs, largest_first, others)
            packs.fill(structures)
            while packs:
                packs.start()
                packs.fill(structures)
                yield
                for k, result in packs.look():
                    self._keep(k, result)
                self._tell(PACKED, 0, 0, packs.largest_gradient)

    def _structures(
        self, packs: Packs, groups: Sequence[Sequence[int]], others: list[Sequence[int]]
    ) -> Iterator[Seated | None]:
        """The structures of groups, each prepared when it is asked for, with None between the parts of that.

        others : gets groups that cannot be packed
        """
        for group in groups:
            member = None
            try:
                minimizer = self._minimizer(group)
                yield None
                member = Member(minimizer) if packs.suits(minimizer) else None
                yield None
                fits = member is not None and packs.fits(member)
            except (DeviceError, KernelBuildError):  # the plain kernels may build
                fits = False
            except PeleError as error:
                for k in group:
                    self._keep(k, str(error))
                continue
            if member is None or not fits:
                others.append(group)
                continue
            for k in group:
                try:
                    structure = packs.structure(member, k, self._molecules[k].positions)
                except InputError as error:
                    self._keep(k, str(error))
                else:
                    yield structure

    def _keep(self, k: int, result: MinimizeResult | str) -> None:
        """Keep the result of a molecule, or why there is none."""
        self._n_done += 1
        self.arrived.append(k)
        if isinstance(result, str):
            self.reasons[k] = result
        else:
            self.results[k] = replace(result, atoms=self._molecules[k].moved(result.positions))

    def _minimizer(self, group: Sequence[int]) -> Minimizer:
        """That of the molecules of these numbers. Raises PeleError where there is none."""
        first = self._molecules[group[0]]
        return Minimizer(first, **{**self._options, **({} if self._each is None else self._each(first))})

    def _minimized(self, group: Sequence[int], aside: bool) -> Turns[None]:
        """Minimise the molecules of these numbers, which differ in positions alone.

        aside : whether the device does so beside what others give it
        """
        try:
            yield from self._results_of(group, aside)
        except PeleError as error:
            if aside and isinstance(error, DeviceMemoryError):
                self._crowded.append(group)
            else:
                self.reasons |= dict.fromkeys(group, str(error))
                self.arrived.extend(group)
        self._under_way.pop(group[0], None)
        self._n_done += sum(self.results[k] is not None or k in self.reasons for k in group)

    def _results_of(self, group: Sequence[int], aside: bool) -> Turns[None]:
        minimizer = self._minimizer(group)
        starts = np.stack([self._molecules[k].positions for k in group])
        batch = yield from minimizer._in_turns(starts, "record", None, partial(self._tell, group[0]), aside)
        self.reasons |= {group[k]: reason for k, reason in batch.errors.items()}
        for k, result in batch.good:
            self.results[group[k]] = replace(result, atoms=self._molecules[group[k]].moved(result.positions))
        self.arrived.extend(group)

    def _tell(self, group: int, done: int, _: int, gradient: float) -> None:
        """Tell who asked how far all are, by what is known of a group."""
        self._under_way[group] = done, gradient
        dones, gradients = zip(*self._under_way.values(), strict=True)
        n_done = self._n_done + sum(dones)
        if self._progress is not None:
            self._progress(n_done / len(self._molecules))
        if self._watch is not None:
            self._watch(n_done, len(self._molecules), max(gradients))


def by_turns(works: Sequence[Turns[None]], sizes: Sequence[int], most: int) -> Turns[None]:
    """Give some works a turn each, over and over until they are done, or until this is closed.

    sizes : atoms that each has on the device; at a time there are CHUNK_ATOMS at most, of `most` works
    """
    waiting = deque(zip(works, sizes, strict=True))
    under_way: deque[tuple[Turns[None], int]] = deque()
    try:
        while waiting or under_way:
            n_atoms = sum(size for _, size in under_way)
            while waiting and len(under_way) < most and n_atoms + waiting[0][1] <= CHUNK_ATOMS:
                n_atoms += waiting[0][1]
                under_way.append(waiting.popleft())
            work = under_way[0][0]
            is_done = next(work, _DONE) is _DONE
            under_way.rotate(-1)
            if is_done:
                under_way.pop()
            yield
    finally:
        for work, _ in under_way:
            work.close()


def most_under_way(options: Options) -> int:
    """How many groups of molecules a device minimises at a time.

    A CPU gains nothing by more than one; and where seconds are limited each has the device for itself.
    """
    from ..opencl.device import get_device

    try:
        is_gpu = get_device(options.get("device")).kind == "GPU"
    except PeleError:  # of which each group will tell
        is_gpu = False
    return MOST_UNDER_WAY if is_gpu and options.get("max_seconds") is None else 1


def may_share(options: Options) -> bool:
    """Whether molecules with these options may share launches, as far as the options tell."""
    return options.get("method") != "newton" and options.get("rounds", 1) == 1 and options.get("frozen") is None


def groups_of(molecules: Sequence[Atoms], alone: bool) -> list[list[int]]:
    """The numbers of molecules that are computed together: those that differ in positions alone.

    alone : each by itself, as restraints need it, which hold to the positions of their own molecule
    """
    alike: dict[object, list[int]] = {}  # by charges, which tell most molecules apart, and sooner than all there is
    for k, atoms in enumerate(molecules):
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules hold {type(atoms).__name__}; Atoms are needed")
        alike.setdefault(k if alone else atoms.charges.tobytes(), []).append(k)
    groups: dict[object, list[int]] = {}
    for key, numbers in alike.items():
        for k in numbers:
            groups.setdefault(key if len(numbers) == 1 else digest(molecules[k]), []).append(k)
    return sorted(groups.values())


def digest(atoms: Atoms) -> bytes:
    """The same for molecules that differ in nothing but positions, chains and numbers of residues."""
    about = len(atoms), atoms.combining, atoms.one_four, atoms.gb_radii_set, atoms.type_family
    found = hashlib.sha256(repr(about).encode())
    arrays: list[NDArray[Any] | None] = [
        atoms.charges, atoms.lj_sigma, atoms.lj_epsilon, atoms.gb_radii, atoms.gb_scales, atoms.bonds, atoms.types,
    ]  # fmt: skip
    if atoms.labels is not None:
        arrays += [atoms.labels.names, atoms.labels.elements, atoms.labels.residue_names]
    if atoms.bonded is not None:
        for _, table in atoms.bonded.tables():
            arrays += [table.atoms, table.parameters]
        arrays += [*atoms.bonded.maps, atoms.bonded.excluded]
    for array in arrays:
        values = np.zeros(0) if array is None else np.ascontiguousarray(array)
        found.update(f"{values.dtype}{values.shape}".encode())
        found.update(values.tobytes())
    return found.digest()
