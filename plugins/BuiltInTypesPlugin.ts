import { listOfCodec, TYPES } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { castListItems } from "./codecs.ts";
import type { Codec } from "./table.ts";

const LINE_CODEC = { ...TYPES.line, fromPg: parseLine } satisfies Codec;
const LINE_CODECS: Readonly<Record<string, Codec>> = {
  line: LINE_CODEC,
  _line: listOfCodec(LINE_CODEC, { name: "line[]" }),
};

export const LinePlugin: GraphileConfig.Plugin = {
  name: "LinePlugin",
  description:
    "A line is told by two of its points; core tells another one if it is level, upright or through the origin",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec(_info, event) {
        const { typname } = event.pgType;
        if (event.pgCodec || event.pgType.getNamespace()?.nspname !== "pg_catalog") return;
        event.pgCodec = LINE_CODECS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const name = build.inflection.builtin("Line");
          build.setGraphQLTypeForPgCodec(LINE_CODEC, "output", name);
          build.setGraphQLTypeForPgCodec(LINE_CODEC, "input", build.inflection.inputType(name));
          return _;
        },
      },
    },
  },
};

/** Core asks for the bounds of ranges of times and days one by one, and shows null as a range that has none. */
export const RangesPlugin: GraphileConfig.Plugin = {
  name: "RangesPlugin",
  description: "A range that is null is null",
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgCodec }) {
        const { rangeOfCodec, domainOfCodec, castFromPg } = pgCodec;
        if (!rangeOfCodec || domainOfCodec || !castFromPg) return;
        const cast = (range: SQL) => sql`(case when ${range} is null then null else ${castFromPg(range)} end)`;
        pgCodec.castFromPg = cast;
        pgCodec.listCastFromPg = castListItems(cast);
      },
    },
  },
};

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
const PLAIN_CODECS = {
  money: withoutCasts(TYPES.money),
  tsvector: withoutCasts(TYPES.tsvector),
  tsquery: withoutCasts(TYPES.tsquery),
  bpchar: { ...TYPES.bpchar, castFromPg: (value: SQL) => sql`textin(bpcharout(${value}))` },
} satisfies Readonly<Record<string, Codec>>;

const PLAIN_LIST_CODECS: Readonly<Record<string, Codec>> = {
  _money: listOfCodec(PLAIN_CODECS.money, { name: "money[]" }),
  _tsvector: listOfCodec(PLAIN_CODECS.tsvector, { name: "tsvector[]" }),
  _tsquery: listOfCodec(PLAIN_CODECS.tsquery, { name: "tsquery[]" }),
  _bpchar: listOfCodec(PLAIN_CODECS.bpchar, { name: "bpchar[]" }),
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
        event.pgCodec =
          (PLAIN_CODECS as Readonly<Record<string, Codec>>)[typname] ?? PLAIN_LIST_CODECS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const { inflection } = build;
          for (const codec of [PLAIN_CODECS.money, PLAIN_CODECS.bpchar])
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "String");
          build.setGraphQLTypeForPgCodec(PLAIN_CODECS.tsvector, ["input", "output"], inflection.builtin("TSVector"));
          build.setGraphQLTypeForPgCodec(PLAIN_CODECS.tsquery, ["input", "output"], inflection.builtin("TSQuery"));
          return _;
        },
      },
    },
  },
};

/** Without a cast of its own a value comes as text. */
function withoutCasts<Type extends Codec>({ castFromPg: _, listCastFromPg: __, ...codec }: Type) {
  return codec;
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LinePlugin: true;
    }
  }
}

/** `{A,B,C}`, where Ax + By + C = 0: the point next to the origin, and one further along. */
function parseLine(text: string) {
  const [a = 0, b = 0, c = 0] = text.slice(1, -1).split(",").map(Number);
  const square = a * a + b * b;
  const [x, y] = [(-a * c) / square, (-b * c) / square];
  return { a: { x, y }, b: { x: x - b, y: y + a } };
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      RangesPlugin: true;
    }
  }
}
