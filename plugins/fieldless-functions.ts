import { type GraphQLSchema, isObjectType } from "postgraphile/graphql";
import type { LeftOut } from "./left-out.ts";
import type { Resource } from "./table.ts";

/** Functions that were to become fields and did not, because GraphQL has no type for what they take or return. */
export function fieldlessFunctions(build: GraphileBuild.Build, schema: GraphQLSchema): LeftOut[] {
  const functions = (Object.values(build.pgResources) as Resource[]).filter(({ parameters }) => parameters);
  return functions.flatMap((resource): LeftOut[] => {
    const place = placeOf(resource, build);
    const type = place && schema.getType(place.type);
    // Of a type that callers see nothing of, its functions are not missed.
    if (!place || (place.type !== "Mutation" && !isObjectType(type))) return [];
    if (isObjectType(type) && type.getFields()[place.field]) return [];
    const signature = signatureOf(resource);
    return [
      {
        object: `function ${signature}`,
        reason: "GraphQL has no type for what it takes or returns",
        fix: `-- Take and return other types, or revoke execute on function ${signature}.`,
        isFault: false,
      },
    ];
  });
}

type Place = { readonly type: string; readonly field: string };

function placeOf(resource: Resource, { behavior, inflection }: GraphileBuild.Build): Place | null {
  if (behavior.pgResourceMatches(resource, "function:mutationField")) {
    return { type: "Mutation", field: inflection.customMutationField({ resource }) };
  }
  if (behavior.pgResourceMatches(resource, "queryField")) {
    return { type: "Query", field: inflection.customQueryField({ resource }) };
  }
  if (behavior.pgResourceMatches(resource, "typeField")) {
    const { codec } = resource.parameters[0]!;
    return { type: inflection.tableType(codec), field: inflection.computedAttributeField({ resource }) };
  }
  return null;
}

/** Core identifies it as `main.public.search(text,int4)`. */
function signatureOf({ identifier }: Resource): string {
  return identifier.slice(identifier.indexOf(".") + 1);
}
