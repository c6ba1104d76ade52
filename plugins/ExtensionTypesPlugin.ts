import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { gatherConfig } from "graphile-build";
import type { PgType } from "graphile-build-pg/pg-introspection";
import { parseJsonExactly } from "../engine/json/json-values.ts";
import { castListItems } from "./codecs.ts";
import { pgServiceOf, queryWhileGathering } from "./gather-query.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ExtensionTypesPlugin: true;
    }
    interface GatherHelpers {
      extensionTypes: Record<string, never>;
    }
  }
}

/** The same rule as to_json: only casts by a function count. */
const JSON_CAST_TYPES = `
  select castsource::text as oid from pg_catalog.pg_cast join pg_catalog.pg_type on pg_type.oid = castsource
  where casttarget = 'json'::regtype and castmethod = 'f' and typtype = 'b'`;

/** Base types and multiranges. */
const TEXT_TYPE_KINDS: ReadonlySet<string | null> = new Set(["b", "m"]);

/** By service: the oids of types that have a cast to json. */
type ExtensionTypesState = { readonly castToJson: Map<string, ReadonlySet<string>> };

const jsonCodecs = new WeakSet<Codec>();
const textCodecs = new WeakSet<Codec>();

/** Core omits columns of such types. */
export const ExtensionTypesPlugin: GraphileConfig.Plugin = {
  name: "ExtensionTypesPlugin",
  description:
    "Types that core does not know, such as those of extensions, are JSON where they have a cast to json (geometry as GeoJSON), else String",
  after: ["PgCodecsPlugin"],
  gather: gatherConfig({
    namespace: "extensionTypes",
    helpers: {},
    initialState: (): ExtensionTypesState => ({ castToJson: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = pgServiceOf(resolvedPreset, serviceName);
        const rows = await queryWhileGathering<{ oid: string }>(pgService, JSON_CAST_TYPES);
        state.castToJson.set(serviceName, new Set(rows.map(({ oid }) => oid)));
      },
      pgCodecs_findPgCodec({ state, inflection }, event) {
        const { pgType, serviceName } = event;
        const schemaName = pgType.getNamespace()?.nspname;
        if (event.pgCodec || schemaName === undefined) return;
        const identity = {
          name: inflection.typeCodecName({ pgType, serviceName }),
          sqlType: sql.identifier(schemaName, pgType.typname),
          extensions: { oid: pgType._id, pg: { serviceName, schemaName, name: pgType.typname } },
        };
        if (state.castToJson.get(serviceName)?.has(pgType._id)) {
          event.pgCodec = { ...TYPES.json, ...JSON_CONVERSIONS, ...identity };
          jsonCodecs.add(event.pgCodec);
        } else if (isShownAsText(pgType)) {
          event.pgCodec = { ...TYPES.text, castFromPg: (value) => sql`${value}::text`, ...identity };
          textCodecs.add(event.pgCodec);
        }
      },
    },
  }),
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const json = build.inflection.builtin("JSON");
          for (const codec of build.allPgCodecs as ReadonlySet<Codec>) {
            const typeName = jsonCodecs.has(codec) ? json : textCodecs.has(codec) ? "String" : null;
            if (typeName) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], typeName);
          }
          return _;
        },
      },
    },
  },
};

const JSON_CONVERSIONS = {
  castFromPg: castToJson,
  listCastFromPg: castListItems(castToJson),
  fromPg: parseJsonExactly,
  // The type's input function reads its own text format, and JSON only where it knows any.
  toPg: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
} satisfies Partial<Codec>;

function castToJson(value: SQL): SQL {
  return sql`(${value}::json)::text`;
}

function isShownAsText(pgType: PgType): boolean {
  // int2vector has the category of arrays and is none.
  const isArray = pgType.getElemType()?.typarray === pgType._id;
  return !isArray && TEXT_TYPE_KINDS.has(pgType.typtype);
}
