"""Conversion of the keywords of public functions to jobs: options for reading, the solvent, and running."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .atoms import Atoms
from .common.arguments import described, file_path, instance, is_file_of_coordinates, several_structures, word_of_file
from .common.errors import InputError, KeywordError, UnexpectedKeywordError, refuse_for_atoms
from .common.inputfile import InputFile, read_file
from .common.modules import with_words
from .common.notes import heard_notes, note
from .forcefield import read_control
from .formats import is_topology
from .gb_models import GB_MODELS
from .gb_models.solvent_model import OF_SOLVENT, SolventModel, solvent_of
from .jobs.outputs import expanded
from .jobs.shards import Run, Shard
from .reading import Reading

if TYPE_CHECKING:
    from .forcefield import ControlFile
    from .jobs.evaluation import EvaluationSpec

PathGiven: TypeAlias = str | PathLike[str]
Given: TypeAlias = PathGiven | Sequence[PathGiven]

_OF_READING = tuple(
    of.name for of in fields(Reading) if of.name not in ("model", "solvent", "structures", "trajectory")
)
_OF_RUN = ("output", "errors", "resume", "workers", "scheduler", "shard", "progress", "call", "keep")
_OF_FRAMES = ("trajectory", "frames", "topology", "image")


@dataclass(frozen=True)
class Door:
    """Keywords of a public function, sorted by topic.

    name : name of the function; model : SolventModel; reading : options for reading files
    given : names of the given keywords, except those declared by the function
    frames : options of the trajectory; run : options for running the computation
    own : further fields of the job
    """

    name: str
    model: SolventModel
    reading: Reading
    given: frozenset[str]
    frames: Mapping[str, Any]
    run: Run
    own: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, function: Callable[..., Any], words: Mapping[str, Any], model: SolventModel | int | None,
        device: object = None, vacuum: str = "gb='none'", spec: type | None = None,
    ) -> Door:  # fmt: skip
        """Sort keywords.

        function : the public function
        words : keywords of the solvent (`like`, and fields of SolventModel), for reading (fields of Reading, or
            `reading`, a Reading), for running (fields of Run), and of the trajectory
        model : a SolventModel, or the number of the model to read
        vacuum : option that omits the solvent, for messages
        spec : dataclass of the job; its fields not declared by the function are also accepted as keywords

        Raises TypeError for an unknown keyword, and InputError for keywords that cannot be combined.
        """
        known = (*OF_SOLVENT, *_OF_READING, *_OF_RUN, *_OF_FRAMES, "reading")
        further = set() if spec is None else {of.name for of in fields(spec) if of.metadata.get("is_keyword", True)}
        reading = words.get("reading")
        for word in words:
            if word not in known and word not in further:
                raise UnexpectedKeywordError(word, (*signature(function).parameters, *known), function.__name__)
        if reading is not None:
            instance("reading", reading, Reading, "a pele_ocl.jobs.Reading")
        number = None if isinstance(model, SolventModel | None) else model
        of_solvent = {word: words[word] for word in OF_SOLVENT if word in words}
        of_reading = {word: words[word] for word in _OF_READING if word in words}
        solvent = model if isinstance(model, SolventModel) else None
        if solvent is not None and of_solvent:
            raise KeywordError(f"choose one of a SolventModel and `{next(iter(of_solvent))}`")
        if solvent is None:
            solvent = solvent_of(of_solvent, vacuum)
        if reading is not None and (of_reading or number is not None):
            raise KeywordError(f"choose one of `reading` and `{next(iter(of_reading), 'model')}`")
        if solvent.gb_model.vacuum and "radii" in of_reading and of_solvent:
            raise KeywordError(f"`{vacuum}` has no solvent; leave out `radii`, which would have no effect")
        read = Reading(**of_reading, model=number) if reading is None else reading
        own = {word: of for word, of in words.items() if word in further and word not in known}
        frames = {word: words[word] for word in _OF_FRAMES if words.get(word) is not None}
        run = {word: words[word] for word in _OF_RUN if word in words}
        if run.get("output") is not None:
            run["output"] = file_path(run["output"], "output")
        if isinstance(run.get("shard"), str):
            run["shard"] = Shard.of(run["shard"])
        chosen = device if isinstance(device, str) else None if device is None else str(device)
        return cls(function.__name__, solvent, read, frozenset(words), frames, Run(**run, device=chosen), own)

    def require_atoms(self) -> None:
        """Raise InputError if keywords about files were given, although the input is Atoms."""
        allowed = {*OF_SOLVENT, "progress", *(_OF_FRAMES if "trajectory" in self.frames else ())}
        refuse_for_atoms(**dict.fromkeys(sorted(self.given - allowed), True))

    def over(self, plan: Any) -> Any:
        """Evaluate the frames of the trajectory with a plan for Atoms."""
        from .trajectories.energies import energies_over, trajectory_for

        words = dict(self.frames)
        over = trajectory_for(plan, words.pop("trajectory"), **words)
        return energies_over(plan, over, progress=self.run.progress)

    def evaluated(self, spec: EvaluationSpec[Any], given: Given, *, alone: Mapping[str, object]) -> Any:
        """Evaluate a file, its models, a trajectory or several files.

        alone : values, by name, of keywords that cannot be combined with a trajectory

        Returns the result of one structure, an Evaluation of its models, FrameEnergies, or Structures.
        """
        given = matched(given)
        run, paths = self.run, paths_of(given)
        if paths is None:
            return self._several(spec, list(given), run)  # type: ignore[arg-type]
        if self.frames:
            from .trajectories.working import frames_by

            return run.without_failures(frames_by(spec, paths, self.frames, run, alone))
        if run.resume:
            raise KeywordError("`resume` applies to a trajectory or several structures; leave it out")
        run.refuse_sharing("one structure is computed by one process")
        if run.output is not None:
            from .formats import require_table_suffix

            require_table_suffix(run.output)
        start = time.perf_counter()
        with heard_notes() as heard:
            found = spec.evaluate(read_file(paths), run.progress, run.output is not None)
        seconds = {**found.seconds, "total": time.perf_counter() - start}
        found = replace(found, heard=tuple(heard), seconds=seconds)
        if run.output is not None:
            found.save(run.output, run.call)
        return run.without_failures(found) if found.numbers else found.one()

    def _several(self, spec: EvaluationSpec[Any], paths: Sequence[PathGiven], run: Run) -> Any:
        if self.frames:
            raise several_structures(paths)
        from .jobs.structures import structures_by

        every = tuple(path if isinstance(path, InputFile) else Path(path) for path in paths)
        if held := [path for path in every if isinstance(path, InputFile)]:
            if run.resume or run.shard is not None or run.place.is_remote:
                raise KeywordError(
                    f"{held[0]} is in memory; `resume`, `shard`, `workers` and `scheduler` need files: give paths"
                )
        files = tuple(path for path in every if isinstance(path, Path))
        return structures_by(replace(spec, reading=replace(spec.reading, structures=files)), every, run)


def matched(given: Any) -> Any:
    """Replace a pattern such as "designs/*.pdb", or patterns in a list, by the matching files.

    A single match is returned as a path. Patterns without a match, and objects other than paths, are unchanged.
    """
    if isinstance(given, str | PathLike) and not isinstance(given, InputFile):
        found = expanded([file_path(given)])
        return given if len(found) == 1 and str(found[0]) == str(Path(given)) else one_or_all(found)
    are_paths = isinstance(given, list | tuple) and all(
        isinstance(of, str | PathLike) and not isinstance(of, InputFile) for of in given
    )
    return [path for of in given for path in expanded([file_path(of)])] if are_paths and given else given


def one_or_all(paths: Sequence[Path]) -> Path | list[Path]:
    """Return a single path instead of a list of length one."""
    return paths[0] if len(paths) == 1 else list(paths)


def paths_listed(given: Given) -> list[PathGiven]:
    """Return one or several paths as a list. Raises InputError as in `paths_of`."""
    alone = paths_of(given)
    return [alone] if alone is not None else list(cast(Sequence[PathGiven], given))


def paths_of(given: Given) -> PathGiven | None:
    """Return a single path, or None for several paths. Raises InputError for anything else."""
    if isinstance(given, str | PathLike):
        return given
    if (
        isinstance(given, Collection)
        and not isinstance(given, Mapping)
        and getattr(given, "ndim", 1) == 1
        and all(isinstance(path, str | PathLike) for path in given)
    ):
        if len(given) == 0:
            raise InputError("no structure is given; give the path of one, or several")
        return None
    if isinstance(given, list | tuple) and all(isinstance(of, Atoms) for of in given):
        raise InputError(
            "several molecules in memory are given; evaluate them one by one, or as rows of pele_ocl.Ensemble, or pass "
            "their paths"
        )
    raise InputError(f"the structure is {described(given)}; expected Atoms, the path of a file or several paths")


def control_settings(control: ControlFile) -> dict[str, Any]:
    """Return the settings of a PELE control file as keywords."""
    return {
        "forcefield": control.forcefield, "pele_data": control.data,
        "allow_missing_terminals": control.allow_missing_terminals,
        "guess_radii": "sgb" in GB_MODELS[control.gb].parameters,  # SGB does not use OBC tables
        "like": "pele", "gb": control.gb, "ionic_strength": control.ionic_strength,
    }  # fmt: skip


def with_settings(control: ControlFile, words: Mapping[str, Any], model: object = None) -> dict[str, Any]:
    """Add the settings of a control file to keywords, which have priority, and issue notes about unsupported settings.

    model : a SolventModel, which replaces all solvent settings
    """
    for sentence in control.notes:
        note(f"Note: {sentence}")
    settings = control_settings(control)
    if isinstance(model, SolventModel) or words.get("gb", control.gb) == "none":  # no solvent settings
        settings = {name: of for name, of in settings.items() if name not in ("like", "gb", "ionic_strength")}
        settings |= {} if isinstance(model, SolventModel) else {"like": "pele", "gb": "none"}
    if words.get("reading") is not None:
        settings = {name: of for name, of in settings.items() if name not in _OF_READING}
    return {**settings, **words}


def structure_of(control: ControlFile, instead: str) -> Path:
    """Return the structure of a control file. instead : alternative, for messages

    Raises InputError if the file does not name exactly one structure, or if that does not exist.
    """
    if len(control.structures) != 1:
        names = f"{len(control.structures)} files of one complex" if control.structures else "no structure"
        raise InputError(f"{control.path}: names {names}; give one file that contains it: {instead}")
    (path,) = control.structures
    if not path.exists():
        raise InputError(f"{control.path}: its structure {path} does not exist; give one: {instead}")
    return path


def by_given_files(
    function: Callable[..., Any], what: Any, keywords: Mapping[str, Any], behind: PathGiven | None = None
) -> tuple[Any, dict[str, Any]]:
    """Recognize PELE control files, and coordinate files after topologies, among the arguments of a call.

    behind : coordinate file after a single structure, used as `coordinates` if the structure is a topology
    """
    if behind is not None:
        return what, {**keywords, "coordinates": behind} if belongs_to_topology(what, behind) else dict(keywords)
    what, words = _with_coordinates(function, what, dict(keywords))
    return _by_control_file(function, what, words)


def belongs_to_topology(path: PathGiven, behind: PathGiven) -> bool:
    """Return whether the second path is a coordinate file, and the first is a topology without coordinates."""
    return is_file_of_coordinates(behind) and not Path(path).is_dir() and is_topology(path)


def _with_coordinates(function: Callable[..., Any], what: Any, words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Move coordinate files from a list of structures to the keyword `coordinates` of their topologies.

    This includes a structure without parameters directly after a topology, such as a .gro file after a .top file. A
    single topology with coordinates is one structure.

    Raises KeywordError for coordinates without a topology, and for a trajectory after a structure.
    """
    if (
        not isinstance(what, list | tuple)
        or not all(isinstance(path, str | PathLike) for path in what)
        or words.get("coordinates", getattr(words.get("reading"), "coordinates", ()))
        or "coordinates" not in signature(with_words(function)).parameters
    ):
        return what, words
    left, coordinates, topology = list[PathGiven](), list[PathGiven](), ""
    has_trajectory = "trajectory" in signature(with_words(function)).parameters and "trajectory" not in words
    for path in what:
        word = word_of_file(path)
        if not Path(path).is_dir() and is_topology(path):
            topology = str(path)
            left.append(path)
            continue
        if word == "trajectory" and (topology or (left and has_trajectory)):
            raise KeywordError(
                f"{path}: is a trajectory of {topology or left[-1]}; pass it as `trajectory={str(path)!r}`"
            )
        (coordinates if word == "coordinates" or topology else left).append(path)
        topology = ""
    if not coordinates:
        return what, words
    if not any(map(is_topology, left)):
        raise KeywordError(f"{coordinates[0]}: contains only coordinates; give the topology before it")
    if words.get("reading") is None:
        words["coordinates"] = coordinates[0] if len(coordinates) == 1 else tuple(coordinates)
    else:
        structures = tuple(map(Path, left))
        words["reading"] = replace(words["reading"], coordinates=tuple(coordinates), structures=structures)
    return left[0] if len(left) == 1 else type(what)(left), words


def _by_control_file(
    function: Callable[..., Any], what: Any, keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Add the settings of a PELE control file, given as `pele_conf` or as the structure, to a call.

    Returns the structure, by default that of the control file, and the keywords.
    """
    words = {name: of for name, of in keywords.items() if name != "pele_conf"}
    given = keywords.get("pele_conf")
    if given is None and not str(what).endswith(".conf"):
        return what, words
    control, known = (
        read_control(what if given is None else file_path(given, "pele_conf")),
        signature(with_words(function)).parameters,
    )
    if given is None:
        what = structure_of(control, "its path, and this file as `pele_conf`")
    settled = with_settings(control, words, words.get("model"))
    return what, {name: of for name, of in settled.items() if name in known or name in words}
