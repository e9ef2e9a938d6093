"""matrix.yaml: what it says, what a pattern means, and how each slip in it is told."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from harness import schemas
from harness.errors import ExitStatus, HarnessError, HarnessErrors
from harness.matrix import Cell, Device, Era, Impossible, Matrix, load_matrix
from harness.matrix_file.yaml_text import parse
from harness.results import NotRunReason
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "matrix"
GOOD = sorted(FIXTURES.glob("good-*.yaml"))
BAD = sorted(FIXTURES.glob("bad-*.yaml"))
LINUX = "linux-x86_64"


def name_of(path: Path) -> str:
    return path.stem


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(ROOT / "matrix.yaml")


@pytest.fixture(scope="module")
def everything() -> Matrix:
    return load_matrix(FIXTURES / "good-everything.yaml")


def cells(
    matrix: Matrix, *patterns: str, platform: str = LINUX, found: Sequence[str] = ()
) -> tuple[Cell, ...]:
    return matrix.cells(patterns, platform=platform, found_pythons=frozenset(found))


def ids(matrix: Matrix, *patterns: str, **where: Any) -> list[str]:
    return [cell.id for cell in cells(matrix, *patterns, **where)]


def plain(data: object) -> Any:
    """What another reader of YAML makes of a file, days and times being texts to most."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, tuple):
        return [plain(value) for value in data]
    return data


# ------------------------------------------------------------------------------------ slips in the file


def test_there_are_fixtures() -> None:
    assert len(GOOD) >= 3
    assert len(BAD) >= 60
    assert {path.with_suffix(".txt") for path in BAD} == set(FIXTURES.glob("*.txt"))


@pytest.mark.parametrize("path", GOOD, ids=name_of)
def test_good_files_are_read_and_valid_under_the_schema(path: Path) -> None:
    assert load_matrix(path).releases
    data = plain(parse(path.read_text(encoding="utf-8-sig")).data)
    jsonschema.Draft202012Validator(schemas.matrix_schema()).validate(data)


@pytest.mark.parametrize("path", BAD, ids=name_of)
def test_every_slip_is_one_sentence_with_its_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FIXTURES)
    with pytest.raises(HarnessErrors) as caught:
        load_matrix(Path(path.name))
    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert caught.value.render() + "\n" == expected
    for error in caught.value.errors:
        assert error.status == ExitStatus.USAGE
        assert re.fullmatch(rf"{re.escape(path.name)}:\d+:\d+", error.where)
        assert not re.search(
            r"\n|pydantic|Input|should be|https://errors", error.message + error.hint
        )
        assert not error.message.endswith(".")


def test_mistakes_are_told_in_the_order_of_the_file() -> None:
    with pytest.raises(HarnessErrors) as caught:
        load_matrix(FIXTURES / "bad-several.yaml")
    places = [[int(n) for n in error.where.split(":")[-2:]] for error in caught.value.errors]
    assert len(places) == 5
    assert places == sorted(places)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "this is a folder"),
        (tmp_path / "a\0b", "the file cannot be read: embedded null"),
        (tmp_path / ("long" * 1000), "the file cannot be read: File name too long"),
    ):
        with pytest.raises(HarnessError, match=message) as caught:
            load_matrix(path)
        assert caught.value.status == ExitStatus.USAGE
        assert caught.value.render().isprintable() or "\n  hint: " in caught.value.render()
    (tmp_path / "long.yaml").write_text("#" * 1_000_001, encoding="utf-8")
    with pytest.raises(HarnessError, match="longer than 1000000 bytes"):
        load_matrix(tmp_path / "long.yaml")


def mistakes_in(path: Path) -> tuple[HarnessError, ...]:
    try:
        load_matrix(path)
    except HarnessErrors as error:
        error.render().encode()
        return error.errors
    return ()


def test_no_file_at_all_ends_in_a_traceback(tmp_path: Path) -> None:
    """Mutations of a good file, the same ones in every run, are read or told."""
    chance = random.Random(20261201)
    text = (FIXTURES / "good-everything.yaml").read_text(encoding="utf-8")
    pieces = ["3.10", "[]", "{a: b}", "~", "on", "\t", "- ", "? ", "&a ", "*a", "!!int x", "---\n"]
    pieces += ["<<", "9" * 400, "1e400", "2024-01-01", "'", '"', "\x00", "\u2028", "#", ": ", "%"]
    pieces += ["é", "{message}", '"\\ud800"', "\u0661"]
    path = tmp_path / "matrix.yaml"
    told = 0
    for _ in range(120):
        mutated = text
        for _ in range(chance.choice((1, 1, 2, 5))):
            start = chance.randrange(len(mutated))
            end = start + chance.choice((0, 0, 1, 3, 12))
            mutated = mutated[:start] + chance.choice(pieces) + mutated[end:]
        path.write_text(mutated, encoding="utf-8", newline="\n")
        mistakes = mistakes_in(path)
        told += bool(mistakes)
        assert all("\n" not in one.message + one.hint for one in mistakes)
    assert told > 80


