import { type PgResourceParameter, TYPES } from "@dataplan/pg";
import type { GrafastFieldConfig, Step } from "grafast";
import { GraphQLBoolean, GraphQLList, GraphQLNonNull, type GraphQLOutputType } from "grafast/graphql";
import { functionArgumentsOf, withSource } from "./field-sources.ts";
import { isSignUp } from "./function-call.ts";
import { deprecationReasonOf } from "./graphql-types.ts";
import { mayHoldNulls, outputTypeOf, type SchemaResource, sqlNameOf } from "./table.ts";
import { mayExecute, withVisibility } from "./VisibilityPlugin.ts";

declare global {
  namespace GraphileBuild {
    interface BehaviorStrings {
      "function:mutationField": true;
    }
    interface PgResourceTags {
      /** The mutation's result may be null; it is non-null otherwise. */
      nullable: true;
    }
  }
}

/** The parameter that becomes an argument; all others become fields of the input. */
const ID_PARAMETER = "id";

export const FunctionMutationsPlugin: GraphileConfig.Plugin = {
  name: "FunctionMutationsPlugin",
  description:
    "update_thing(id, title, …) is updateThing(id, input: {title, …}), and returns what the function returns",
  schema: {
    behaviorRegistry: {
      add: {
        "function:mutationField": { description: "is this function a mutation?", entities: ["pgResource"] },
      },
    },
    entityBehavior: {
      pgResource: {
        inferred: {
          after: ["postInferred"],
          provides: ["functionMutations"],
          callback(behavior, resource, { behavior: { stringMatches } }) {
            if (!resource.parameters || !stringMatches(behavior, "mutationField")) return behavior;
            return [behavior, "-mutationField", ...(takesRow(resource) ? [] : (["function:mutationField"] as const))];
          },
        },
      },
    },
    hooks: {
      init(_, build) {
        for (const resource of functionMutationsOf(build).filter(hasInput)) {
          const { inflection } = build;
          build.registerInputObjectType(
            inflection.customMutationInput({ resource }),
            { isMutationInput: true },
            () => ({
              description: `The input of ${inflection.customMutationField({ resource })}.`,
              fields: () => argumentsOf(build, resource).input,
            }),
            `the function ${sqlNameOf(resource)}`,
          );
        }
        return _;
      },
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        if (!scope.isRootMutation) return fields;
        return functionMutationsOf(build).reduce((all, resource) => {
          const fieldName = build.inflection.customMutationField({ resource });
          const field = fieldWithHooks({ fieldName }, () =>
            withVisibility(functionMutationField(build, resource), mayExecute(resource)),
          );
          return build.extend(all, { [fieldName]: field }, `the function ${sqlNameOf(resource)}`);
        }, fields);
      },
    },
  },
};

/** The functions that are mutations. */
export function functionMutationsOf({ behavior, pgResources }: GraphileBuild.Build): SchemaResource[] {
  return (Object.values(pgResources) as SchemaResource[]).filter((resource) =>
    behavior.pgResourceMatches(resource, "function:mutationField"),
  );
}

/** True for an action on a row, for which a client has only the id. */
function takesRow({ parameters }: SchemaResource): boolean {
  return Boolean(parameters[0]?.codec.extensions?.isTableLike);
}

function hasInput({ parameters }: SchemaResource): boolean {
  return parameters.some(({ name }: PgResourceParameter) => name !== ID_PARAMETER);
}

function argumentsOf(build: GraphileBuild.Build, resource: SchemaResource) {
  const { [ID_PARAMETER]: id, ...input } = build.pgGetArgDetailsFromParameters(resource).makeFieldArgs();
  return { id, input };
}

function functionMutationField(build: GraphileBuild.Build, resource: SchemaResource): GrafastFieldConfig<Step> {
  const { id } = argumentsOf(build, resource);
  const input = hasInput(resource) && build.getInputTypeByName(build.inflection.customMutationInput({ resource }));
  const deprecationReason = deprecationReasonOf(resource.extensions?.tags?.deprecated);
  const field: GrafastFieldConfig<Step> = {
    description: resource.description,
    type: build.nullableIf(Boolean(resource.extensions?.tags?.nullable), resultTypeOf(build, resource)),
    args: { ...(id && { id }), ...(input && { input: { type: new GraphQLNonNull(input) } }) },
    ...(deprecationReason !== undefined && { deprecationReason }),
  };
  const args = functionArgumentsOf(build, resource, 0);
  return withSource(field, { kind: "mutation", resource, args, countsSignUp: isSignUp(resource) });
}

function resultTypeOf(build: GraphileBuild.Build, resource: SchemaResource): GraphQLOutputType {
  const { codec, isUnique, isList, name } = resource;
  if (codec === TYPES.void) return GraphQLBoolean;
  const type = outputTypeOf(build, codec);
  if (!type) throw new Error(`The result of function ${name} has no type in GraphQL.`);
  // An array, unlike a set of rows, has null items.
  return isUnique ? type : new GraphQLList(build.nullableIf(isList || mayHoldNulls(resource), type));
}
