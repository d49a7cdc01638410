"""Operations that say hostile text wherever a job can say something."""

from __future__ import annotations

from pydantic import BaseModel

from headway.jobs import JobContext, operation

PAYLOADS = (
    '<script>window.pwned = "script"</script>',
    "<img src=x onerror=\"window.pwned = 'img'\">",
    "\"><svg/onload=window.pwned='svg'>",
    "'-alert(1)-'",
    "</script></style></textarea></title></pre><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "javascript:window.pwned='url'//",
    "\x1b]8;;javascript:window.pwned=1\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m",
    "&lt;b&gt;<b>{{7*7}}${7*7}<%= 7*7 %>",
)
ALL = "\n".join(PAYLOADS)


class Text(BaseModel):
    text: str = ALL
    extra: dict[str, str] = {}


class Hostile(Exception):
    pass


@operation(lane="short")
def say(job: JobContext, request: Text) -> dict[str, str]:
    """Says it and succeeds."""
    print(request.text, flush=True)
    job.log.warning("%s", request.text)
    for number, payload in enumerate(PAYLOADS):
        job.progress((number + 1) / len(PAYLOADS), payload, **{payload[:40]: float(number)})
    page = f"<html><body>{request.text}</body></html>".encode()
    job.artifact("page.html", page, media_type="text/html")
    job.artifact("image.svg", page, media_type="image/svg+xml")
    job.artifact("alert(1)@x.js".replace("(", "=").replace(")", "="), b"window.pwned='js'",
                 media_type="text/javascript")  # fmt: skip
    return {payload: payload for payload in PAYLOADS}


@operation(lane="short")
def break_down(job: JobContext, request: Text) -> None:
    """Says it and fails with it, and with a cause that says it too."""
    print(request.text, flush=True)
    try:
        raise KeyError(request.text)
    except KeyError as error:
        raise Hostile(request.text) from error
