import type {} from "postgraphile";
import { listOfCodec, TYPES } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PlainTypesPlugin: true;
    }
  }
}

/**
 * Of core's they are no more: it hides tsvector and tsquery, makes money a number, which loses digits, and reads char(n) in rows
 * within rows by a cast to text, which loses its blanks.
 */
const PLAIN = {
  money: plain(TYPES.money),
  tsvector: plain(TYPES.tsvector),
  tsquery: plain(TYPES.tsquery),
  bpchar: { ...TYPES.bpchar, castFromPg: (value: SQL) => sql`textin(bpcharout(${value}))` },
} satisfies Readonly<Record<string, Codec>>;

const LISTS: Readonly<Record<string, Codec>> = {
  _money: listOfCodec(PLAIN.money, { name: "money[]" }),
  _tsvector: listOfCodec(PLAIN.tsvector, { name: "tsvector[]" }),
  _tsquery: listOfCodec(PLAIN.tsquery, { name: "tsquery[]" }),
  _bpchar: listOfCodec(PLAIN.bpchar, { name: "bpchar[]" }),
};

export const PlainTypesPlugin: GraphileConfig.Plugin = {
  name: "PlainTypesPlugin",
  description: "money, tsvector, tsquery and char(n) are texts, as Postgres writes them",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec(_info, event) {
        const { typname } = event.pgType;
        if (event.pgCodec || event.pgType.getNamespace()?.nspname !== "pg_catalog") return;
        event.pgCodec = (PLAIN as Readonly<Record<string, Codec>>)[typname] ?? LISTS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const { inflection } = build;
          for (const codec of [PLAIN.money, PLAIN.bpchar])
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "String");
          build.setGraphQLTypeForPgCodec(PLAIN.tsvector, ["input", "output"], inflection.builtin("TSVector"));
          build.setGraphQLTypeForPgCodec(PLAIN.tsquery, ["input", "output"], inflection.builtin("TSQuery"));
          return _;
        },
      },
    },
  },
};

/** Without a cast of its own a value comes as text. */
function plain<Type extends Codec>({ castFromPg: _, listCastFromPg: __, ...codec }: Type) {
  return codec;
}
