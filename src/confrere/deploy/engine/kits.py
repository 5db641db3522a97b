"""Certificates and start-up folders, by FLARE's distributed provisioning: private keys never leave their owner.

    hub    init      a certificate authority; its fingerprint is told to sites by another way than the network
    site   request   a key of its own, and a request without it
    hub    approve   the request -> a signed certificate
    site   install   the certificate, if it is by the authority whose fingerprint was confirmed

The settings that FLARE reads at a site are written here too: no code of others for any role, no class but ours, no log
to the hub, and our own launcher. They are the site's own files, and no job can change them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from confrere.deploy.engine.job import CONTROLLER, EXECUTOR, LAUNCHER
from confrere.deploy.revoked import revoked_sites
from confrere.deploy.stations import HUB_FILE, HubFile, read_hub
from confrere.deploy.study import SITE_NAME
from confrere.disk import write_whole

ADMIN = "admin@confrere.org"
PROFILE = "project_profile.yaml"
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
    if (hub / HUB_FILE).exists():
        raise ValueError(f"{hub} holds a hub already")
    hub.mkdir(parents=True, exist_ok=True)
    hub.chmod(0o700)
    (hub / PROFILE).write_text(
        f"name: {project}\nscheme: grpc\nconnection_security: mtls\nserver:\n  host: {host}\n"
        f"  fed_learn_port: {port}\n  admin_port: {port}\n",
        encoding="utf-8",
    )
    flare(hub, "cert", "init", "--profile", PROFILE, "-o", "ca")
    fingerprint = json.loads((hub / "ca" / "ca.json").read_text(encoding="utf-8"))["rootCA_fingerprint"]
    for name, kind in ((host, "type: server, org: hub"), (ADMIN, "type: admin, org: hub, role: lead")):
        request(hub, project, name, kind)
        approve(hub, hub / name / f"{name}.request.zip")
        flare(
            hub,
            "package",
            f"{name}/{name}.signed.zip",
            "--request-dir",
            name,
            "--fingerprint",
            fingerprint,
            "-w",
            "kits",
        )
    about = HubFile(project, host, port, fingerprint)
    settle_hub(hub, about)
    write_whole(hub / HUB_FILE, json.dumps(about._asdict(), indent=1))
    return about


def request(folder: Path, project: str, name: str, kind: str) -> None:
    """A key, and a request for a certificate."""
    (folder / f"{name}.yaml").write_text(f"name: {project}\nparticipants:\n- {{name: {name}, {kind}}}\n", "utf-8")
    flare(folder, "cert", "request", "-p", f"{name}.yaml")


def approve(hub: Path, request_zip: Path) -> Path:
    """Sign a request; the signed certificate is beside it."""
    flare(hub, "cert", "approve", request_zip.resolve(), "--ca-dir", "ca", "--profile", PROFILE)
    return request_zip.with_name(request_zip.name.replace(".request.zip", ".signed.zip"))


def hub_approve(hub: Path, request_zip: Path) -> tuple[str, Path]:
    """Sign a site's request; its name, and the file to send back."""
    read_hub(hub)
    if not request_zip.is_file():
        raise FileNotFoundError(f"there is no file {request_zip}")
    name = name_in(request_zip)
    if name in revoked_sites(hub):
        raise KitError(f"{name} was revoked: choose another name, or let it in again (confrere hub revoke --undo)")
    place = hub / "requests"
    place.mkdir(exist_ok=True)
    copy = place / f"{name}.request.zip"  # whatever it was called on its way
    shutil.copyfile(request_zip, copy)
    return name, approve(hub, copy)


def name_in(request_zip: Path) -> str:
    """Whose request it is; anything but a site's is refused."""
    try:
        with zipfile.ZipFile(request_zip) as content:
            asked = json.loads(content.read("request.json"))
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError) as problem:
        raise KitError(f"{request_zip} is no request for a certificate") from problem
    name, kind = str(asked.get("name")), str(asked.get("cert_type") or asked.get("kind"))
    if kind not in ("client", "site") or not re.fullmatch(SITE_NAME, name):
        raise KitError(f"{request_zip.name} asks for a certificate of the kind {kind!r} for {name!r}, and is no site's")
    return name


def site_request(folder: Path, name: str, organisation: str, project: str) -> Path:
    """A site's key, which stays in its folder, and the file to send to the hub."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    request(folder, project, name, f"type: client, org: {json.dumps(organisation)}")
    return folder / name / f"{name}.request.zip"


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


def settle_hub(hub: Path, about: HubFile) -> None:
    """What FLARE may do at the hub, and where it keeps its files."""
    kit = kit_of(hub / "kits", about.host)
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
