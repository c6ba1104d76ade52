const ISO_8601 =
  /^(?<date>[+-]?\d{4,6}-\d\d-\d\d)(?:[T ](?<time>\d\d:\d\d(?::\d\d)?)(?<fraction>\.\d+)?(?<zone>Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/**
 * Postgres's time in UTC, `2026-11-20T10:15:00.123Z`. The microseconds stay where there are some: as a bound of a filter a
 * time must be the row's own. What Date cannot hold (infinity) stays as it is.
 */
export function toTime(text: string): string {
  const [, seconds, micros = "", zone] = /^(.*?)(?:\.(\d+))?([+-]\d\d:\d\d)$/.exec(text) ?? [];
  if (seconds === undefined || zone === undefined) return text;
  const utc = zone === "+00:00" ? seconds : new Date(seconds + zone).toISOString().slice(0, -5);
  const fraction = micros.padEnd(6, "0");
  return `${utc}.${fraction.endsWith("000") ? fraction.slice(0, 3) : fraction}Z`;
}

/** What a client wrote, as Postgres reads it; null when it is no ISO 8601. Without a zone it is UTC. */
export function readTime(text: string): string | null {
  const { date, time = "00:00", fraction = "", zone = "Z" } = ISO_8601.exec(text.trim())?.groups ?? {};
  return date === undefined ? null : `${date}T${time}${fraction}${zone}`;
}
