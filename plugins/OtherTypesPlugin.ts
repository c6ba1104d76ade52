import type {} from "postgraphile";
import { TYPES } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OtherTypesPlugin: true;
    }
  }
}

/** Base types, as extensions bring them, and multiranges. */
const WRITTEN_AS_TEXT: ReadonlySet<string | null> = new Set(["b", "m"]);

const made = new WeakSet<Codec>();

/** Core would leave such columns out. */
export const OtherTypesPlugin: GraphileConfig.Plugin = {
  name: "OtherTypesPlugin",
  description: "What core has no type for is a String, as Postgres writes it",
  after: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec({ inflection }, event) {
        const { pgType, serviceName } = event;
        const schema = pgType.getNamespace();
        // int2vector is no array of int2, though it is of the category.
        const isArray = pgType.getElemType()?.typarray === pgType._id;
        if (event.pgCodec || !schema || isArray || !WRITTEN_AS_TEXT.has(pgType.typtype)) return;
        event.pgCodec = {
          ...TYPES.text,
          name: inflection.typeCodecName({ pgType, serviceName }),
          sqlType: sql.identifier(schema.nspname, pgType.typname),
          castFromPg: (value) => sql`${value}::text`,
          extensions: { oid: pgType._id, pg: { serviceName, schemaName: schema.nspname, name: pgType.typname } },
        };
        made.add(event.pgCodec);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const ours = build.allPgCodecs.values().filter((codec) => made.has(codec));
          for (const codec of ours) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "String");
          return _;
        },
      },
    },
  },
};