# --------------------------------------------------------------------------------- the project's own file


def test_quick_is_the_boundary(matrix: Matrix) -> None:
    quick = matrix.profile("quick", platform=LINUX, found_pythons=frozenset())
    assert [cell.id for cell in quick] == [
        "3.10-2.0", "3.11-2.0", "3.11-2.1", "3.12-2.3", "3.12-2.4", "3.13-2.5", "3.13-2.6", "3.13-2.15",
    ]  # fmt: skip
    assert [cell.torch for cell in quick][:3] == ["2.0.1", "2.0.1", "2.1.2"]
    assert all(matrix.why_impossible(cell) is None for cell in quick)


def test_full_is_all_of_both_devices(matrix: Matrix) -> None:
    full = matrix.profile("full", platform=LINUX, found_pythons=frozenset())
    assert len(full) == 6 * 16 * 2
    assert len({cell.id for cell in full}) == len({cell.order for cell in full}) == len(full)
    assert {cell.era for cell in full} == {Era.RELEASE}


@pytest.mark.parametrize("name", ["quick", "full", "cuda", "today", "tiny", "windows", "macos"])
@pytest.mark.parametrize(
    "platform", ["linux-x86_64", "macos-arm64", "macos-x86_64", "windows-amd64"]
)
def test_every_profile_has_cells_everywhere(matrix: Matrix, name: str, platform: str) -> None:
    assert matrix.profile(name, platform=platform, found_pythons=frozenset())
    assert name in matrix.profile_names


WHEELS = {
    "2.0": "10 11", "2.1": "10 11", "2.2": "10 11 12", "2.3": "10 11 12", "2.4": "10 11 12",
    "2.5": "10 11 12 13", "2.6": "10 11 12 13", "2.7": "10 11 12 13", "2.8": "10 11 12 13",
    "2.9": "10 11 12 13 14", "2.10": "10 11 12 13 14", "2.11": "10 11 12 13 14",
    "2.12": "10 11 12 13 14", "2.13": "10 11 12 13 14", "2.14": "10 11 12 13 14",
    "2.15": "11 12 13 14 15",
}  # fmt: skip


@pytest.mark.parametrize("series", WHEELS)
def test_wheels_are_those_of_pypi(matrix: Matrix, series: str) -> None:
    expected = tuple(f"3.{minor}" for minor in WHEELS[series].split())
    for release in matrix.releases:
        if release.series == series:
            assert release.wheels[LINUX] == expected
            others = expected[:-1] if series == "2.5" else expected
            for platform in ("linux-aarch64", "macos-arm64", "windows-amd64"):
                assert release.wheels[platform] == others
            has_intel = series in ("2.0", "2.1", "2.2")
            assert release.wheels["macos-x86_64"] == (expected if has_intel else ())


def test_releases_are_complete_and_of_their_day(matrix: Matrix) -> None:
    versions = [release.version for release in matrix.releases]
    assert [v for v in versions if v.startswith("2.1.")] == ["2.1.0", "2.1.1", "2.1.2"]
    assert len(versions) == 28
    assert {release.series for release in matrix.releases if release.is_default} == set(WHEELS)
    for release in matrix.releases:
        assert release.day < release.as_of
        assert release.as_of.endswith("T00:00:00Z")
        assert release.as_of <= "2026-12-01"
        if release.series in ("2.0", "2.1", "2.2"):
            assert release.as_of < "2024-06-16", "NumPy 2, which these wheels cannot use"
    assert matrix.release("2.4.0").as_of == matrix.release("2.4.1").as_of
    assert matrix.release("2.0.1").as_of == "2023-07-15T00:00:00Z"
    assert [matrix.release(v).cuda for v in ("2.0.0", "2.4.1", "2.15.0")] == [
        "11.7",
        "12.1",
        "13.2",
    ]


