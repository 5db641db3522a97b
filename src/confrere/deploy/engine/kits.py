"""Certificates and start-up folders, by FLARE's distributed provisioning: private keys never leave their owner.

    hub    init      a certificate authority; its fingerprint is told to sites by another way than the network
    site   request   a key of its own, and a request without it
    hub    approve   the request -> a signed certificate
    site   install   the certificate, if it is by the authority whose fingerprint was confirmed

The settings that FLARE reads at a site are written here too: no code of others for any role, no class but ours, no log
to the hub, and our own launcher. They are the site's own files, and no job can change them.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confrere.deploy.engine.job import CONTROLLER, EXECUTOR, LAUNCHER
from confrere.deploy.revoked import revoked_sites
from confrere.deploy.stations import HUB_FILE, HubFile, read_hub
from confrere.deploy.study import SITE_NAME
from confrere.disk import write_whole

ADMIN = "admin@confrere.org"
PROFILE = "project_profile.yaml"
APART = ".unfinished"  # the folder in which something is made
LONGEST = 64  # characters of a name in a certificate
HOST_NAME = r"([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
PROJECT_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
ORGANISATION = r"[A-Za-z0-9_]{1,64}"
ALIVE_SECONDS = 20  # a site from which nothing was heard for so long is gone


class KitError(ValueError):
    """What FLARE's tool complained about."""


