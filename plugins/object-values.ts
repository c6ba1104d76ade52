import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { LINE_CODEC } from "./BuiltInTypesPlugin.ts";
import { baseCodecOf, TIME_CODECS } from "./codecs.ts";
import type { Codec } from "./table.ts";

/** A value of Postgres that GraphQL shows as an object: an interval, a range, a geometric value. */
export type ObjectValue = {
  /** Null: it always has a value. */
  readonly isNull: SQL | null;
  /** The members by the names of the fields. */
  readonly members: Readonly<Record<string, MemberValue>>;
};

type MemberValue =
  | { readonly kind: "leaf"; readonly value: SQL; readonly codec: Codec }
  | { readonly kind: "object"; readonly object: ObjectValue }
  | { readonly kind: "objects"; readonly from: SQL; readonly position: SQL; readonly item: ObjectValue };

/** Null if GraphQL shows values of the codec in another form. */
export function objectValueOf(value: SQL, codec: Codec): ObjectValue | null {
  const typed = sql`(${value}::${baseCodecOf(codec).sqlType})`;
  const isNull = sql`${value} is null`;
  const members = codec.rangeOfCodec ? rangeMembers(typed, codec.rangeOfCodec) : MEMBERS.get(codec.fromPg)?.(typed);
  return members ? { isNull, members } : null;
}

type Members = ObjectValue["members"];

const leaf = (value: SQL, codec: Codec): MemberValue => ({ kind: "leaf", value, codec });
const float = (value: SQL) => leaf(value, TYPES.float);
const point = (value: SQL): MemberValue => pointOf(sql`(${value})[0]`, sql`(${value})[1]`);

function pointOf(x: SQL, y: SQL): MemberValue {
  return { kind: "object", object: { isNull: null, members: { x: float(x), y: float(y) } } };
}

const MEMBERS: ReadonlyMap<unknown, (value: SQL) => Members> = new Map([
  [TIME_CODECS.interval.fromPg, intervalMembers],
  [TYPES.point.fromPg, (value: SQL): Members => ({ x: float(sql`${value}[0]`), y: float(sql`${value}[1]`) })],
  [TYPES.lseg.fromPg, twoPoints],
  [TYPES.box.fromPg, twoPoints],
  [LINE_CODEC.fromPg, lineMembers],
  [
    TYPES.circle.fromPg,
    (value: SQL): Members => ({
      center: point(sql`pg_catalog.center(${value})`),
      radius: float(sql`pg_catalog.radius(${value})`),
    }),
  ],
  [
    TYPES.path.fromPg,
    (value: SQL): Members => ({
      points: pointsOf(value),
      isOpen: leaf(sql`pg_catalog.isopen(${value})`, TYPES.boolean),
    }),
  ],
  [TYPES.polygon.fromPg, (value: SQL): Members => ({ points: pointsOf(value) })],
]);

/** The members of an interval. Infinity fails the statement, since it is not an integer. */
function intervalMembers(value: SQL): Members {
  return {
    years: leaf(sql`extract(year from ${value})`, TYPES.int),
    months: leaf(sql`extract(month from ${value})`, TYPES.int),
    days: leaf(sql`extract(day from ${value})`, TYPES.int),
    hours: leaf(sql`extract(hour from ${value})`, TYPES.int),
    minutes: leaf(sql`extract(minute from ${value})`, TYPES.int),
    seconds: float(sql`extract(second from ${value})`),
  };
}

function twoPoints(value: SQL): Members {
  return { a: point(sql`${value}[0]`), b: point(sql`${value}[1]`) };
}

/** Two points, as in the codec of lines: the point nearest to the origin, and another point. */
function lineMembers(value: SQL): Members {
  const [a, b, c] = [sql`${value}[0]`, sql`${value}[1]`, sql`${value}[2]`];
  const square = sql`(${a} * ${a} + ${b} * ${b})`;
  const [x, y] = [sql`((-${a} * ${c}) / ${square})`, sql`((-${b} * ${c}) / ${square})`];
  return { a: pointOf(x, y), b: pointOf(sql`(${x} - ${b})`, sql`(${y} + ${a})`) };
}

/** Postgres has no function for the points of a path or polygon. */
function pointsOf(value: SQL): MemberValue {
  const [coordinates, index] = [sql.identifier(Symbol("coordinates")), sql.identifier(Symbol("index"))];
  const x = sql`${coordinates}."all"[2 * ${index} - 1]`;
  const y = sql`${coordinates}."all"[2 * ${index}]`;
  return {
    kind: "objects",
    from: sql`(select pg_catalog.string_to_array(pg_catalog.translate(${value}::pg_catalog.text, '()[]', ''), ',')::pg_catalog.float8[] as "all") as ${coordinates},
      pg_catalog.generate_series(1, pg_catalog.npoints(${value})) as ${index}`,
    position: index,
    item: { isNull: null, members: { x: float(x), y: float(y) } },
  };
}

/** A bound is null in an empty range, and where there is none. */
function rangeMembers(range: SQL, codec: Codec): Members {
  const bound = (value: SQL, isInclusive: SQL): MemberValue => ({
    kind: "object",
    object: {
      isNull: sql`${value} is null`,
      members: { value: leaf(value, codec), inclusive: leaf(isInclusive, TYPES.boolean) },
    },
  });
  return {
    start: bound(sql`pg_catalog.lower(${range})`, sql`pg_catalog.lower_inc(${range})`),
    end: bound(sql`pg_catalog.upper(${range})`, sql`pg_catalog.upper_inc(${range})`),
  };
}
