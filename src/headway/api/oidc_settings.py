"""How people sign in at an OpenID provider, and what they may do here afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from headway.access.roles import Role
from headway.core.errors import ConfigError
from headway.core.spec import SpecModel

SECRET_VARIABLE = "HEADWAY_OIDC_CLIENT_SECRET"  # noqa: S105 -- a variable's name


class GroupRole(SpecModel):
    """What the members of a group of the provider are in a workspace."""

    group: str = Field(min_length=1, max_length=200)
    workspace: str = Field(min_length=1, max_length=64)
    role: Role

    @field_validator("role")
    @classmethod
    def _real(cls, role: Role) -> Role:
        if role is Role.NONE:
            raise ValueError("viewer, user or admin")
        return role


class OidcSettings(SpecModel):
    """One provider.

    Attributes:
        issuer: Its address, as its tokens have it.
        name: What people know it by.
        client_id: This server's name there.
        client_secret_file: Holds its secret; without, HEADWAY_OIDC_CLIENT_SECRET, else it has none.
        scopes: What is asked for besides `openid`.
        user_claim: Names the account here. The provider must never give one person's to another.
        groups_claim: A list of names.
        groups: What these groups are here; in the workspaces that are named, nothing else counts.
        administrators: Groups whose members manage this server.
        create_users: Whether somebody who is in one of the groups, and has no account, gets one.
        adopt_users: Whether somebody takes over the account of that name that an administrator
            made here; without, such a login is refused.
    """

    issuer: str
    name: str = Field(default="single sign-on", max_length=60)
    client_id: str = Field(min_length=1)
    client_secret_file: Path | None = None
    scopes: tuple[str, ...] = ("profile", "email")
    user_claim: str = "email"
    groups_claim: str = "groups"
    groups: tuple[GroupRole, ...] = ()
    administrators: tuple[str, ...] = ()
    create_users: bool = False
    adopt_users: bool = False

    @field_validator("issuer")
    @classmethod
    def _secure(cls, issuer: str) -> str:
        parts = urlsplit(issuer)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("the issuer's address begins with https://")
        if parts.query or parts.fragment or parts.username:
            raise ValueError("the issuer's address has no query and no user name")
        return issuer

    @model_validator(mode="after")
    def _useful(self) -> OidcSettings:
        if not (self.groups or self.administrators):
            raise ValueError("groups (or administrators) must say what people may do here")
        return self

    def client_secret(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """This server's secret at the provider.

        Raises:
            ConfigError: the file cannot be read.
        """
        if self.client_secret_file is None:
            return environ.get(SECRET_VARIABLE)
        try:
            return self.client_secret_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"cannot read {self.client_secret_file}, named by oidc.client_secret_file:"
                f" {error.strerror}"
            ) from error