def test_requirements_and_indexes(matrix: Matrix) -> None:
    assert matrix.requirements(Era.RELEASE) == ("numpy", "setuptools")
    assert matrix.requirements(Era.TODAY) == ("numpy",)
    assert matrix.requirements(Era.ADOPTED) == ()
    assert matrix.indexes.default is None
    assert matrix.indexes.cpu == "https://download.pytorch.org/whl/cpu"
    assert matrix.file == ROOT / "matrix.yaml"


def test_a_small_file_behaves_like_the_projects_own(matrix: Matrix) -> None:
    small = load_matrix(FIXTURES / "good-small.yaml")
    assert small.indexes == matrix.indexes
    assert small.limits.memory_bytes == matrix.limits.memory_bytes
    for path in PATHS:
        assert small.limits.deadline_s(path) == matrix.limits.deadline_s(path)
    for era in Era:
        assert small.requirements(era) == matrix.requirements(era)


def test_limits(matrix: Matrix, everything: Matrix) -> None:
    limits = matrix.limits
    assert limits.memory_bytes == 4 * 2**30
    assert [limits.deadline_s(p) for p in ("dynamo", "aot", "inductor", "script")] == [
        60,
        90,
        240,
        240,
    ]
    assert limits.deadline_s("inductor-cudagraphs") == 240
    assert limits.deadline_s("jit-trace") == 60
    assert limits.deadline_s("something-new") == 120
    assert everything.limits.deadline_s("inductor-dynamic") == 0.5
    assert everything.limits.deadline_s("dynamo") == 30
    assert everything.limits.memory_bytes == 3 * 2**29


# --------------------------------------------------------------------------------------------- the schema


def test_matrix_yaml_names_its_schema_and_is_valid_under_it() -> None:
    text = (ROOT / "matrix.yaml").read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    published = json.loads((ROOT / named).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator(published).validate(yaml.safe_load(text))


def test_published_schemas_are_the_generated_ones() -> None:
    assert schemas.write(schemas.FOLDER, check=True) == (), "run nox -s docs"


@pytest.mark.parametrize(
    "name",
    [
        "unknown-keys", "missing-keys", "python-patch", "python-twice", "series-shape", "patch", "platform-unknown",
        "platform-none", "torch-empty", "profile-empty", "profile-twice", "limits", "limits-no-default",
        "as-of-day", "cuda-bare", "schema-missing", "schema-newer", "section-shape", "except-unknown",
    ],
)  # fmt: skip
def test_an_editor_sees_slips_of_shape_under_the_schema(name: str) -> None:
    data = plain(parse((FIXTURES / f"bad-{name}.yaml").read_text(encoding="utf-8")).data)
    assert not jsonschema.Draft202012Validator(schemas.matrix_schema()).is_valid(data)


def test_every_key_of_the_schema_is_described() -> None:
    schema = schemas.matrix_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, described in part["properties"].items():
            assert described.get("description") or "$ref" in described, name
        assert part["additionalProperties"] is False
        assert part["description"]


def test_stale_schemas_are_written_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "docs" / "schema"
    monkeypatch.setattr(schemas, "FOLDER", folder)
    assert schemas.main(["--check"]) == 1
    assert "run nox -s docs" in capsys.readouterr().err
    assert not folder.exists()
    assert schemas.main([]) == 0
    assert schemas.main(["--check"]) == 0
    assert schemas.write(folder) == ()
    path = folder / "matrix.schema.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace("13.2", "x").replace("12.1", "y"), "utf-8"
    )
    capsys.readouterr()
    assert schemas.main(["--check"]) == 1
    assert "+" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------- what patterns mean


def test_ids(matrix: Matrix) -> None:
    assert ids(matrix, "3.12-2.4", "3.12-2.4.0") == ["3.12-2.4.0", "3.12-2.4"]
    assert ids(matrix, "3.12-2.4.1") == ["3.12-2.4"]
    assert ids(matrix, "3.12-2.4-cuda-today") == ["3.12-2.4-cuda-today"]
    assert ids(matrix, "3.12-2.4.0-today", platform="windows-amd64") == [
        "3.12-2.4.0-today-windows-amd64"
    ]


def test_a_cell_is_found_again_by_its_id(matrix: Matrix) -> None:
    patterns = ("3.1[0-2]-2.[0-4]", "*-2.9.0", "*-cuda", "*-today", "newest-today")
    for platform in matrix.platforms:
        for cell in cells(matrix, *patterns, platform=platform):
            assert cells(matrix, cell.id, platform=platform) == (cell,)


