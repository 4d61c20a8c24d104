"""Archives: good ones of every kind, and every way in which one may be refused."""

import io
import lzma
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from retable.common.data.archives import unpack
from retable.common.errors import InputError

CONTENT = {"inner/numbers.txt": os.urandom(3000), "inner/deep/note.txt": b"a note\n"}


def make_tar(path: Path, mode: str, members: dict[str, bytes] | None = None) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in (members or CONTENT).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def make_zip(path: Path, members: dict[str, bytes] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members or CONTENT).items():
            archive.writestr(name, content)
    return path


def make_deb(path: Path, data_name: str, data: bytes) -> Path:
    """An ar archive of the three members that Debian's format asks for."""
    parts = [b"!<arch>\n"]
    for name, content in (
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", b"odd"),
        (data_name, data),
    ):
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        parts += [header.encode(), content, b"\n" * (len(content) % 2)]
    path.write_bytes(b"".join(parts))
    return path


def plain_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in CONTENT.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_of_any_compression(tmp_path: Path, mode: str) -> None:
    unpack(make_tar(tmp_path / "a.archive", mode), tmp_path / "out")
    assert files_below(tmp_path / "out") == CONTENT


def test_zip_whatever_its_ending(tmp_path: Path) -> None:
    for name in ("a.zip", "a.whl", "a.archive"):
        unpack(make_zip(tmp_path / name), tmp_path / f"out-{name}")
        assert files_below(tmp_path / f"out-{name}") == CONTENT


@pytest.mark.parametrize("ending", ["", ".xz", ".zst"])
def test_debian_package(tmp_path: Path, ending: str) -> None:
    data = plain_tar()
    if ending == ".xz":
        data = lzma.compress(data)
    if ending == ".zst":
        if shutil.which("zstd") is None:
            pytest.skip("the command zstd is not installed")
        data = subprocess.run(
            ["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True
        ).stdout
    unpack(make_deb(tmp_path / "a.deb", f"data.tar{ending}", data), tmp_path / "out")
    assert files_below(tmp_path / "out") == CONTENT


def test_debian_package_of_dpkg(tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("the command dpkg-deb is not installed")
    control = tmp_path / "tree" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text("Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: a\n")
    for name, content in CONTENT.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", tmp_path / "tree", tmp_path / "a.deb"],
        check=True,
        capture_output=True,
    )
    unpack(tmp_path / "a.deb", tmp_path / "out")
    assert files_below(tmp_path / "out") == CONTENT


@pytest.mark.parametrize(
    "name", ["/etc/evil", "../evil", "inner/../../evil", "C:/evil", "..\\evil"]
)
@pytest.mark.parametrize("kind", ["tar", "zip", "deb"])
def test_member_outside_the_folder_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    members = {"good.txt": b"good", name: b"evil"}
    if kind == "zip":
        archive = make_zip(tmp_path / "a.zip", members)
    else:
        archive = make_tar(tmp_path / "a.tar", "w", members)
        if kind == "deb":
            archive = make_deb(tmp_path / "a.deb", "data.tar", archive.read_bytes())
    with pytest.raises(InputError, match="would be written outside the folder; refused"):
        unpack(archive, tmp_path / "deep" / "er" / "out")
    assert files_below(tmp_path / "deep") == {}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_link_or_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("innocent")
        member.type = kind
        member.linkname = "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(InputError, match="'innocent' is a link or device; refused"):
        unpack(path, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", ["w:gz", "w:bz2", "w:xz", "w", "zip", "deb"])
@pytest.mark.parametrize("part", [0.02, 0.5, 0.95])
def test_truncated_archive(tmp_path: Path, kind: str, part: float) -> None:
    if kind == "zip":
        archive = make_zip(tmp_path / "a.zip")
    elif kind == "deb":
        archive = make_deb(tmp_path / "a.deb", "data.tar.xz", lzma.compress(plain_tar()))
    else:
        # One large member, so that a cut never falls between two of them.
        archive = make_tar(tmp_path / "a.tar", kind, {"numbers": os.urandom(200_000)})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(InputError, match=archive.name):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("kind", ["w:gz", "w:bz2", "w:xz", "zip", "deb"])
def test_bytes_that_were_overwritten(tmp_path: Path, kind: str) -> None:
    """Wherever the damage falls, it is an InputError or does not touch what is unpacked."""
    if kind == "zip":
        archive = make_zip(tmp_path / "a.zip")
    elif kind == "deb":
        archive = make_deb(tmp_path / "a.deb", "data.tar.xz", lzma.compress(plain_tar()))
    else:
        archive = make_tar(tmp_path / "a.tar", kind)
    good = archive.read_bytes()
    refused = 0
    for place in range(0, len(good) - 8, max(1, len(good) // 60)):
        archive.write_bytes(good[:place] + b"\xff\x00\xff\x00\xff\x00\xff\x00" + good[place + 8 :])
        out = tmp_path / f"out{place}"
        try:
            unpack(archive, out)
        except InputError:
            refused += 1
            continue
        assert files_below(out) == CONTENT
    assert refused > 30


def test_encrypted_zip(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip")
    raw = bytearray(archive.read_bytes())
    # Bit 0 of the flags says that a member is encrypted: in its own header and in the directory.
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = raw.find(signature)
        while place >= 0:
            raw[place + offset] |= 1
            place = raw.find(signature, place + 4)
    archive.write_bytes(raw)
    with pytest.raises(InputError, match="encrypted"):
        unpack(archive, tmp_path / "out")


def test_no_archive_at_all(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar.gz", "a.deb"):
        (tmp_path / name).write_text("<html>404: there is nothing here</html>")
        with pytest.raises(InputError, match=name):
            unpack(tmp_path / name, tmp_path / "out")


def test_debian_package_without_data(tmp_path: Path) -> None:
    archive = make_deb(tmp_path / "a.deb", "other.tar", b"content")
    with pytest.raises(InputError, match=r"it has no data\.tar"):
        unpack(archive, tmp_path / "out")
