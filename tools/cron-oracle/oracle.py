"""What cronsim and croniter say: times of cron expressions around changes of the clocks.

Reads cases from standard input, one a line, with tabs between: zone, when its clocks are changed,
begin and end of what is asked for (all in seconds since 1970), expression. Answers each with a
line: the offsets before and after the change, the times of cronsim, those of croniter; or, if one
cannot say, a ! and why.

Run it with PYTHONTZPATH set to nothing, so that zones come from the tzdata package.
"""

import os
import signal
import sys
from datetime import datetime, timezone
from multiprocessing import Pool
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim, CronSimError

# An oracle that does not get on is not waited for: seconds of computing for one answer.
PATIENCE = 3


class DoesNotEnd(ValueError):
    """An oracle is still searching."""


def give_up(_signal, _frame):
    raise DoesNotEnd("still searching")


def offset(zone, moment):
    """How far the clocks of a zone are ahead at a moment, in seconds."""
    return int(datetime.fromtimestamp(moment, zone).utcoffset().total_seconds())


def by_cronsim(zone, start, end, expression):
    """The times in start..end by cronsim."""
    times = []
    search = CronSim(expression, datetime.fromtimestamp(start - 1, zone))
    for found in search:
        time = int(found.astimezone(timezone.utc).timestamp())
        if time >= end:
            break
        times.append(time)
    return times


def by_croniter(zone, start, end, expression):
    """The times in start..end by croniter."""
    times = []
    search = croniter(
        expression,
        datetime.fromtimestamp(start - 1, zone),
        ret_type=float,
        implement_cron_bug=True,
        second_at_beginning=True,
    )
    while (time := int(search.get_next())) < end:
        times.append(time)
    return times


def told(ask, *question):
    """The answer as text: the first time, then how much later each next one is."""
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        times = ask(*question)
    except (CronSimError, ValueError, KeyError, TypeError, AssertionError) as error:
        return "!" + type(error).__name__ + " " + " ".join(str(error).split())
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    steps = [later - earlier for earlier, later in zip([0] + times, times)]
    return " ".join(map(str, steps))


def answer(line):
    """The line that answers a line."""
    name, change, start, end, expression = line.rstrip("\n").split("\t")
    zone, change, start, end = ZoneInfo(name), int(change), int(start), int(end)
    question = (zone, start, end, expression)
    offsets = f"{offset(zone, change - 1)} {offset(zone, change)}"
    return f"{offsets}\t{told(by_cronsim, *question)}\t{told(by_croniter, *question)}"


def main():
    if os.environ.get("PYTHONTZPATH") != "":
        sys.exit("set PYTHONTZPATH to nothing, or zones are those of this machine")
    signal.signal(signal.SIGVTALRM, give_up)
    with Pool() as pool:
        for line in pool.imap(answer, sys.stdin, chunksize=200):
            print(line)


if __name__ == "__main__":
    main()