def test_a_cell_says_what_it_is(matrix: Matrix) -> None:
    (cell,) = cells(matrix, "3.11-2.1.0-cuda-today", platform="linux-aarch64")
    assert (cell.python, cell.torch, cell.platform) == ("3.11", "2.1.0", "linux-aarch64")
    assert (cell.device, cell.era) == (Device.CUDA, Era.TODAY)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("3.12-2.[45]", ["3.12-2.4", "3.12-2.5"]),
        ("3.1[01]-2.4", ["3.10-2.4", "3.11-2.4"]),
        ("3.1[!0-4]-2.4", ["3.15-2.4"]),
        ("3.12-2.1", ["3.12-2.1"]),
        ("3.12-2.1?", [f"3.12-2.1{n}" for n in range(6)]),
        ("3.1?-2.9.0-cuda", [f"3.{n}-2.9.0-cuda" for n in range(10, 16)]),
        ("3.12-2.4-linux-x86_64", ["3.12-2.4"]),
    ],
)
def test_wildcards_and_exact_patches(matrix: Matrix, pattern: str, expected: list[str]) -> None:
    assert ids(matrix, pattern) == expected


def test_plain_patterns_mean_cpu_and_release(matrix: Matrix) -> None:
    every = cells(matrix, "*")
    assert len(every) == 96
    assert {(cell.device, cell.era) for cell in every} == {(Device.CPU, Era.RELEASE)}
    assert every == cells(matrix, "*-*")
    assert all("-today" in cell.id and "-cuda" in cell.id for cell in cells(matrix, "*-cuda-today"))


def test_the_order_is_that_of_versions_and_each_cell_comes_once(matrix: Matrix) -> None:
    mixed = ids(matrix, "3.12-2.10-today", "3.12-2.10", "3.12-2.9", "3.12-2.9.1", "3.11-*")
    assert mixed[:3] == ["3.11-2.0", "3.11-2.1", "3.11-2.2"]
    assert mixed[-3:] == ["3.12-2.9", "3.12-2.10", "3.12-2.10-today"]
    assert len(mixed) == 16 + 3
    orders = [
        cell.order
        for platform in matrix.platforms
        for cell in cells(matrix, "*", platform=platform)
    ]
    assert orders == sorted(set(orders))


@pytest.mark.parametrize(
    ("pattern", "platform", "found", "expected"),
    [
        ("newest", LINUX, (), "3.13-2.15"),
        ("newest", LINUX, ("3.12",), "3.13-2.15"),
        ("newest", LINUX, ("3.14",), "3.14-2.15"),
        ("newest", LINUX, ("3.14", "3.15"), "3.15-2.15"),
        ("newest-cuda", LINUX, (), "3.13-2.15-cuda"),
        ("newest-today", "windows-amd64", (), "3.13-2.15-today-windows-amd64"),
        ("newest", "macos-x86_64", ("3.15",), "3.12-2.2-macos-x86_64"),
        ("newest-linux-x86_64", LINUX, (), "3.13-2.15"),
    ],
)
def test_newest(
    matrix: Matrix, pattern: str, platform: str, found: tuple[str, ...], expected: str
) -> None:
    assert ids(matrix, pattern, platform=platform, found=found) == [expected]


@pytest.mark.parametrize(
    ("pattern", "platform", "message", "hint"),
    [
        ("3.12-2.41", LINUX, '"3.12-2.41" matches no cell', "did you mean 2.4"),
        ("3.12-3.0", LINUX, '"3.12-3.0" matches no cell', "2.0"),
        ("3.9-2.4", LINUX, '"3.9-2.4" matches no cell', "the Pythons are 3.10, 3.11"),
        ("3.12-2.4.*", LINUX, '"3.12-2.4.*" matches no cell', "an exact patch is written out"),
        ("3.12", LINUX, '"3.12" does not name cells', "3.12-*"),
        ("2.4.1", LINUX, '"2.4.1" does not name cells', "*-2.4.1"),
        ("", LINUX, '"" does not name cells', "<python>-<torch>"),
        ("3.12-2.4.1-adopted", LINUX, '"3.12-2.4.1-adopted" does not name cells', "newest"),
        ("3.12-2.4-macos-arm64", LINUX, "for another platform than this, linux-x86_64", "leave"),
        ("newest-cuda", "macos-arm64", "no torch has a wheel with CUDA for macos-arm64", ""),
        ("3.12-2.4", "linux-ppc64le", 'the platform "linux-ppc64le" is not listed', "macos-arm64"),
    ],
)
def test_a_pattern_that_matches_nothing_is_told(
    matrix: Matrix, pattern: str, platform: str, message: str, hint: str
) -> None:
    with pytest.raises(HarnessErrors, match=re.escape(message)) as caught:
        cells(matrix, "3.12-2.4" if platform == LINUX else "*", pattern, platform=platform)
    assert hint in caught.value.errors[-1].hint
    assert caught.value.status == ExitStatus.USAGE