def flare(folder: Path, *words: object) -> None:
    """Run FLARE's tool in a folder, where it also keeps its own records."""
    command = [sys.executable, "-m", "nvflare.cli", *map(str, words)]
    env = {**os.environ, "HOME": str(folder.resolve()), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KitError(f"nvflare {words[0]} {words[1]}: {(done.stderr or done.stdout).strip()[-600:]}")


def hub_init(hub: Path, host: str, port: int, project: str = "confrere") -> HubFile:
    """A new hub: its certificate authority, its server's and its administrator's certificates."""
    check_host(host, port)
    check_project(project)
    if (hub / HUB_FILE).exists():
        raise ValueError(f"{hub} holds a hub already: choose another folder, or start it (confrere hub start {hub})")
    if other := files_in(hub):
        raise ValueError(f"{hub} holds other files ({', '.join(other[:3])}): choose an empty folder for the hub")
    with made_apart(hub) as made:
        fingerprint = certify_hub(made, host, port, project)
        about = HubFile(project, host, port, fingerprint)
        settle_hub(made, about, hub)
        write_whole(made / HUB_FILE, json.dumps(about._asdict(), indent=1))
        put_into(hub, made, last=HUB_FILE)
    return about


def certify_hub(made: Path, host: str, port: int, project: str) -> str:
    """The authority and the hub's own certificates; the authority's fingerprint."""
    (made / PROFILE).write_text(
        f"name: {project}\nscheme: grpc\nconnection_security: mtls\nserver:\n  host: {host}\n"
        f"  fed_learn_port: {port}\n  admin_port: {port}\n",
        encoding="utf-8",
    )
    flare(made, "cert", "init", "--profile", PROFILE, "-o", "ca")
    fingerprint = json.loads((made / "ca" / "ca.json").read_text(encoding="utf-8"))["rootCA_fingerprint"]
    for name, kind in ((host, "type: server, org: hub"), (ADMIN, "type: admin, org: hub, role: lead")):
        request(made, project, name, kind)
        approve(made, made / name / f"{name}.request.zip")
        whose = "--request-dir", name, "--fingerprint", fingerprint
        flare(made, "package", f"{name}/{name}.signed.zip", *whose, "-w", "kits")
    return fingerprint


def check_host(host: str, port: int) -> None:
    """Refuse what no certificate can bear, before anything is made."""
    if not (re.fullmatch(HOST_NAME, host) and len(host) <= LONGEST):
        raise ValueError(f"--host is a name of a machine, as in hub.example.org, or an address, not {host!r}")
    if not 1 <= port <= 65535:
        raise ValueError(f"--port is a number from 1 to 65535, not {port}")


def check_project(project: str) -> None:
    """Refuse a project that no certificate can bear."""
    if not re.fullmatch(PROJECT_NAME, project):
        raise ValueError(f"a project's name has letters, digits, hyphens, dots and underscores, not {project!r}")


def check_names(name: str, organisation: str, project: str) -> None:
    """Refuse what no certificate of a site can bear, before its key is made."""
    if not re.fullmatch(SITE_NAME, name):
        raise ValueError(
            "a site's name has small letters, digits and hyphens, begins and ends with a letter or digit, and is no "
            f"longer than 42, not {name!r}"
        )
    if not re.fullmatch(ORGANISATION, organisation):
        plain = re.sub(r"\W+", "_", organisation, flags=re.ASCII).strip("_")
        raise ValueError(
            f"an organisation's name has letters, digits and underscores, 64 at most, not {organisation!r}"
            + (f": say --organisation {plain}" if re.fullmatch(ORGANISATION, plain) else "")
        )
    check_project(project)


def files_in(folder: Path) -> list[str]:
    """The names in a folder, without what a set-up left that was interrupted."""
    return sorted(path.name for path in folder.iterdir() if path.name != APART) if folder.is_dir() else []


@contextlib.contextmanager
def made_apart(folder: Path, name: str = APART) -> Iterator[Path]:
    """A folder inside another in which something is made; what is not finished is gone, or goes the next time."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    made = folder / name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def put_into(folder: Path, made: Path, last: str) -> None:
    """Give what was made its place; the file that makes it count comes last."""
    for path in sorted(made.iterdir(), key=lambda path: path.name == last):
        target = folder / path.name
        if target.is_dir() and path.is_dir():
            shutil.rmtree(target)
        path.rename(target)


def request(folder: Path, project: str, name: str, kind: str) -> None:
    """A key, and a request for a certificate."""
    (folder / f"{name}.yaml").write_text(f"name: {project}\nparticipants:\n- {{name: {name}, {kind}}}\n", "utf-8")
    flare(folder, "cert", "request", "-p", f"{name}.yaml")


def approve(hub: Path, request_zip: Path) -> Path:
    """Sign a request; the signed certificate is beside it."""
    flare(hub, "cert", "approve", request_zip.resolve(), "--ca-dir", "ca", "--profile", PROFILE)
    return request_zip.with_name(request_zip.name.replace(".request.zip", ".signed.zip"))


def hub_approve(hub: Path, request_zip: Path) -> tuple[str, Path]:
    """Sign a site's request; its name, and the file to send back. The same request again gives the same file."""
    project = read_hub(hub).project
    if not request_zip.is_file():
        raise FileNotFoundError(f"there is no file {request_zip}")
    name = name_in(request_zip, project)
    if name in revoked_sites(hub):
        raise KitError(f"{name} was revoked: choose another name, or let it in again (confrere hub revoke --undo)")
    kept, signed = hub / "requests" / f"{name}.request.zip", hub / "requests" / f"{name}.signed.zip"
    if not signed.is_file():
        with made_apart(hub / "requests", f".{name}") as made:
            copy = made / kept.name  # whatever it was called on its way
            shutil.copyfile(request_zip, copy)
            done = approve(hub, copy)
            copy.rename(kept)
            done.rename(signed)
    elif kept.read_bytes() != request_zip.read_bytes():
        raise KitError(
            f"another request was signed for {name}, and stays: ask the site for a request under a new name "
            f"(confrere site request {name}-2), and shut the old one out if it is not wanted "
            f"(confrere hub revoke {hub} {name})"
        )
    return name, signed


def name_in(request_zip: Path, project: str = "confrere") -> str:
    """Whose request it is; anything but a site's, and what is for another project, is refused."""
    try:
        with zipfile.ZipFile(request_zip) as content:
            asked = json.loads(content.read("request.json"))
    except (zipfile.BadZipFile, KeyError, ValueError) as problem:
        raise KitError(f"{request_zip} is no request for a certificate") from problem
    name, kind = str(asked.get("name")), str(asked.get("cert_type") or asked.get("kind"))
    if kind not in ("client", "site") or not re.fullmatch(SITE_NAME, name):
        raise KitError(f"{request_zip.name} asks for a certificate of the kind {kind!r} for {name!r}, and is no site's")
    if asked.get("project") != project:
        raise KitError(
            f"{request_zip.name} is for the project {asked.get('project')!r}, and the hub's is {project!r}: at the "
            f"site, say confrere site request {name} --project {project}"
        )
    return name


def site_request(folder: Path, name: str, organisation: str, project: str) -> Path:
    """A site's key, which stays in its folder, and the file to send to the hub; the same again if it is there."""
    check_names(name, organisation, project)
    found = folder / name / f"{name}.request.zip"
    if asks_for(found, organisation, project):
        return found
    if (folder / "kit").exists():
        raise ValueError(f"{folder} has a certificate already, made for another request: choose another folder")
    with made_apart(folder) as made:
        request(made, project, name, f"type: client, org: {json.dumps(organisation)}")
        put_into(folder, made, last=name)
    return found


def asks_for(request_zip: Path, organisation: str, project: str) -> bool:
    """Whether a request that was made before is whole, has its key, and says the same."""
    key = request_zip.with_name(request_zip.name.replace(".request.zip", ".key"))
    try:
        with zipfile.ZipFile(request_zip) as content:
            asked = json.loads(content.read("request.json"))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError):
        return False
    return key.is_file() and (asked.get("org"), asked.get("project")) == (organisation, project)


