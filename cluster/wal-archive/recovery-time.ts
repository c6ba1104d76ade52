/** A point in time to restore, with everything committed until then. */
export type RecoveryTarget = { readonly at: Date } | "latest";

const FORMAT = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6}))?)?)?\s*(.*)$/;
const EXPECTED =
  "a time such as '2026-11-22 10:15', '2026-11-22 10:15:30+01:00', '2026-11-22T09:15Z' or '2026-11-22 10:15 Europe/Berlin', '10 minutes ago', or latest";
const AGO = /^(\d{1,6}) (second|minute|hour|day)s? ago$/i;
const UNIT_MS: Readonly<Record<string, number>> = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Throws an error that describes the allowed forms. Without a time zone, it is the time of this machine. */
export function parseRecoveryTarget(text: string, now = new Date()): RecoveryTarget {
  if (text.trim().toLowerCase() === "latest") return "latest";
  const [, count, unit] = AGO.exec(text.trim()) ?? [];
  if (unit !== undefined) return { at: new Date(now.getTime() - Number(count) * UNIT_MS[unit.toLowerCase()]!) };
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone = ""] =
    FORMAT.exec(text.trim()) ?? [];
  if (year === undefined) throw new Error(`Specify ${EXPECTED}.`);
  const parts = [year, month, day, hour, minute, second].map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const local = Date.UTC(parts[0], parts[1] - 1, ...(parts.slice(2) as [number, number, number, number]));
  const written =
    [year, month, day].join("-") + ` ${[hour, minute, second].map((part) => part.padStart(2, "0")).join(":")}`;
  if (new Date(local).toISOString().slice(0, 19).replace("T", " ") !== written) {
    throw new Error(`There is no such date or time: ${written}.`);
  }
  const milliseconds = Math.floor(Number(`0.${fraction || "0"}`) * 1_000);
  return { at: new Date(local + milliseconds - offsetMs(zone, local)) };
}

/** Returns the offset of the zone from UTC at a local time. */
function offsetMs(zone: string, local: number): number {
  if (/^(z|utc|gmt)$/i.test(zone)) return 0;
  const [, sign, hours, minutes = "0"] = /^(?:utc|gmt)?([+-])(\d\d?)(?::?(\d\d))?$/i.exec(zone) ?? [];
  if (sign !== undefined && Number(hours) <= 15 && Number(minutes) < 60) {
    return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  }
  const offsetAt = zoneOffsets(zone);
  // The offset is that of the UTC time with the same digits, corrected by the offset of the resulting time, for changes of summer time.
  return offsetAt(local - offsetAt(local));
}

function zoneOffsets(zone: string): (at: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      ...(zone !== "" && { timeZone: zone }),
      timeZoneName: "longOffset",
    });
  } catch {
    throw new Error(
      `There is no time zone "${zone}": use UTC, an offset such as +01:00 or a name such as Europe/Berlin.`,
    );
  }
  return (at) => {
    const name = format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours, minutes, seconds = "0"] = /([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(name) ?? [];
    if (sign === undefined) return 0;
    return (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
  };
}
