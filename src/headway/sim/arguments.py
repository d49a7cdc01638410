"""The command line of the simulated server: one table of options, named as `SimOptions` is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headway.core.errors import ConfigError
from headway.sim.options import SimOptions

_EPILOG = """\
durations: 0.02, 0.02±0.005, 0.01..0.03, lognormal:0.02±0.01 (seconds); lengths likewise (tokens)

faults: NAME[:parameter=value,...], by --fault for some requests or by header x-sim-fault for one
  error:status=503     an error body with that status
  rate-limit:seconds=1 429 with Retry-After
  html                 a web page with status 200
  stall:at=K,seconds=S nothing more for S seconds before token K (0: not even the head); no
                       seconds: for ever
  reset:at=K           TCP reset after K tokens
  close:at=K           connection closed after K tokens
  error-event:at=K     an error event after K tokens, then the end
  malformed:at=K       an event that is no JSON, after K tokens
  close-idle:seconds=S connection closed, unannounced, S seconds after the reply
  chunk:tokens=N       N tokens in each event
  role-first           the event that tells the role comes at once, ahead of the first token
  no-usage, no-done    without usage; without the last [DONE]
for --fault also: rate=0.1 (a tenth of them), every=10, first=3, on=all (also /v1/models and the
like, not only requests that ask the model)

example:
  headway sim --port 8000 --ttft 0.02 --itl 0.005 --fault error:status=503,rate=0.01
  headway sim --port 8000 --mode modelled --max-batch 32
"""


def parse_arguments(argv: Sequence[str]) -> SimOptions:
    """Read the command line.

    Raises:
        ConfigError: the value of an option cannot be.
        SystemExit: an option is misspelt, or help was asked for.
    """
    given = vars(_parser().parse_args(argv))
    nested: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        section, _, field = name.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[field] = value
    try:
        return SimOptions(**nested)
    except ValidationError as error:
        raise ConfigError(_explain(error, _parser())) from error


def _explain(error: ValidationError, parser: argparse.ArgumentParser) -> str:
    first = error.errors()[0]
    path = ".".join(part for part in first["loc"] if isinstance(part, str))
    flags = [
        action.option_strings[0]
        for action in parser._actions
        if f"{path}.".startswith(f"{action.dest}.")
    ]
    return f"{flags[0] if flags else path}: {first['msg'].removeprefix('Value error, ')}"


def _freeze(text: str) -> dict[str, str]:
    at_s, _, seconds = text.partition(":")
    return {"at_s": at_s, "seconds": seconds}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headway sim",
        usage="headway sim [options]",
        description="A simulated inference server that speaks the OpenAI API.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_listen(parser.add_argument_group("where it listens"))
    _add_reply(parser.add_argument_group("what the model answers"))
    _add_exact(parser.add_argument_group("engine"))
    _add_model(parser.add_argument_group("--mode modelled: continuous batching"))
    _add_others(parser.add_argument_group("faults and the rest"))
    return parser


def _add_listen(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--host", dest="listen.host", metavar="ADDRESS", help="default 127.0.0.1")
    add("--port", dest="listen.port", type=int, metavar="PORT", help="0, the default: any free one")
    add("--uds", dest="listen.uds", type=Path, metavar="PATH", help="a Unix socket instead")
    add("--tls-cert", dest="listen.tls_cert", type=Path, metavar="FILE")
    add("--tls-key", dest="listen.tls_key", type=Path, metavar="FILE")
    add("--api-key", dest="listen.api_key", metavar="KEY", help="refuse requests without it")
    add("--accept-delay", dest="listen.accept_delay_s", metavar="SECONDS",
        help="take one connection after the other, each so late")  # fmt: skip
    add("--backlog", dest="listen.backlog", type=int, metavar="N",
        help="connections that may wait to be taken; default 4096")  # fmt: skip


def _add_reply(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", dest="reply.models", action="append", metavar="NAME",
        help="a served model, default headway-sim; repeat for several")  # fmt: skip
    add("--max-model-len", dest="reply.max_model_len", metavar="TOKENS", help="default 131072")
    add("--default-output-tokens", dest="reply.default_output_tokens", metavar="TOKENS",
        help="the reply's length where the request sets no limit; default 128")  # fmt: skip
    add("--stop-tokens", dest="reply.stop_tokens", metavar="LENGTH",
        help="where the model stops by itself; default: at the request's limit")  # fmt: skip
    add("--reasoning-tokens", dest="reply.reasoning_tokens", metavar="LENGTH",
        help="how much of each reply is reasoning; default 0")  # fmt: skip
    add("--reasoning-field", dest="reply.reasoning_field",
        choices=("reasoning_content", "reasoning"))  # fmt: skip
    add("--embedding-dimensions", dest="reply.embedding_dimensions", metavar="N",
        help="default 64")  # fmt: skip


def _add_exact(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--mode", choices=("exact", "modelled"), help="default exact")
    add("--ttft", dest="exact.ttft_s", metavar="DURATION",
        help="exact: arrival to first token; default 0")  # fmt: skip
    add("--itl", dest="exact.itl_s", metavar="DURATION",
        help="exact: token to token; default 0")  # fmt: skip


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--prefill-tokens-per-s", dest="model.prefill_tokens_per_s", metavar="N",
        help="default 20000")  # fmt: skip
    add("--step-base", dest="model.step_base_s", metavar="SECONDS",
        help="what a decode step takes; default 0.008")  # fmt: skip
    add("--step-per-sequence", dest="model.step_per_sequence_s", metavar="SECONDS",
        help="what each sequence in the batch adds; default 0.00015")  # fmt: skip
    add("--max-batch", dest="model.max_batch", metavar="N", help="default 64")
    add("--max-batched-tokens", dest="model.max_batched_tokens", metavar="N",
        help="tokens that one step computes at most; default 2048")  # fmt: skip
    add("--kv-capacity-tokens", dest="model.kv_capacity_tokens", metavar="N",
        help="default 131072")  # fmt: skip
    add("--block-tokens", dest="model.block_tokens", metavar="N", help="default 16")
    add("--no-prefix-cache", dest="model.prefix_cache", action="store_const", const=False)


def _add_others(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--fault", dest="faults", action="append", metavar="FAULT", help="see below; repeatable")
    add("--freeze", dest="freezes", action="append", type=_freeze, metavar="AT:SECONDS",
        help="stand still for SECONDS, AT seconds after the first request")  # fmt: skip
    add("--seed", type=int, help="of everything drawn; default 0")
    add("--truth-log", type=Path, metavar="FILE", help="append each exchange as a JSON line")
    add("--die-with-parent", action="store_const", const=True, help="end when the parent ends")
