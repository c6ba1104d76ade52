const MINUTE_MS = 60_000;
const NAMES = /jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat/g;
const NUMBERS = new Map([
  ...["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"].map(
    (name, i) => [name, i + 1] as const,
  ),
  ...["sun", "mon", "tue", "wed", "thu", "fri", "sat"].map((name, i) => [name, i] as const),
]);
const BOUNDS = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;

/** Local times as if they were UTC. */
type LocalClock = (time: number) => number;

/**
 * The times of a cron text by comparing each minute with the local time. A fixed time counts at its first occurrence, or
 * at the first minute after the gap that skips it; an interval (`*` or a step in the minute or hour) whenever it matches.
 */
export function referenceTimes(
  { cron, timeZone }: { cron: string; timeZone: string },
  after: Date,
  until: Date,
): Date[] {
  const fields = cron.split(" ");
  const isInterval = /[*/]/.test(fields.slice(0, 2).join());
  const matches = makeMatcher(fields);
  const localClock = localClockOf(timeZone);
  const found: Date[] = [];
  let latestLocal = localClock(after.getTime());
  for (let time = after.getTime() + MINUTE_MS; time <= until.getTime(); time += MINUTE_MS) {
    const local = localClock(time);
    const isDue = isInterval ? matches(local) : range(latestLocal + MINUTE_MS, local, MINUTE_MS).some(matches);
    if (isDue) found.push(new Date(time));
    latestLocal = Math.max(latestLocal, local);
  }
  return found;
}

function makeMatcher(fields: readonly string[]): (local: number) => boolean {
  const [minutes, hours, days, months, weekdays] = fields.map((field, index) => valuesOf(field, BOUNDS[index]!));
  return (local) => {
    const date = new Date(local);
    const isDay = days!.has(date.getUTCDate());
    const isWeekday = weekdays!.has(date.getUTCDay());
    const isEither = fields[2] !== "*" && fields[4] !== "*";
    return (
      minutes!.has(date.getUTCMinutes()) &&
      hours!.has(date.getUTCHours()) &&
      months!.has(date.getUTCMonth() + 1) &&
      (isEither ? isDay || isWeekday : isDay && isWeekday)
    );
  };
}

function valuesOf(field: string, [low, high]: readonly [number, number]): Set<number> {
  const values = field
    .replace(NAMES, (name) => String(NUMBERS.get(name)))
    .split(",")
    .flatMap((item) => {
      const [bounds, step = "1"] = item.split("/");
      const [from, to = from] = bounds === "*" ? [low, high] : bounds!.split("-").map(Number);
      return range(from!, to!, Number(step));
    });
  // Both 0 and 7 are Sunday.
  return new Set(high === 6 ? values.map((value) => value % 7) : values);
}

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.max(0, Math.floor((to - from) / step) + 1) }, (_, index) => from + index * step);
}

/** The clock of each zone remembers the times that it has converted: many texts are compared over the same days. */
const clocks = new Map<string, LocalClock>();

function localClockOf(timeZone: string): LocalClock {
  const known = clocks.get(timeZone);
  if (known) return known;
  const read = makeLocalClock(timeZone);
  const times = new Map<number, number>();
  const clock = (time: number) => {
    const local = times.get(time) ?? read(time);
    times.set(time, local);
    return local;
  };
  clocks.set(timeZone, clock);
  return clock;
}

function makeLocalClock(timeZone: string): LocalClock {
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, hourCycle: "h23", year: "numeric", month: "numeric" },
    ...{ day: "numeric", hour: "numeric", minute: "numeric" },
  });
  return (time) => {
    const part = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(part.year!, part.month! - 1, part.day, part.hour, part.minute);
  };
}
