import { isEnumCodec, listOfCodec, type PgCodecAnyScalar, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

type FindCodecEvent = Parameters<GraphileConfig.GatherHooks["pgCodecs_findPgCodec"]>[0];

/** A gather hook that uses these codecs, by type name, for the types of `pg_catalog` and for lists of them. */
export function findBuiltInCodec(
  codecs: Readonly<Record<string, PgCodecAnyScalar>>,
): (info: unknown, event: FindCodecEvent) => void {
  const lists = Object.entries(codecs).map(([name, codec]) => [`_${name}`, listOfCodec(codec, { name: `${name}[]` })]);
  const known: Readonly<Record<string, Codec>> = { ...codecs, ...Object.fromEntries(lists) };
  return (_info, event) => {
    const { pgType } = event;
    if (event.pgCodec || pgType.getNamespace()?.nspname !== "pg_catalog") return;
    event.pgCodec = known[pgType.typname] ?? null;
  };
}

/** Shows values of the codec by one of core's scalars. */
export function showAsScalar(
  { setGraphQLTypeForPgCodec, inflection }: GraphileBuild.Build,
  codec: Codec,
  scalar: string,
): void {
  setGraphQLTypeForPgCodec(codec, ["input", "output"], inflection.builtin(scalar));
}

/** Shows values of the codec by one of core's objects, which have an input type each. */
export function showAsObject(
  { setGraphQLTypeForPgCodec, inflection }: GraphileBuild.Build,
  codec: Codec,
  type: string,
): void {
  const name = inflection.builtin(type);
  setGraphQLTypeForPgCodec(codec, "output", name);
  setGraphQLTypeForPgCodec(codec, "input", inflection.inputType(name));
}

/** The codec beneath all domains. */
export function baseCodecOf(codec: Codec): Codec {
  return codec.domainOfCodec ? baseCodecOf(codec.domainOfCodec) : codec;
}

/** The column and its codec in a form that can be compared: Postgres has no operators for a domain over an enum. */
export function castToComparable(column: SQL, codec: Codec): readonly [SQL, Codec] {
  if (!codec.domainOfCodec || !isEnumCodec(codec)) return [column, codec];
  const baseCodec = baseCodecOf(codec);
  return [sql`${column}::${baseCodec.sqlType}`, baseCodec];
}

/** A codec's `listCastFromPg`: applies the cast to each item and returns the array as text. */
export function castListItems(cast: (item: SQL) => SQL): (list: SQL) => SQL {
  return (list) => {
    const item = sql.identifier(Symbol("item"));
    return sql`(case when ${list} is null then null else array(select ${cast(item)} from pg_catalog.unnest(${list}) as ${item})::pg_catalog.text end)`;
  };
}

const ISO_8601 =
  /^(?<date>[+-]?\d{4,6}-\d\d-\d\d)(?:[T ](?<time>\d\d:\d\d(?::\d\d)?)(?<fraction>\.\d+)?(?<zone>Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

const INFINITE_TIME = /^-?infinity$/;

/** to_json's format: zone offsets of old dates have seconds, and years may have more than four digits. */
const POSTGRES_TIME = /^(\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?([+-]\d\d:\d\d(?::\d\d)?)( BC)?$/;

/**
 * Core formats times with to_char, which turns infinity into null and takes twice as long (1.9 µs instead of 0.8). to_json gives
 * ISO 8601 as well, whatever DateStyle is set to.
 */
export const TIME_CODECS = {
  timestamptz: withTextCast(TYPES.timestamptz, castToJsonText),
  timestamp: withTextCast(TYPES.timestamp, castToJsonText),
  date: withTextCast(TYPES.date, castToJsonText),
  // Core adds the time to a date, which fails for 24:00.
  time: withTextCast(TYPES.time, (time) => sql`pg_catalog.to_char(${time}::interval, 'HH24:MI:SS.US')`),
  // Core converts the time to the session's time zone, which changes it.
  timetz: withTextCast(TYPES.timetz, (time) => sql`${time}::pg_catalog.text`),
  interval: { ...TYPES.interval, fromPg: parseInterval } satisfies Codec,
};

/** timestamptz, and domains over it. */
export function isInstantCodec(codec: Codec): boolean {
  return baseCodecOf(codec) === TIME_CODECS.timestamptz;
}

function withTextCast<Time extends Codec>(codec: Time, asText: (time: SQL) => SQL): Time {
  return { ...codec, castFromPg: asText, listCastFromPg: castListItems(asText) };
}

/** `0000_00_02_00_00_-01.-99608`: the parts as to_char formats them, each with its own sign, which takes the place of a zero of the fraction. */
function parseInterval(text: string) {
  const [years, months, days, hours, minutes, seconds = ""] = text.split("_");
  const [whole = "", fraction = ""] = seconds.replaceAll("-", "").split(".");
  const size = Number(`${whole}.${fraction.padStart(6, "0")}`);
  return {
    years: Number(years),
    months: Number(months),
    days: Number(days),
    hours: Number(hours),
    minutes: Number(minutes),
    seconds: seconds.includes("-") ? -size : size,
  };
}

function castToJsonText(time: SQL): SQL {
  return sql`(pg_catalog.to_json(${time}) operator(pg_catalog.#>>) '{}')`;
}

/**
 * A time from Postgres in UTC, `2026-11-20T10:15:00.123Z`. Microseconds are kept, since a client may use the value as a bound of
 * a filter. Values that Date cannot hold (infinity) are returned unchanged.
 */
export function toIsoTime(text: string): string {
  const [, local, micros = "", zone, era] = POSTGRES_TIME.exec(text) ?? [];
  if (local === undefined || zone === undefined) return text;
  const utc = zone === "+00:00" && local.length === 19 && !era ? local : toUtc(local, zone, Boolean(era));
  if (utc === null) return text;
  const fraction = micros.padEnd(6, "0");
  return `${utc}.${fraction.endsWith("000") ? fraction.slice(0, 3) : fraction}Z`;
}

/** Years of more than four digits have a sign, as in ISO 8601. Null for a time that Date cannot hold. */
function toUtc(local: string, zone: string, isBeforeChrist: boolean): string | null {
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = local.split(/[-T:]/).map(Number);
  const [hours = 0, minutes = 0, seconds = 0] = zone.slice(1).split(":").map(Number);
  const ahead = (hours * 60 + minutes) * 60 + seconds;
  const time = new Date(0);
  time.setUTCFullYear(isBeforeChrist ? 1 - year : year, month - 1, day);
  time.setUTCHours(hour, minute, zone.startsWith("-") ? second + ahead : second - ahead);
  return Number.isNaN(time.getTime()) ? null : time.toISOString().slice(0, -5);
}

/** Converts a client's time to Postgres's format; null when it is neither ISO 8601 nor infinity. The default zone is UTC. */
export function parseIsoTime(text: string): string | null {
  if (INFINITE_TIME.test(text)) return text;
  const { date, time = "00:00", fraction = "", zone = "Z" } = ISO_8601.exec(text.trim())?.groups ?? {};
  if (date === undefined) return null;
  const { sign, year = "", rest } = /^(?<sign>[+-]?)(?<year>\d+)(?<rest>.*)$/s.exec(date)!.groups!;
  const isBeforeChrist = sign === "-" || Number(year) === 0;
  const paddedYear = String(isBeforeChrist ? Number(year) + 1 : Number(year)).padStart(4, "0");
  return `${paddedYear}${rest}T${time}${fraction}${zone}${isBeforeChrist ? " BC" : ""}`;
}
