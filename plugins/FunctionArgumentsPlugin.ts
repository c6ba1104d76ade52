import type { PgResourceParameter, PgSelectArgumentDigest } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { GraphQLArgumentConfig } from "grafast/graphql";
import { gatherConfig } from "graphile-build";
import { pgServiceOf, queryWhileGathering } from "./gather-query.ts";
import { deprecationReasonOfPart, withNonNullItems } from "./graphql-types.ts";
import type { SchemaResource } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface GatherHelpers {
      functionArguments: Record<string, never>;
    }
  }
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `limit Use first.`: a deprecated argument and the reason. */
      deprecatedArgument: string | string[];
    }
  }
  namespace DataplanPg {
    interface PgResourceParameterExtensions {
      /** The parameter's default, if it is a constant. */
      default?: string | number | boolean;
    }
  }
}

const READ_DEFAULTS = `
  select pg_catalog.json_object_agg(
    pg_proc.oid,
    pg_catalog.json_build_object(
      'expressions', (
        select pg_catalog.json_agg(pg_catalog.pg_get_function_arg_default(pg_proc.oid, position) order by position)
        from pg_catalog.generate_series(1, pronargs) as position
      ),
      'isOverloaded', exists (
        select from pg_catalog.pg_proc as other
        where other.pronamespace operator(pg_catalog.=) pg_proc.pronamespace and other.proname operator(pg_catalog.=) pg_proc.proname and other.oid operator(pg_catalog.<>) pg_proc.oid
      )
    )
  )::pg_catalog.text as defaults
  from pg_catalog.pg_proc
  join pg_catalog.pg_namespace on pg_namespace.oid operator(pg_catalog.=) pronamespace
  where nspname operator(pg_catalog.=) any ($1::pg_catalog.text[]) and pronargdefaults operator(pg_catalog.>) 0`;

const INTEGER_TYPE = /^int[248]\b/;

export const FunctionArgumentsPlugin: GraphileConfig.Plugin = {
  name: "FunctionArgumentsPlugin",
  description:
    "Arguments of functions have SQL's defaults, which core does not read, and deprecations; their lists have no null items",
  gather: gatherConfig({
    namespace: "functionArguments",
    helpers: {},
    initialState: (): { defaults: Map<string, DefaultsByFunction> } => ({ defaults: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = pgServiceOf(resolvedPreset, serviceName);
        const schemas = pgService.schemas ?? ["public"];
        const rows = await queryWhileGathering<{ defaults: string | null }>(pgService, READ_DEFAULTS, [schemas]);
        state.defaults.set(serviceName, JSON.parse(rows[0]?.defaults ?? "{}"));
      },
      pgProcedures_PgResourceOptions({ state }, { serviceName, pgProc, resourceOptions }) {
        const defaults = state.defaults.get(serviceName)?.[pgProc._id];
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

type ParameterDefaults = { readonly expressions: readonly (string | null)[]; readonly isOverloaded: boolean };
type DefaultsByFunction = Readonly<Record<string, ParameterDefaults>>;

type ArgumentDetailsOf = GraphileBuild.Build["pgGetArgDetailsFromParameters"];

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
    // GraphQL does not allow required arguments to be deprecated.
    ...(reason !== undefined && argument.optional && { deprecationReason: reason }),
  };
}

type FunctionFrom = (...provided: readonly PgSelectArgumentDigest[]) => SQL;

/** Passes defaults explicitly: if an argument were omitted, Postgres would call the overload with fewer parameters. */
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
    return [{ ...(name && { name }), placeholder: sql`(${expressionOfCatalogue(expression)})` }];
  });
  return [
    ...positional,
    ...filled.filter(({ name }) => !name),
    ...named.values(),
    ...filled.filter(({ name }) => name),
  ];
}

/** SQL as Postgres has written it. `sql.raw` would log a warning, as it cannot know the origin of its text. */
function expressionOfCatalogue(text: string): SQL {
  const strings = [text];
  return sql(Object.assign(strings, { raw: strings }));
}

function exposeDefault(parameter: PgResourceParameter, expression: string | null | undefined): PgResourceParameter {
  const text = expression == null ? null : parseSqlConstant(expression);
  if (text === null || parameter.codec.attributes || parameter.codec.arrayOfCodec) return parameter;
  const value: unknown = parameter.codec.fromPg(text);
  if (!isPlainValue(value) || (INTEGER_TYPE.test(parameter.codec.name) && !/^-?\d+$/.test(text))) return parameter;
  return { ...parameter, extensions: { ...parameter.extensions, default: value } };
}

/**
 * Postgres fills in omitted arguments, so showing a default is optional. GraphQL cannot print every value: a default such as `{}` of
 * type jsonb would make introspection fail, and objects such as intervals have another input format than the default's.
 */
function isPlainValue(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

/** The text of a constant (`'DRAFT'::article_status`, `5`, `true`); null for other expressions, such as now(). */
export function parseSqlConstant(expression: string): string | null {
  const quoted = /^'((?:[^'\\]|'')*)'(?:::[\w\s."[\]]+(?:\([\d,]+\))?)?$/.exec(expression);
  if (quoted) return quoted[1]!.replaceAll("''", "'");
  return /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(expression) ? expression : null;
}