def test_all_patterns_that_match_nothing_are_told(matrix: Matrix) -> None:
    with pytest.raises(HarnessErrors) as caught:
        cells(matrix, "3.9-2.4", "3.12-2.4", "4.0-2.4", "x")
    assert len(caught.value.errors) == 3


def test_an_unknown_profile_is_told(matrix: Matrix) -> None:
    with pytest.raises(HarnessError, match='there is no profile "quikc"') as caught:
        matrix.profile("quikc", platform=LINUX, found_pythons=frozenset())
    assert caught.value.hint == "did you mean quick?"
    with pytest.raises(HarnessError) as caught:
        matrix.profile("zzz", platform=LINUX, found_pythons=frozenset())
    assert "quick, full, cuda, today, tiny, windows and macos" in caught.value.hint


def test_a_profile_leaves_out_other_platforms(everything: Matrix) -> None:
    def patches(platform: str) -> list[str]:
        found = everything.profile("patches", platform=platform, found_pythons=frozenset())
        return [cell.id for cell in found]

    assert patches(LINUX) == ["3.12-2.3.0", "3.12-2.3", "3.12-2.10-cuda"]
    assert patches("macos-x86_64") == [
        "3.10-2.3-macos-x86_64", "3.12-2.3.0-macos-x86_64", "3.12-2.3-macos-x86_64",
    ]  # fmt: skip


def test_a_profile_without_a_cell_here_is_told(tmp_path: Path) -> None:
    text = (FIXTURES / "good-everything.yaml").read_text(encoding="utf-8")
    path = tmp_path / "matrix.yaml"
    path.write_text(f"{text}  mac: [3.10-2.3-macos-x86_64]\n", encoding="utf-8")
    matrix = load_matrix(path)
    with pytest.raises(HarnessError, match="the profile mac has no cell for linux-x86_64"):
        matrix.profile("mac", platform=LINUX, found_pythons=frozenset())


# ------------------------------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize(
    ("cell_id", "platform", "detail"),
    [
        (
            "3.13-2.0",
            LINUX,
            "torch 2.0.1 has wheels for Python 3.10 and 3.11 on linux-x86_64, none for 3.13",
        ),
        ("3.12-2.3", "macos-x86_64", "torch 2.3.1 has no wheel for macos-x86_64"),
        (
            "3.13-2.5",
            "windows-amd64",
            "torch 2.5.1 has wheels for Python 3.10, 3.11 and 3.12 on windows-amd64, none for 3.13",
        ),
        ("3.12-2.4-cuda", "windows-amd64", "torch 2.4.1 has no wheel with CUDA for windows-amd64"),
        (
            "3.12-2.10-cuda",
            "linux-aarch64",
            "torch 2.10.0 has no wheel with CUDA for linux-aarch64",
        ),
    ],
)
def test_a_cell_without_a_wheel_says_so(
    matrix: Matrix, cell_id: str, platform: str, detail: str
) -> None:
    (cell,) = cells(matrix, cell_id, platform=platform)
    assert matrix.why_impossible(cell) == Impossible(reason=NotRunReason.NO_WHEEL, detail=detail)


def test_a_cell_with_a_wheel_is_possible(matrix: Matrix) -> None:
    for pattern, platform in (
        ("3.13-2.5", LINUX),
        ("3.12-2.2", "macos-x86_64"),
        ("3.12-2.11-cuda", "linux-aarch64"),
        ("3.15-2.15-today", LINUX),
    ):
        (cell,) = cells(matrix, pattern, platform=platform)
        assert matrix.why_impossible(cell) is None


def test_an_adopted_cell_needs_no_wheel(matrix: Matrix) -> None:
    cell = Cell(
        python="3.9", torch="1.13.1", device=Device.CPU, era=Era.ADOPTED, platform=LINUX,
        id="3.9-1.13.1-adopted", order=0,
    )  # fmt: skip
    assert matrix.why_impossible(cell) is None


def test_a_torch_that_is_not_listed_is_told(matrix: Matrix) -> None:
    with pytest.raises(HarnessError, match=r"torch 2\.4\.9 is not listed") as caught:
        matrix.release("2.4.9")
    assert "2.4.1" in caught.value.hint
