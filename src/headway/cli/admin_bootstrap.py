"""`headway admin bootstrap`: the first administrator, made where the server's files are."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.core.errors import ConfigError

if TYPE_CHECKING:
    from headway.access.tokens import Minted
    from headway.core.statedir import StateDir
    from headway.store.accounts import AccountStore


@click.command("bootstrap")
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), envvar="HEADWAY_STATE_DIR",
    help="The server's state directory.  [default: ~/.local/state/headway]",
)  # fmt: skip
@click.option("--user", default="admin", show_default=True, help="The administrator's name.")
@click.option(
    "--recover", is_flag=True, help="Make a token although there are administrators already."
)
def bootstrap_command(state_dir: Path | None, user: str, recover: bool) -> None:
    """Make the first administrator and print its token.

    The token is shown this once. From then on the server lets nobody in without a token. It may run
    or be stopped. Whoever can write the state directory can do this: it is the way back in when all
    tokens are lost, with --recover.
    """
    from headway.api.serve_settings import default_state_dir
    from headway.core.statedir import StateDir

    place = StateDir(state_dir or default_state_dir(os.environ))
    place.create()
    token = asyncio.run(_bootstrap(place, user, recover))
    click.echo(f"{user} is an administrator of the server in {place.root}.", err=True)
    click.echo("Keep this token, it is not shown again: `headway login URL` asks for it.", err=True)
    click.echo(token.text)


async def _bootstrap(place: StateDir, user: str, recover: bool) -> Minted:
    from headway.core.clock import SystemClock
    from headway.dispatch.doorbell import ACCESS
    from headway.dispatch.unix_doorbell import UnixDoorbell
    from headway.store.sqlite.store import SqliteStore

    store = SqliteStore(place, SystemClock(), random.Random())
    doorbell = UnixDoorbell(place)
    try:
        await store.open()
        await doorbell.open()
        minted = await _administrator(store.accounts, user, recover)
        doorbell.ring(ACCESS)
        return minted
    finally:
        await doorbell.close()
        await store.close()


async def _administrator(accounts: AccountStore, user: str, recover: bool) -> Minted:
    from headway.access.accounts import (
        NAME_PATTERN,
        RESERVED_NAMES,
        Act,
        NewToken,
        Taken,
        TokenKind,
    )
    from headway.access.names import is_name
    from headway.access.tokens import mint

    if not is_name(user) or user in RESERVED_NAMES:
        raise ConfigError(f"--user {user!r}: a name is {NAME_PATTERN}, and not local or system")
    known = [each.name for each in await accounts.users() if each.administrator]
    if known and not recover:
        raise ConfigError(
            f"there is an administrator already ({', '.join(known)}), who can make tokens with"
            " `headway admin tokens issue`; if nobody can log in any more, use --recover"
        )
    act = Act(user=_operator(), via="bootstrap")
    if isinstance(await accounts.add_user(user, True, act, returning=True), Taken):
        await accounts.set_administrator(user, True, act)
    minted = mint()
    new = NewToken(
        id=minted.id, secret_hash=minted.secret_hash, kind=TokenKind.PERSONAL, label="bootstrap",
        user=user,
    )  # fmt: skip
    await accounts.add_token(new, act)
    return minted


def _operator() -> str:
    """Who does it, as the host knows it: for the audit log."""
    return f"uid:{os.getuid()}"