def site_install(folder: Path, name: str, signed_zip: Path, fingerprint: str) -> Path:
    """Unpack the signed certificate, if it is by the authority whose fingerprint was confirmed."""
    if not signed_zip.is_file():
        raise FileNotFoundError(f"there is no file {signed_zip}")
    kit, made, before = folder / "kit", folder / "kit.new", folder / "kit.old"
    if before.exists() and not kit.exists():
        before.rename(kit)  # it was interrupted the last time
    for place in (made, before):
        shutil.rmtree(place, ignore_errors=True)
    whose = "--request-dir", name, "--fingerprint", fingerprint
    try:
        flare(folder, "package", signed_zip.resolve(), *whose, "-w", made.name)
        settle_site(kit_of(made, name))
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)  # what is refused leaves the one that is there
        raise
    if kit.exists():
        kit.rename(before)
    made.rename(kit)
    shutil.rmtree(before, ignore_errors=True)
    return kit_of(kit, name)


def kit_of(place: Path, name: str) -> Path:
    """The start-up folder of a participant."""
    found = sorted(place.glob(f"*/prod_*/{name}"))
    if not found:
        raise FileNotFoundError(f"{name} has no start-up folder in {place}: `confrere site install` makes it")
    return found[-1].resolve()


def organisation_of(kit: Path) -> str:
    """The organisation that a site's certificate names."""
    from cryptography.x509 import load_pem_x509_certificate
    from cryptography.x509.oid import NameOID

    certificate = load_pem_x509_certificate((kit / "startup" / "client.crt").read_bytes())
    return str(certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value)


def settle_site(kit: Path) -> None:
    """What FLARE may do at a site."""
    settings = json.loads((kit / "local" / "resources.json.default").read_text(encoding="utf-8"))
    settings |= {"class_list_enforcement_mode": "enforce", "class_allow_list": [EXECUTOR], "allow_log_streaming": False}
    kept = [c for c in settings["components"] if c["id"] not in ("site_log_streamer", "process_launcher")]
    settings["components"] = [*kept, {"id": "process_launcher", "path": LAUNCHER, "args": {}}]
    write_local(kit, settings)


def settle_hub(made: Path, about: HubFile, hub: Path) -> None:
    """What FLARE may do at the hub, and where it keeps its files: in the folder that will be the hub's."""
    kit = kit_of(made / "kits", about.host)
    settings = json.loads((kit / "local" / "resources.json.default").read_text(encoding="utf-8"))
    settings |= {"class_list_enforcement_mode": "enforce", "class_allow_list": [CONTROLLER]}
    settings["servers"][0]["heart_beat_timeout"] = ALIVE_SECONDS
    settings["components"] = [c for c in settings["components"] if c["id"] != "log_receiver"]
    text = json.dumps(settings).replace("/tmp/nvflare/", f"{hub.resolve()}/flare/")
    write_local(kit, json.loads(text), operate="any")  # to shut sites out


def keep_out(kit: Path, hub: Path) -> None:
    """Before the hub's engine starts: the sites that it lets in no more, as FLARE keeps them itself."""
    write_whole(kit / "disabled_clients.json", json.dumps({"disabled_clients": sorted(revoked_sites(hub))}))


def write_local(kit: Path, settings: dict[str, Any], operate: str = "none") -> None:
    """FLARE's settings, and its authorisation without code of others for any role; `operate`: by the hub's own."""
    write_whole(kit / "local" / "resources.json", json.dumps(settings, indent=1))
    rights = json.loads((kit / "local" / "authorization.json.default").read_text(encoding="utf-8"))
    none = dict.fromkeys(("submit_job", "clone_job", "manage_job", "download_job", "operate", "shell_commands"), "none")
    permissions: dict[str, Any] = {role: {**none, "view": "any", "byoc": "none"} for role in rights["permissions"]}
    permissions["lead"] |= {"submit_job": "any", "manage_job": "n:submitter", "operate": operate}
    write_whole(kit / "local" / "authorization.json", json.dumps({**rights, "permissions": permissions}, indent=1))
