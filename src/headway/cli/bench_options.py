"""The options of `headway bench`: one table, each flag with the field that it sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import click

from headway.cli import spec_options
from headway.cli.durations import parse_duration_s
from headway.cli.spec_options import SpecOption, key_json_values, key_values, numbers
from headway.core.errors import ConfigError

PROFILES = (
    "synchronous",
    "concurrent",
    "throughput",
    "constant",
    "poisson",
    "gamma",
    "ramp",
    "trace",
    "sweep",
    "search",
)
BACKENDS = (
    "openai-chat",
    "openai-completions",
    "openai-responses",
    "openai-embeddings",
    "http",
    "python",
    "headway-jobs",
    "null",
)
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _option(*names: str, section: str, path: str | None = None, **attrs: Any) -> _Decorator:
    return click.option(*names, cls=SpecOption, section=section, path=path, **attrs)


def _durations(text: str) -> float:
    return parse_duration_s(text)


def _whole_numbers(text: str) -> list[int]:
    values = numbers(text)
    if any(value != int(value) for value in values):
        raise ConfigError(f"{text!r} must be whole numbers, for example 1,8,32")
    return [int(value) for value in values]


def _error_rate(text: str) -> dict[str, float]:
    share, _, window = text.partition("/")
    limit = {"rate": float(numbers(share.rstrip("%"))[0]) / (100 if share.endswith("%") else 1)}
    if window:
        limit["window_s"] = parse_duration_s(window)
    return limit


def _min_goodput(text: str) -> dict[str, float]:
    limit = _error_rate(text)
    return {"share": limit.pop("rate"), **limit}


def _objectives(text: str) -> dict[str, float]:
    objectives = {}
    for item in text.split(","):
        name, below, limit = item.partition("<")
        name = name.strip()
        if not below or name not in ("ttft", "tpot", "latency", "response"):
            raise ConfigError(
                f"{item.strip()!r} is not an objective; write for example "
                "'ttft<500ms,tpot<50ms' (ttft, tpot, latency, response)"
            )
        if not limit.strip()[-1:].isalpha():
            # Bare seconds pass elsewhere; here `ttft<500` would be eight minutes, met by anything.
            raise ConfigError(f"{item.strip()!r} has no unit; write for example 'ttft<500ms'")
        objectives[f"{name}_s"] = parse_duration_s(limit)
    return objectives


_TARGET = "Target"
_REQUESTS = "Requests"
_INPUTS = "Inputs"
_LOAD = "Load"
_STOP = "Stop rules"
_OUTPUT = "Output"
_SERVER = "Server"

_OPTIONS: Sequence[_Decorator] = (
    # --- Target
    _option("--model", section=_TARGET, path="target.model", help="Default: the first one listed."),
    _option(
        "--backend",
        type=click.Choice(BACKENDS),
        section=_TARGET,
        path="backend.kind",
        help="Protocol of the target. Default: openai-chat.",
    ),
    _option(
        "--header",
        multiple=True,
        metavar="'NAME: VALUE'",
        section=_TARGET,
        path="target.headers",
        convert=spec_options.headers,
        help="Sent with every request; may be repeated.",
    ),
    _option(
        "--api-key-env",
        metavar="VARIABLE",
        section=_TARGET,
        path="target.api_key_env",
        help="Environment variable that holds the API key.",
    ),
    _option(
        "--api-key-file", metavar="FILE", section=_TARGET, path="target.api_key_file",
        help="File that holds the API key.",
    ),
    _option(
        "--api-key-secret", metavar="NAME", section=_TARGET, path="target.api_key_secret",
        help="Secret of the server's workspace that is the API key (with --server).",
    ),
    _option(
        "--insecure", is_flag=True, section=_TARGET, path="target.tls.verify",
        convert=lambda given: not given, help="Do not verify the TLS certificate.",
    ),
    _option("--ca-file", metavar="FILE", section=_TARGET, path="target.tls.ca_file",
            help="Certificate authorities to trust."),
    _option("--client-cert", metavar="FILE", section=_TARGET, path="target.tls.client_cert",
            help="Client certificate (PEM)."),
    _option("--client-key", metavar="FILE", section=_TARGET, path="target.tls.client_key",
            help="Key of the client certificate."),
    _option("--proxy", metavar="URL", section=_TARGET, path="target.proxy",
            help="HTTP proxy; uses the aiohttp transport."),
    _option("--transport", type=click.Choice(["fast", "aiohttp"]), section=_TARGET,
            path="target.transport", help="Default: fast."),
    _option("--spread-addresses", is_flag=True, section=_TARGET, path="target.spread_addresses",
            help="Use every address that the target's name resolves to."),
    _option("--connect-timeout", metavar="TIME", section=_TARGET, convert=_durations,
            path="target.timeouts.connect_s", help="Default: 10s."),
    _option("--first-token-timeout", metavar="TIME", section=_TARGET, convert=_durations,
            path="target.timeouts.first_token_s", help="Default: none."),
    _option("--idle-timeout", metavar="TIME", section=_TARGET, convert=_durations,
            path="target.timeouts.idle_s", help="Between two reads of a reply. Default: none."),
    _option("--timeout", metavar="TIME", section=_TARGET, convert=_durations,
            path="target.timeouts.total_s", help="Of a whole request. Default: 600s."),
    # --- Requests
    _option("--stream/--no-stream", section=_REQUESTS, path="backend.stream", default=None,
            help="Ask for a stream of tokens. Default: stream."),
    _option("--usage/--no-usage", section=_REQUESTS, path="backend.include_usage", default=None,
            help="Ask the stream to end with the server's token counts. Default: usage."),
    _option("--output-tokens-field", metavar="FIELD", section=_REQUESTS,
            path="backend.output_tokens_field",
            help="Where the body says the longest reply, e.g. max_completion_tokens."),
    _option("--extra-body", multiple=True, metavar="FIELD=JSON", section=_REQUESTS,
            path="backend.extra_body", convert=key_json_values,
            help="Put a field into every body, e.g. ignore_eos=true; may be repeated."),
    _option("--method", metavar="METHOD", section=_REQUESTS, path="backend.method",
            help="For backend http. Default: POST."),
    _option("--path", "path_", metavar="PATH", section=_REQUESTS, path="backend.path",
            help="For backend http: added to the URL."),
    _option("--body", metavar="TEMPLATE", section=_REQUESTS, path="backend.body",
            help="For backend http: body with {prompt}, {output_tokens}, {column}."),
    _option("--http-stream", type=click.Choice(["none", "sse", "lines"]), section=_REQUESTS,
            path="backend.stream", help="For backend http: how the reply is split."),
    _option("--function", metavar="MODULE:NAME", section=_REQUESTS, path="backend.function",
            help="For backend python: what to call."),
    _option("--threads", type=int, metavar="N", section=_REQUESTS, path="backend.threads",
            help="For backend python: most calls of a sync function at a time."),
    _option("--operation", metavar="NAME", section=_REQUESTS, path="backend.operation",
            help="For backend headway-jobs: what to submit."),
    _option("--job-input", metavar="TEMPLATE", section=_REQUESTS, path="backend.input",
            help="For backend headway-jobs: its input as JSON, with {prompt} and so on."),
    _option("--job-wait", metavar="TIME", section=_REQUESTS, path="backend.wait_s",
            convert=_durations, help="For backend headway-jobs: longest wait. Default: 30s."),
    _option("--backend-plugin", metavar="NAME", section=_REQUESTS, path="backend.name",
            help="A backend of your own: its entry point's name, or MODULE:NAME."),
    _option("--backend-option", multiple=True, metavar="KEY=JSON", section=_REQUESTS,
            path="backend.options", convert=key_json_values, help="For --backend-plugin."),
    _option("--null-latency", metavar="TIME", section=_REQUESTS, path="backend.latency_s",
            convert=_durations, help="For backend null: how long a request takes. Default: 0."),
    _option("--null-chunks", type=int, metavar="N", section=_REQUESTS, path="backend.chunks",
            help="For backend null: chunks of a reply. Default: 1."),
    # --- Inputs
    _option("--input", "input_", metavar="TOKENS", section=_INPUTS, path="inputs.prompt_tokens",
            help="Prompt length: 512, 512±128, 64..256, lognormal:512±256. Default: 256."),
    _option("--output", metavar="TOKENS", section=_INPUTS, path="inputs.output_tokens",
            help="Most tokens of a reply, same notation. Default: 128."),
    _option("--data", metavar="FILE", section=_INPUTS, path="inputs.path",
            help="Prompts, conversations or a trace: JSONL, CSV, text, Parquet."),
    _option("--data-format", metavar="FORMAT", section=_INPUTS, path="inputs.format",
            help="Where the file's ending does not tell."),
    _option("--prompt-column", metavar="NAME", section=_INPUTS, path="inputs.prompt_column",
            help="Default: found by name."),
    _option("--output-tokens-column", metavar="NAME", section=_INPUTS,
            path="inputs.output_tokens_column", help="Column with the reply's length."),
    _option("--answer-lengths", is_flag=True, section=_INPUTS, path="inputs.answer_lengths",
            help="Ask for as many tokens as each row's recorded answer has."),
    _option("--lengths", metavar="FILE", section=_INPUTS, path="inputs.lengths",
            help="Draw lengths of prompt and reply from a file's rows, in pairs."),
    _option("--turns", is_flag=True, section=_INPUTS, path="inputs.turns",
            help="Send each user message of a conversation as a turn."),
    _option("--synthetic-turns", metavar="TURNS", section=_INPUTS, path="inputs.turns",
            help="Turns of a synthetic conversation. Default: 1."),
    _option("--think-time", metavar="SECONDS", section=_INPUTS, path="inputs.think_time_s",
            help="Between turns, in seconds: 2, 2±0.5, 1..3. Default: 0."),
    _option("--repeat", is_flag=True, section=_INPUTS, path="inputs.repeat",
            help="Begin the file again at its end."),
    _option("--shuffle", is_flag=True, section=_INPUTS, path="inputs.shuffle",
            help="Take the file's rows in an order drawn from the seed."),
    _option("--shared-prefix", "shared_prefix", metavar="TOKENS", type=int, section=_INPUTS,
            path="inputs.prefix_tokens", help="Prefix that prompts share, besides --input."),
    _option("--prefix-groups", metavar="N", type=int, section=_INPUTS,
            path="inputs.prefix_groups", help="How many different shared prefixes."),
    _option("--allow-cache-hits", is_flag=True, section=_INPUTS, path="inputs.unique_prefix",
            convert=lambda given: not given,
            help="Let synthetic prompts begin alike. Default: each begins with words of its own."),
    _option("--unique-prefix", is_flag=True, section=_INPUTS, path="inputs.unique_prefix",
            help="Put words of its own before each of the file's conversations."),
    _option("--tokenizer", metavar="FILE", section=_INPUTS, path="inputs.tokenizer",
            help="A tokenizer.json, for targets that cannot count tokens."),
    _option("--data-plugin", metavar="NAME", section=_INPUTS, path="inputs.name",
            help="Inputs of your own: their entry point's name, or MODULE:NAME."),
    _option("--data-option", multiple=True, metavar="KEY=JSON", section=_INPUTS,
            path="inputs.options", convert=key_json_values, help="For --data-plugin."),
    _option("--block-tokens", type=int, metavar="N", section=_INPUTS,
            path="inputs.block_tokens",
            help="For Mooncake traces: tokens of a shared block. Default: 512."),
    # --- Load
    _option("--profile", type=click.Choice(PROFILES), section=_LOAD, path="profile.kind",
            help="Default: sweep; with --rate poisson, --streams concurrent, --slo search."),
    _option("--rate", metavar="R[,R...]", section=_LOAD, path="profile.rate", convert=numbers,
            help="Requests per second; each value is a stage."),
    _option("--streams", metavar="N[,N...]", section=_LOAD, path="profile.streams",
            convert=_whole_numbers, help="Concurrent streams; each value is a stage."),
    _option("--cap", type=int, metavar="N", section=_LOAD, path="profile.cap",
            help="Most requests in flight; at the cap requests are sent late, never skipped."),
    _option("--cv", type=float, metavar="X", section=_LOAD, path="profile.cv",
            help="For gamma: coefficient of variation of the gaps."),
    _option("--ramp-from", type=float, metavar="R", section=_LOAD, path="profile.rate_from",
            help="For ramp: first rate."),
    _option("--ramp-to", type=float, metavar="R", section=_LOAD, path="profile.rate_to",
            help="For ramp: last rate."),
    _option("--ramp-duration", metavar="TIME", section=_LOAD, path="profile.duration_s",
            convert=_durations, help="For ramp: how long it takes."),
    _option("--time-scale", type=float, metavar="X", section=_LOAD, path="profile.time_scale",
            help="For trace: 0.5 replays twice as fast."),
    _option("--arrivals-plugin", metavar="NAME", section=_LOAD, path="profile.name",
            help="Due times of your own: their entry point's name, or MODULE:NAME."),
    _option("--arrivals-option", multiple=True, metavar="KEY=JSON", section=_LOAD,
            path="profile.options", convert=key_json_values, help="For --arrivals-plugin."),
    _option("--sweep-steps", type=int, metavar="N", section=_LOAD, path="profile.steps",
            help="For sweep: rates between the two ends. Default: 6."),
    _option("--sweep-arrivals", type=click.Choice(["constant", "poisson"]), section=_LOAD,
            path="profile.arrivals", help="For sweep and search. Default: poisson."),
    _option("--saturation-streams", type=int, metavar="N", section=_LOAD,
            path="profile.saturation_streams", help="For sweep and search. Default: 128."),
    _option("--slo", metavar="LIST", section=_LOAD, path="profile.slo",
            help="For search: what must hold, e.g. 'ttft p99 < 500ms, tpot p95 < 50ms'."),
    _option("--search-from", type=float, metavar="R", section=_LOAD, path="profile.low_rate",
            help="For search: lowest rate. Default: a tenth of one request after another."),
    _option("--search-to", type=float, metavar="R", section=_LOAD, path="profile.high_rate",
            help="For search: highest rate. Default: above what saturation completes."),
    _option("--search-precision", type=float, metavar="SHARE", section=_LOAD,
            path="profile.precision", help="For search: step between rates. Default: 0.05."),
    _option("--search-confidence", type=float, metavar="SHARE", section=_LOAD,
            path="profile.confidence", help="For search: how sure to be. Default: 0.95."),
    _option("--search-stages", type=int, metavar="N", section=_LOAD, path="profile.max_stages",
            help="For search: most stages. Default: 40."),
    _option("--warmup", metavar="TIME", section=_LOAD, path="warmup_s", convert=_durations,
            help="Cut from the start of each stage's numbers."),
    _option("--cooldown", metavar="TIME", section=_LOAD, path="cooldown_s", convert=_durations,
            help="Cut from the end of each stage's numbers."),
    _option("--open-conversations", type=int, metavar="N", section=_LOAD,
            path="open_conversations", help="Most conversations begun and not ended."),
    _option("--handout-ahead", metavar="TIME", section=_LOAD, path="handout_ahead_s",
            convert=_durations, help="How far ahead a worker is given its arrivals. Default: 1s."),
    _option("--workers", type=int, metavar="N", section=_LOAD, path="workers",
            help="Load processes. Default: as many as the load needs."),
    _option("--seed", type=int, metavar="N", section=_LOAD, path="seed",
            help="Same seed, same schedule and prompts. Default: 0."),
    _option("--calibrate/--no-calibrate", section=_LOAD, path="calibrate", default=None,
            help="Measure the client's own floor first. Default: calibrate."),
    # --- Stop rules
    _option("--max-requests", type=int, metavar="N", section=_STOP, path="limits.max_requests",
            help="Of each stage; of several turns each: so many conversations."),
    _option("--max-seconds", metavar="TIME", section=_STOP, path="limits.max_seconds",
            convert=_durations, help="Of each stage. Default: 30s when no rule is given."),
    _option("--max-errors", type=int, metavar="N", section=_STOP, path="limits.max_errors",
            help="Stop after this many failed requests."),
    _option("--max-error-rate", metavar="SHARE[/TIME]", section=_STOP,
            path="limits.max_error_rate", convert=_error_rate,
            help="Stop when this share failed within the window, e.g. 5%/10s."),
    _option("--max-consecutive-errors", type=int, metavar="N", section=_STOP,
            path="limits.max_consecutive_errors", help="Stop after so many failures in a row."),
    _option("--min-goodput", metavar="SHARE[/TIME]", section=_STOP, path="limits.min_goodput",
            convert=_min_goodput,
            help="Stop when fewer requests than this meet the --objective, e.g. 90%/10s."),
    _option("--stop-saturated", is_flag=True, section=_STOP, path="limits.saturation",
            convert=lambda given: {}, help="Stop an open loop whose target falls behind."),
    _option("--grace", metavar="TIME", section=_STOP, path="limits.grace_s", convert=_durations,
            help="How long requests in flight may go on at the end. Default: 10s."),
    _option("--stop-scope", type=click.Choice(["stage", "run"]), section=_STOP,
            path="limits.stop_scope",
            help="What a rule about errors, goodput or saturation ends. Default: stage."),
    _option("--objective", metavar="LIST", section=_STOP, path="objectives", convert=_objectives,
            help="What a good request meets, e.g. 'ttft<500ms,tpot<50ms'."),
    # --- Output
    _option("--run-dir", metavar="DIR", section=_OUTPUT,
            help="Where the run is kept. Default: runs/<time>-<id>."),
    _option("--json", "json_", is_flag=True, section=_OUTPUT, help="Print report.json to stdout."),
    _option("--quiet", "-q", is_flag=True, section=_OUTPUT, help="No live view, no table."),
    _option("--capture-text", is_flag=True, section=_OUTPUT, path="capture_text",
            help="Keep the start of each reply in its record."),
    _option("--label", multiple=True, metavar="KEY=VALUE", section=_OUTPUT, path="labels",
            convert=key_values, help="Kept with the run; may be repeated."),
    _option("--resume", metavar="DIR", section=_OUTPUT,
            help="Go on with the run in DIR that was cut short; whole stages are kept."),
    # --- Server
    _option("--server", metavar="URL", envvar="HEADWAY_SERVER", section=_SERVER,
            help="Run as a job of this server. Default: HEADWAY_SERVER, else here."),
    _option("--local", is_flag=True, section=_SERVER,
            help="Run here, whatever HEADWAY_SERVER says."),
    _option("--target-wait", metavar="TIME", section=_SERVER,
            help="How long the job waits for the target to answer. Default: 30m; 0s: not at all."),
    _option("--detach", is_flag=True, section=_SERVER,
            help="Print the job's id and leave it running."),
    _option("--attach", metavar="ID", section=_SERVER,
            help="Come back to a job: watch it, fetch its run directory, show its report."),
)  # fmt: skip


def bench_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds every option of `headway bench` to a command."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), function)
