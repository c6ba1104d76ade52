const ISO_8601 =
  /^(?<date>[+-]?\d{4,6}-\d\d-\d\d)(?:[T ](?<time>\d\d:\d\d(?::\d\d)?)(?<fraction>\.\d+)?(?<zone>Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

const INFINITE = /^-?infinity$/;

/** JSON's, with seconds in the zone before there were time zones, and years of any length. */
const FROM_POSTGRES = /^(\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?([+-]\d\d:\d\d(?::\d\d)?)( BC)?$/;

/**
 * Postgres's time in UTC, `2026-11-20T10:15:00.123Z`. The microseconds stay where there are some: as a bound of a filter a
 * time must be the row's own. What Date cannot hold (infinity) stays as it is.
 */
export function toTime(text: string): string {
  const [, local, micros = "", zone, era] = FROM_POSTGRES.exec(text) ?? [];
  if (local === undefined || zone === undefined) return text;
  const utc = zone === "+00:00" && local.length === 19 && !era ? local : inUtc(local, zone, Boolean(era));
  if (utc === null) return text;
  const fraction = micros.padEnd(6, "0");
  return `${utc}.${fraction.endsWith("000") ? fraction.slice(0, 3) : fraction}Z`;
}

/** Years beyond four digits come with a sign, as ISO 8601 has them. Null for a time that Date cannot hold. */
function inUtc(local: string, zone: string, isBeforeChrist: boolean): string | null {
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = local.split(/[-T:]/).map(Number);
  const [hours = 0, minutes = 0, seconds = 0] = zone.slice(1).split(":").map(Number);
  const ahead = (hours * 60 + minutes) * 60 + seconds;
  const time = new Date(0);
  time.setUTCFullYear(isBeforeChrist ? 1 - year : year, month - 1, day);
  time.setUTCHours(hour, minute, zone.startsWith("-") ? second + ahead : second - ahead);
  return Number.isNaN(time.getTime()) ? null : time.toISOString().slice(0, -5);
}

/** What a client wrote, as Postgres reads it; null when it is neither ISO 8601 nor infinite. Without a zone it is UTC. */
export function readTime(text: string): string | null {
  if (INFINITE.test(text)) return text;
  const { date, time = "00:00", fraction = "", zone = "Z" } = ISO_8601.exec(text.trim())?.groups ?? {};
  if (date === undefined) return null;
  const { sign, year = "", rest } = /^(?<sign>[+-]?)(?<year>\d+)(?<rest>.*)$/.exec(date)!.groups!;
  const isBeforeChrist = sign === "-" || Number(year) === 0;
  const counted = String(isBeforeChrist ? Number(year) + 1 : Number(year)).padStart(4, "0");
  return `${counted}${rest}T${time}${fraction}${zone}${isBeforeChrist ? " BC" : ""}`;
}
