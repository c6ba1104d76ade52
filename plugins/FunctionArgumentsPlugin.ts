import {
  type PgResourceParameter,
  type PgSelectArgumentDigest,
  withPgClientFromPgService,
} from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { gatherConfig } from "postgraphile/graphile-build";
import type { GraphQLArgumentConfig } from "postgraphile/graphql";
import { deprecationReasonOfPart, withNonNullItems } from "./graphql-types.ts";
import type { SchemaResource } from "./table.ts";

const READ_DEFAULTS = `
  select json_object_agg(
    pg_proc.oid,
    json_build_object(
      'expressions', (
        select json_agg(pg_get_function_arg_default(pg_proc.oid, position) order by position)
        from generate_series(1, pronargs) as position
      ),
      'isOverloaded', exists (
        select from pg_catalog.pg_proc as other
        where other.pronamespace = pg_proc.pronamespace and other.proname = pg_proc.proname and other.oid <> pg_proc.oid
      )
    )
  )::text as defaults
  from pg_catalog.pg_proc
  join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
  where nspname = any ($1::text[]) and pronargdefaults > 0`;

export const FunctionDefaultsPlugin: GraphileConfig.Plugin = {
  name: "FunctionDefaultsPlugin",
  description: "Reads the defaults of functions' parameters, which the introspection leaves out",
  gather: gatherConfig({
    namespace: "functionDefaults",
    helpers: {},
    initialState: (): { ofService: Map<string, DefaultsByFunction> } => ({ ofService: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
        const settings = pgService.pgSettingsForIntrospection ?? null;
        const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
          client.query<{ defaults: string | null }>({ text: READ_DEFAULTS, values: [pgService.schemas ?? ["public"]] }),
        );
        state.ofService.set(serviceName, JSON.parse(rows[0]?.defaults ?? "{}"));
      },
      pgProcedures_PgResourceOptions({ state }, { serviceName, pgProc, resourceOptions }) {
        const defaults = state.ofService.get(serviceName)?.[pgProc._id];
        const { parameters } = resourceOptions;
        if (!defaults || !parameters) return;
        const { expressions, isOverloaded } = defaults;
        if (isOverloaded) {
          const from = resourceOptions.from as FunctionFrom;
          resourceOptions.from = (...provided) => from(...fillDefaults(provided, parameters, expressions));
        }
        resourceOptions.parameters = parameters.map((parameter, index) => exposeDefault(parameter, expressions[index]));
      },
    },
  }),
};

const INTEGER_TYPE = /^int[248]\b/;

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FunctionArgumentsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `limit Use first.`: an argument that clients should stop sending, and why. */
      deprecatedArgument: string | string[];
    }
  }
}

type ArgumentDetailsOf = GraphileBuild.Build["pgGetArgDetailsFromParameters"];

export const FunctionArgumentsPlugin: GraphileConfig.Plugin = {
  name: "FunctionArgumentsPlugin",
  description: "Arguments of functions show SQL's defaults and deprecations; their lists have no holes",
  schema: {
    hooks: {
      build: {
        after: ["PgCustomTypeFieldPlugin"],
        callback(build) {
          build.pgGetArgDetailsFromParameters = withArgumentConfigs(build.pgGetArgDetailsFromParameters!);
          return build;
        },
      },
    },
  },
};

function withArgumentConfigs(detailsOf: ArgumentDetailsOf): ArgumentDetailsOf {
  return (resource, parameters = resource.parameters, offset = 0) => {
    const details = detailsOf(resource, parameters, offset);
    const described = details.argDetails.map((argument, index) => [
      argument.graphqlArgName,
      toArgumentConfig(resource, (parameters as readonly PgResourceParameter[])[offset + index]!, argument),
    ]);
    return { ...details, makeFieldArgs: () => Object.fromEntries(described) };
  };
}

type ArgumentDetail = ReturnType<ArgumentDetailsOf>["argDetails"][number];

function toArgumentConfig(
  resource: SchemaResource,
  { extensions }: PgResourceParameter,
  argument: ArgumentDetail,
): GraphQLArgumentConfig {
  const reason = deprecationReasonOfPart(resource.extensions?.tags?.deprecatedArgument, argument.graphqlArgName);
  return {
    type: withNonNullItems(argument.inputType),
    ...(extensions?.default !== undefined && { defaultValue: extensions.default }),
    // GraphQL does not let what is required be deprecated.
    ...(reason !== undefined && argument.optional && { deprecationReason: reason }),
  };
}

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

type ParameterDefaults = { readonly expressions: readonly (string | null)[]; readonly isOverloaded: boolean };
type DefaultsByFunction = Readonly<Record<string, ParameterDefaults>>;

type FunctionFrom = (...provided: readonly PgSelectArgumentDigest[]) => SQL;

/** Postgres would take what is left out for a call of another function of that name, which takes fewer arguments. */
function fillDefaults(
  provided: readonly PgSelectArgumentDigest[],
  parameters: readonly PgResourceParameter[],
  expressions: readonly (string | null)[],
): PgSelectArgumentDigest[] {
  const named = new Map(provided.flatMap((digest) => (digest.name ? [[digest.name, digest]] : [])));
  const positional = provided.filter(({ name }) => !name);
  const filled = parameters.flatMap(({ name }, index): PgSelectArgumentDigest[] => {
    const expression = expressions[index];
    if (index < positional.length || expression == null || (name && named.has(name))) return [];
    return [{ ...(name && { name }), placeholder: sql`(${sql.raw(expression)})` }];
  });
  return [
    ...positional,
    ...filled.filter(({ name }) => !name),
    ...named.values(),
    ...filled.filter(({ name }) => name),
  ];
}

function exposeDefault(parameter: PgResourceParameter, expression: string | null | undefined): PgResourceParameter {
  const text = expression == null ? null : parseSqlConstant(expression);
  if (text === null || parameter.codec.attributes || parameter.codec.arrayOfCodec) return parameter;
  const value: unknown = parameter.codec.fromPg(text);
  if (!isPlainValue(value) || (INTEGER_TYPE.test(parameter.codec.name) && !/^-?\d+$/.test(text))) return parameter;
  return { ...parameter, extensions: { ...parameter.extensions, default: value } };
}

/**
 * What is left out Postgres fills in. GraphQL cannot write every value: one such default, as `{}` of type jsonb, would make all
 * questions about the schema fail; and objects such as intervals are read from another spelling than that of a default.
 */
function isPlainValue(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

/** `'DRAFT'::article_status`, `5`, `true`: the text of the value; null for what is no constant, such as now(). */
export function parseSqlConstant(expression: string): string | null {
  const quoted = /^'((?:[^'\\]|'')*)'(?:::[\w\s."[\]]+(?:\([\d,]+\))?)?$/.exec(expression);
  if (quoted) return quoted[1]!.replaceAll("''", "'");
  return /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(expression) ? expression : null;
}
