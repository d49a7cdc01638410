"""From what a provider says of somebody to an account of this server."""

from __future__ import annotations

import re

from headway.access.accounts import NAME_PATTERN, RESERVED_NAMES, Act, Taken, User, WasRemoved
from headway.access.roles import Role
from headway.api.oidc_client import Claims, LoginFailed
from headway.api.oidc_settings import OidcSettings
from headway.store.accounts import AccountStore

CREATOR = "@oidc"
"""Who made the accounts that belong to the provider; nobody can be called so."""
_NAME = re.compile(NAME_PATTERN)


class OidcAccounts:
    """Finds or makes the account of whoever the provider vouches for.

    The provider decides about the workspaces that the settings name, at every login: who left a
    group has lost what it gave. Other memberships are not its business.

    Args:
        accounts: The accounts.
        settings: What groups mean here.
    """

    def __init__(self, accounts: AccountStore, settings: OidcSettings) -> None:
        self._accounts = accounts
        self._settings = settings

    async def admit(self, claims: Claims, address: str) -> User:
        """The account, with the roles that its groups have now.

        Raises:
            LoginFailed: there is none, and none is made; or it belongs to somebody else.
        """
        name, groups = self._name(claims), _groups(claims.get(self._settings.groups_claim))
        act = Act(user=name, via=CREATOR, address=address)
        roles = self._roles(groups)
        administers = not groups.isdisjoint(self._settings.administrators)
        user = await self._accounts.user(name)
        if user is None:
            user = await self._new(name, administers, bool(roles) or administers, act)
        elif user.created_by != CREATOR and not self._settings.adopt_users:
            raise LoginFailed(
                f"the account {name} was made by an administrator and is not the provider's"
            )
        elif user.administrator != administers and user.created_by == CREATOR:
            await self._accounts.set_administrator(name, administers, act)
        await self._set_roles(name, roles, act)
        return user

    async def _new(self, name: str, administers: bool, wanted: bool, act: Act) -> User:
        if not (self._settings.create_users and wanted):
            raise LoginFailed(f"{name} has no account here; ask an administrator for one")
        made = await self._accounts.add_user(
            name, administers, Act(user=CREATOR, via=CREATOR, address=act.address)
        )
        if isinstance(made, Taken):
            raise LoginFailed(f"the name {name} is taken")
        if isinstance(made, WasRemoved):
            raise LoginFailed(
                f"the account {name} was removed; an administrator can bring it back with"
                f" `headway admin users add {name} --returning`"
            )
        return made

    def _roles(self, groups: frozenset[str]) -> dict[str, Role]:
        """The highest role in each workspace that one of the groups has one in."""
        roles: dict[str, Role] = {}
        for rule in self._settings.groups:
            if rule.group in groups:
                before = roles.get(rule.workspace, Role.NONE)
                roles[rule.workspace] = before if before.covers(rule.role) else rule.role
        return roles

    async def _set_roles(self, name: str, roles: dict[str, Role], act: Act) -> None:
        for workspace in sorted({rule.workspace for rule in self._settings.groups}):
            members = {each.user: each.role for each in await self._accounts.members(workspace)}
            role = roles.get(workspace)
            if role is None and name in members:
                await self._accounts.remove_member(workspace, name, act)
            elif role is not None and members.get(name) is not role:
                await self._accounts.set_member(workspace, name, role, act)

    def _name(self, claims: Claims) -> str:
        claim = self._settings.user_claim
        name = claims.get(claim)
        if claim == "email" and claims.get("email_verified") is not True:
            raise LoginFailed("the provider has not verified the e-mail address")
        # Only what is ASCII already: in lower case, the sign for kelvin is the letter k.
        name = name.lower() if isinstance(name, str) and name.isascii() else ""
        if _NAME.fullmatch(name) is None or name in RESERVED_NAMES:
            raise LoginFailed(f"the claim {claim!r} is not usable as a name here")
        return name


def _groups(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset({claim})
    if not isinstance(claim, list):
        return frozenset()
    return frozenset(name for name in claim if isinstance(name, str))
