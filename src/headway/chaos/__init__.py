"""`headway chaos`: hurts a real server by a plan and tells what it lost, doubled or left behind.

See `docs/chaos.md`. The pieces: a plan (`plan`), the work that is submitted meanwhile
(`workload`, `operations`), those who do it (`scene`, `faults`, `feeding`, `following`), and the
judgement (`history`, `judgement`), which is a pure function of what was seen.
"""
