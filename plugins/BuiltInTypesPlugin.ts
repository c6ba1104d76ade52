import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { castListItems, findBuiltInCodec, showAsObject, showAsScalar } from "./codecs.ts";
import type { Codec } from "./table.ts";

/**
 * Core hides tsvector and tsquery, makes money a number, which loses digits, reads char(n) within nested rows by a cast to text, which
 * loses its padding, and returns a wrong second point for lines that are level, upright or through the origin.
 */
const CODECS = {
  money: withoutCasts(TYPES.money),
  tsvector: withoutCasts(TYPES.tsvector),
  tsquery: withoutCasts(TYPES.tsquery),
  bpchar: { ...TYPES.bpchar, castFromPg: (value: SQL) => sql`pg_catalog.textin(pg_catalog.bpcharout(${value}))` },
  line: { ...TYPES.line, fromPg: parseLine },
} satisfies Readonly<Record<string, Codec>>;

export const LINE_CODEC: Codec = CODECS.line;

export const BuiltInTypesPlugin: GraphileConfig.Plugin = {
  name: "BuiltInTypesPlugin",
  description:
    "money, tsvector, tsquery and char(n) are texts as Postgres writes them; a line is two of its points; a null range is null",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec: findBuiltInCodec(CODECS),
      pgCodecs_PgCodec: (_info, { pgCodec }) => keepNullRanges(pgCodec),
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          showAsScalar(build, CODECS.money, "String");
          showAsScalar(build, CODECS.bpchar, "String");
          showAsScalar(build, CODECS.tsvector, "TSVector");
          showAsScalar(build, CODECS.tsquery, "TSQuery");
          showAsObject(build, CODECS.line, "Line");
          return _;
        },
      },
    },
  },
};

/** A value whose codec has no cast is read as text. */
function withoutCasts<Type extends Codec>({ castFromPg: _, listCastFromPg: __, ...codec }: Type) {
  return codec;
}

/** `{A,B,C}`, where Ax + By + C = 0. Returns the point nearest to the origin, and another point. */
function parseLine(text: string) {
  const [a = 0, b = 0, c = 0] = text.slice(1, -1).split(",").map(Number);
  const square = a * a + b * b;
  const [x, y] = [(-a * c) / square, (-b * c) / square];
  return { a: { x, y }, b: { x: x - b, y: y + a } };
}

/** Core selects the bounds of a range one by one, which turns null into a range without bounds. */
function keepNullRanges(codec: Codec): void {
  const { rangeOfCodec, domainOfCodec, castFromPg } = codec;
  if (!rangeOfCodec || domainOfCodec || !castFromPg) return;
  const cast = (range: SQL) => sql`(case when ${range} is null then null else ${castFromPg(range)} end)`;
  codec.castFromPg = cast;
  codec.listCastFromPg = castListItems(cast);
}
