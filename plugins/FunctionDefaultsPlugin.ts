import type {} from "postgraphile";
import { type PgResourceParameter, withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { gatherConfig } from "postgraphile/graphile-build";
import { constantOf } from "./sql-constant.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FunctionDefaultsPlugin: true;
    }
    interface GatherHelpers {
      functionDefaults: Record<string, never>;
    }
  }
  namespace DataplanPg {
    interface PgResourceParameterExtensions {
      /** What SQL takes when the argument is left out, where that is a constant. */
      default?: string | number | boolean;
    }
  }
}

const DEFAULTS = `
  select json_object_agg(
    pg_proc.oid,
    (
      select json_agg(pg_get_function_arg_default(pg_proc.oid, position) order by position)
      from generate_series(1, pronargs) as position
    )
  )::text as defaults
  from pg_catalog.pg_proc
  join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
  where nspname = any ($1::text[]) and pronargdefaults > 0`;

type Defaults = Readonly<Record<string, readonly (string | null)[]>>;

export const FunctionDefaultsPlugin: GraphileConfig.Plugin = {
  name: "FunctionDefaultsPlugin",
  description: "Reads the defaults of functions' parameters, which the introspection leaves out",
  gather: gatherConfig({
    namespace: "functionDefaults",
    helpers: {},
    initialState: (): { ofService: Map<string, Defaults> } => ({ ofService: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
        const settings = pgService.pgSettingsForIntrospection ?? null;
        const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
          client.query<{ defaults: string | null }>({ text: DEFAULTS, values: [pgService.schemas ?? ["public"]] }),
        );
        state.ofService.set(serviceName, JSON.parse(rows[0]?.defaults ?? "{}"));
      },
      pgProcedures_PgResourceOptions({ state }, { serviceName, pgProc, resourceOptions }) {
        const defaults = state.ofService.get(serviceName)?.[pgProc._id];
        const { parameters } = resourceOptions;
        if (!defaults || !parameters) return;
        resourceOptions.parameters = parameters.map((parameter, index) => withDefault(parameter, defaults[index]));
      },
    },
  }),
};

function withDefault(parameter: PgResourceParameter, expression: string | null | undefined): PgResourceParameter {
  const text = expression == null ? null : constantOf(expression);
  if (text === null || parameter.codec.attributes || parameter.codec.arrayOfCodec) return parameter;
  const value: unknown = parameter.codec.fromPg(text);
  if (!isPlain(value) || (INTEGER.test(parameter.codec.name) && !/^-?\d+$/.test(text))) return parameter;
  return { ...parameter, extensions: { ...parameter.extensions, default: value } };
}

const INTEGER = /^int[248]\b/;

/**
 * What is left out Postgres fills in. GraphQL cannot write every value: one such default, as `{}` of type jsonb, would make all
 * questions about the schema fail; and objects such as intervals are read from another spelling than that of a default.
 */
function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}
