import type {} from "postgraphile";
import { TYPES, withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { gatherConfig } from "postgraphile/graphile-build";
import { parseExactly } from "../engine/exact-json.ts";
import { castEach } from "./list-cast.ts";
import type { Codec } from "./table.ts";

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
const TYPES_WITH_CAST = `
  select castsource::text as oid from pg_catalog.pg_cast join pg_catalog.pg_type on pg_type.oid = castsource
  where casttarget = 'json'::regtype and castmethod = 'f' and typtype = 'b'`;

type State = { readonly ofService: Map<string, ReadonlySet<string>> };

const made = new WeakSet<Codec>();

/** Such as geometry, which is GeoJSON then, as in the other interfaces. */
export const JsonCastsPlugin: GraphileConfig.Plugin = {
  name: "JsonCastsPlugin",
  description: "Types of extensions that have a cast to json are JSON",
  after: ["PgCodecsPlugin"],
  before: ["OtherTypesPlugin"],
  gather: gatherConfig({
    namespace: "jsonCasts",
    helpers: {},
    initialState: (): State => ({ ofService: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
        const settings = pgService.pgSettingsForIntrospection ?? null;
        const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
          client.query<{ oid: string }>({ text: TYPES_WITH_CAST }),
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
          castFromPg: asJson,
          listCastFromPg: castEach(asJson),
          fromPg: parseExactly,
          // Its input function reads texts of its own, and JSON where it knows any.
          toPg: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
          extensions: { oid: pgType._id, pg: { serviceName, schemaName: schema.nspname, name: pgType.typname } },
        };
        made.add(event.pgCodec);
      },
    },
  }),
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const ours = build.allPgCodecs.values().filter((codec) => made.has(codec));
          for (const codec of ours) {
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], build.inflection.builtin("JSON"));
          }
          return _;
        },
      },
    },
  },
};

function asJson(value: SQL): SQL {
  return sql`(${value}::json)::text`;
}
