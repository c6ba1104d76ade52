import { TYPES, withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { gatherConfig } from "postgraphile/graphile-build";
import { parseJsonExactly } from "../engine/json/json-values.ts";
import { castListItems } from "./codecs.ts";
import type { Codec } from "./table.ts";

/** Base types, as extensions bring them, and multiranges. */
const TEXT_TYPE_KINDS: ReadonlySet<string | null> = new Set(["b", "m"]);

const textCodecs = new WeakSet<Codec>();

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
        if (event.pgCodec || !schema || isArray || !TEXT_TYPE_KINDS.has(pgType.typtype)) return;
        event.pgCodec = {
          ...TYPES.text,
          name: inflection.typeCodecName({ pgType, serviceName }),
          sqlType: sql.identifier(schema.nspname, pgType.typname),
          castFromPg: (value) => sql`${value}::text`,
          extensions: { oid: pgType._id, pg: { serviceName, schemaName: schema.nspname, name: pgType.typname } },
        };
        textCodecs.add(event.pgCodec);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const ours = build.allPgCodecs.values().filter((codec) => textCodecs.has(codec));
          for (const codec of ours) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "String");
          return _;
        },
      },
    },
  },
};

declare global {
  namespace GraphileConfig {
    interface Plugins {
      JsonCastsPlugin: true;
    }
    interface GatherHelpers {
      jsonCasts: Record<string, never>;
    }
  }
}

/** By the rule of to_json. */
const READ_JSON_CAST_TYPES = `
  select castsource::text as oid from pg_catalog.pg_cast join pg_catalog.pg_type on pg_type.oid = castsource
  where casttarget = 'json'::regtype and castmethod = 'f' and typtype = 'b'`;

type JsonCastsState = { readonly ofService: Map<string, ReadonlySet<string>> };

const jsonCodecs = new WeakSet<Codec>();

/** Such as geometry, which is GeoJSON then, as in the other interfaces. */
export const JsonCastsPlugin: GraphileConfig.Plugin = {
  name: "JsonCastsPlugin",
  description: "Types of extensions that have a cast to json are JSON",
  after: ["PgCodecsPlugin"],
  before: ["OtherTypesPlugin"],
  gather: gatherConfig({
    namespace: "jsonCasts",
    helpers: {},
    initialState: (): JsonCastsState => ({ ofService: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
        const settings = pgService.pgSettingsForIntrospection ?? null;
        const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
          client.query<{ oid: string }>({ text: READ_JSON_CAST_TYPES }),
        );
        state.ofService.set(serviceName, new Set(rows.map(({ oid }) => oid)));
      },
      pgCodecs_findPgCodec({ state, inflection }, event) {
        const { pgType, serviceName } = event;
        const schema = pgType.getNamespace();
        if (event.pgCodec || !schema || !state.ofService.get(serviceName)?.has(pgType._id)) return;
        event.pgCodec = {
          ...TYPES.json,
          name: inflection.typeCodecName({ pgType, serviceName }),
          sqlType: sql.identifier(schema.nspname, pgType.typname),
          castFromPg: castToJson,
          listCastFromPg: castListItems(castToJson),
          fromPg: parseJsonExactly,
          // Its input function reads texts of its own, and JSON where it knows any.
          toPg: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
          extensions: { oid: pgType._id, pg: { serviceName, schemaName: schema.nspname, name: pgType.typname } },
        };
        jsonCodecs.add(event.pgCodec);
      },
    },
  }),
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const ours = build.allPgCodecs.values().filter((codec) => jsonCodecs.has(codec));
          for (const codec of ours) {
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], build.inflection.builtin("JSON"));
          }
          return _;
        },
      },
    },
  },
};

function castToJson(value: SQL): SQL {
  return sql`(${value}::json)::text`;
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OtherTypesPlugin: true;
    }
  }
}
